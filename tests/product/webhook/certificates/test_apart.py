"""The process that rotates certificates runs while there is work, and the webhook serves what it says."""

import asyncio
import errno
import json
import sys
from asyncio.subprocess import Process
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube.client import connect
from tests.doubles.api import TinyApi
from tests.product.webhook.certificates.material import DAY, HOST, LIFETIMES, NOON, POLICY, healthy
from tests.product.webhook.certificates.replicas import (
    CONFIGURATIONS,
    SECRET,
    Replica,
    World,
    configuration,
    look,
)
from webhook.certificates import decision
from webhook.certificates.apart import RotationApart, pause_after
from webhook.certificates.handshakes import Handshakes
from webhook.certificates.messages import Lifetimes, Order, Timing

APART = "webhook.certificates.apart"
CONTENT = healthy()
BEGIN, END = decision.lull(CONTENT, POLICY)


@given(share=st.floats(0, 1, exclude_max=True))
def test_nothing_is_due_before_the_lull_is_over(share: float) -> None:
    assert decision.next_step(CONTENT, POLICY, now=BEGIN + share * (END - BEGIN)) is None


@pytest.mark.parametrize("at", [BEGIN - timedelta(seconds=1), END + timedelta(seconds=1)])
def test_something_is_due_before_and_after_it(at: datetime) -> None:
    assert decision.next_step(CONTENT, POLICY, now=at) is not None


def test_a_lull_ends_with_the_last_third_of_the_certificate() -> None:
    assert (NOON - LIFETIMES.backdate, NOON + 4 * DAY) == (BEGIN, END)


def test_a_look_that_writes_is_not_at_rest_and_the_next_says_what_it_read() -> None:
    world = World()
    replica = Replica(world)
    look(world, replica)
    assert replica.rotation.rest is None
    look(world, replica)
    rest = replica.rotation.rest
    assert rest is not None
    stored = [
        world.api.objects[path]["metadata"]["resourceVersion"] for path in (SECRET, *CONFIGURATIONS)
    ]
    assert list(rest.versions) == stored
    del world.api.objects[CONFIGURATIONS[0]]
    look(world, replica)
    assert replica.rotation.rest is not None
    assert list(replica.rotation.rest.versions) == [stored[0], "", stored[2]]


def test_it_is_not_at_rest_while_a_certificate_waits_to_be_trusted() -> None:
    world = World()
    one, two = Replica(world), Replica(world)
    for _ in range(2):
        look(world, one)
        look(world, two)
    del world.api.objects[SECRET]
    look(world, one)
    look(world, two)
    assert two.rotation.rest is None
    world.now += 10
    look(world, two)
    assert two.rotation.rest is not None


class Apart:
    """A webhook's rotation on an API server over HTTP, and the processes that it has started.

    faults: what the next starts raise.
    """

    def __init__(
        self,
        api: TinyApi,
        rotation: RotationApart,
        processes: list[Process],
        faults: list[Exception],
    ) -> None:
        self.api, self.rotation, self.processes, self.faults = api, rotation, processes, faults

    @property
    def pair(self) -> Any:
        return self.rotation.handshakes.pair

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.01)

    async def rest(self) -> None:
        """Wait until no process runs, and the pair in the Secret is served."""
        await self.until(lambda: all(each.returncode is not None for each in self.processes))
        assert self.pair.certificates == self.stored("tls.crt")

    def stored(self, key: str) -> bytes:
        return b64decode(self.api.objects[SECRET]["data"][key])


@asynccontextmanager
async def apart(
    monkeypatch: pytest.MonkeyPatch, *, timing: Timing, lifetimes: Lifetimes
) -> AsyncIterator[Apart]:
    processes, faults = list[Process](), list[Exception]()
    start = asyncio.create_subprocess_exec

    async def noted(*words: Any, **options: Any) -> Process:
        if faults:
            raise faults.pop()
        processes.append(await start(*words, **options))
        return processes[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    async with (
        TinyApi() as api,
        await connect(user_agent="test", kubeconfig=api.kubeconfig) as client,
    ):
        for hooks, path in enumerate(CONFIGURATIONS, start=1):
            api.put(path, configuration(hooks))
        order = Order(
            namespace="mpijob-elastic",
            hosts=[HOST],
            lifetimes=lifetimes,
            timing=timing,
            early=0.0,
            kubeconfig=str(api.kubeconfig),
        )
        rotation = RotationApart(
            client=client, handshakes=Handshakes(), order=order, wall=lambda: datetime.now(UTC)
        )
        running = asyncio.create_task(rotation.run())
        try:
            yield Apart(api, rotation, processes, faults)
        finally:
            running.cancel()
            await asyncio.wait({running})
        async with asyncio.timeout(10):  # none outlives the webhook
            while any(each.returncode is None for each in processes):
                await asyncio.sleep(0.01)


async def test_it_runs_again_only_when_something_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timing = Timing(look_every=0.1, settled=0.1)
    async with apart(monkeypatch, timing=timing, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: webhook.pair is not None)
        await webhook.rest()
        assert webhook.rotation.secret_path.startswith("/evict/")
        await asyncio.sleep(1)
        assert len(webhook.processes) == 1, "there was no work"

        before = webhook.api.objects[CONFIGURATIONS[0]]["webhooks"]
        webhook.api.put(CONFIGURATIONS[0], configuration(1))
        await webhook.until(lambda: webhook.api.objects[CONFIGURATIONS[0]]["webhooks"] == before)
        await webhook.rest()
        assert len(webhook.processes) == 2


async def test_a_lost_authority_is_replaced_but_its_certificate_served_until_the_next_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timing = Timing(look_every=0.1, settled=2.0)
    async with apart(monkeypatch, timing=timing, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: webhook.pair is not None)
        await webhook.rest()
        old, path = webhook.pair, webhook.rotation.secret_path
        del webhook.api.objects[SECRET]
        await webhook.until(lambda: SECRET in webhook.api.objects)
        assert webhook.stored("tls.crt") != old.certificates
        began = asyncio.get_running_loop().time()
        await webhook.until(lambda: webhook.rotation.secret_path != path)
        assert webhook.pair == old
        await webhook.until(lambda: webhook.pair != old)
        assert asyncio.get_running_loop().time() - began > timing.settled / 2
        await webhook.rest()


async def test_a_certificate_is_renewed_in_its_last_third(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = Lifetimes(authority=timedelta(hours=1), leaf=timedelta(seconds=9))
    timing = Timing(look_every=0.1, settled=0.1)
    async with apart(monkeypatch, timing=timing, lifetimes=brief) as webhook:
        await webhook.until(lambda: webhook.pair is not None)
        first = webhook.pair
        await webhook.until(lambda: webhook.pair != first)
        assert webhook.stored("tls.crt") == webhook.pair.certificates


QUICK = Timing(look_every=0.1, settled=0.1)


def child(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Let this code run in the place of the process, once it has read its order."""
    (folder / "other_child.py").write_text(f"import sys, time\nsys.stdin.readline()\n{code}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(f"{APART}._PROCESS", "other_child")


async def test_a_process_that_fails_runs_again_and_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"{APART}._PROCESS", "webhook.no_such_module")
    timing = Timing(look_every=0.1, settled=0.1)
    async with apart(monkeypatch, timing=timing, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: len(webhook.processes) > 3)
    fault = "certificates not checked: their process ended with 1"
    assert caplog.messages[:3] == [
        f"{fault}; again in {pause} s" for pause in ("0.1", "0.2", "0.4")
    ]


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (10**6, 60)]
)
def test_the_pause_after_failures_doubles_up_to_a_minute(failures: int, seconds: float) -> None:
    assert pause_after(failures, look_every=10.0) == seconds


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.EMFILE, "Too many open files"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
    ],
)
async def test_a_process_that_cannot_be_started_is_started_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        webhook.faults += [fault, fault]
        await webhook.until(lambda: webhook.pair is not None)
    assert caplog.messages[:2] == [
        f"certificates not checked: {fault}; again in {pause} s" for pause in ("0.1", "0.2")
    ]


SILENT = {
    "hangs at once": "time.sleep(600)",
    "hangs at its end": "import os; os.close(1); time.sleep(600)",
    "leaves another": "import subprocess; subprocess.Popen(['sleep', '600'])",
}


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
async def test_a_silent_process_is_ended(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    code: str,
) -> None:
    child(monkeypatch, tmp_path, code)
    monkeypatch.setattr(f"{APART}._PATIENCE", 0.5)
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: len(webhook.processes) > 1)
        assert webhook.processes[0].returncode is not None
    assert caplog.messages[0].startswith("certificates not checked: their process was silent")


GARBAGE = {
    "a line without an end": "print('x' * 200_000)",
    "no JSON": "print('x')",
    "no text": "sys.stdout.buffer.write(b'\\xff\\xfe\\n')",
    "nested too deep": "print('[' * 60_000)",
    "no certificate": """print('{"served":{"certificates":"YQ==","key":"Yg==","not_before":0,"not_after":1}}')""",
    "nothing": "",
}


@pytest.mark.parametrize("code", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    code: str,
) -> None:
    child(monkeypatch, tmp_path, code)
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: len(webhook.processes) > 1)
    assert caplog.messages[0].startswith("certificates not checked: ")
    assert caplog.messages[0].endswith("; again in 0.1 s")


async def test_two_processes_are_never_closer_than_two_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever rest the first has found, such as one that is over."""
    rest = '{"rest":{"versions":["a"],"since":0,"until":1}}'
    child(monkeypatch, tmp_path, f"print('{rest}')")
    timing = Timing(look_every=60.0, settled=0.1)
    async with apart(monkeypatch, timing=timing, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: bool(webhook.processes))
        await webhook.until(lambda: webhook.processes[0].returncode is not None)
        await asyncio.sleep(0.5)
        assert len(webhook.processes) == 1


async def test_what_a_process_leaves_does_not_keep_the_webhook_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A credential plugin may leave a daemon, which has the standard input of the process."""
    rest = '{"rest":{"versions":["a"],"since":0,"until":1}}'
    daemon = "subprocess.Popen(['sleep', '20'], start_new_session=True, stdout=subprocess.DEVNULL)"
    child(monkeypatch, tmp_path, f"import subprocess; {daemon}; print('{rest}')")
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: len(webhook.processes) > 1)
    assert not caplog.messages


async def test_nothing_is_imported_from_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("cryptography", "webhook"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(sys, "path", list(filter(None, sys.path)))
    monkeypatch.chdir(tmp_path)
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: webhook.pair is not None)
        assert len(webhook.processes) == 1


async def test_a_credential_plugin_gets_the_import_path_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may be a program in Python, which cannot use our packages."""
    found = tmp_path / "found"
    code = f"import os; print(os.environ['PYTHONPATH'], file=open({str(found)!r}, 'a'))"
    child(monkeypatch, tmp_path, code)
    monkeypatch.setenv("PYTHONPATH", "/users")
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        await webhook.until(lambda: len(webhook.processes) > 1)
    assert found.read_text().splitlines()[0] == "/users"


async def test_a_process_without_a_cluster_says_so_in_the_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async with apart(monkeypatch, timing=QUICK, lifetimes=Lifetimes()) as webhook:
        order = replace(webhook.rotation.order, context="other")
        webhook.rotation.order = order
        await webhook.until(lambda: len(webhook.processes) > 1)
    # Beside it may stand what the loggers of this process say.
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    said = [json.loads(line) for line in lines]
    of_process = [line for line in said if line["logger"] == f"{APART}_process"]
    assert of_process[0]["level"] == "error"
    assert "it has no context other" in of_process[0]["event"]
