"""A script of `scaleout` and `scalein`: when it runs, what it is, and what becomes of the change."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.act import launcher_execs
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import scripted
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.scripted import Script
from mpijob_elastic.cli.jobs.size_request import SizeRequest
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import PODS
from tests.doubles.api import refused
from tests.doubles.shells import (
    STATUS,
    STDERR,
    STDOUT,
    SUCCESS,
    Message,
    Shells,
    Talk,
    failure,
    prints,
    says,
)
from tests.product.cli.test_write_change import Server, knows

LAUNCHER = PODS.path("default", "train-launcher")
SCRIPT = Script(text="sh save.sh $STEP", env={"STEP": "last one", "A": "b=c"})
COMMAND = ["env", "STEP=last one", "A=b=c", "/bin/sh", "-c", "sh save.sh $STEP"]
EMPTY = [*COMMAND[:-1], ":"]
PATIENCE = Patience(wait=True, seconds=0.3, look=False)
RUNNING: dict[str, object] = {"running": {}}
EXITS_7 = (STATUS, failure("NonZeroExitCode", "command terminated with exit code 7", "7"))
SAYS = (STDOUT, "saving\nstep "), (STDERR, "slow disk\n"), (STDOUT, "9\x1b[2J")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as api:
        runs(api, RUNNING)
        yield api


def runs(server: Server, state: dict[str, object] | None) -> None:
    """Let the launcher's container be in this state."""
    pod = server.objects[LAUNCHER]
    pod["spec"]["containers"] = [{"name": "main"}]
    pod["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    server.put(LAUNCHER, pod)


def answering(server: Server, talk: Talk) -> list[tuple[list[str], int]]:
    """Let pods answer exec so; return each command, with the size of the job while it runs."""
    asked: list[tuple[list[str], int]] = []

    async def noted(what: Any) -> AsyncIterator[Message]:
        assert (what.pod, what.container) == ("train-launcher", "main")
        asked.append((what.command, server.size))
        async for message in talk(what):
            yield message

    server.streams["/exec"] = Shells(noted).serve
    return asked


async def scaled(
    server: Server, *, grows: bool = False, patience: Patience = PATIENCE, **asked: Any
) -> Exit:
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    return await scripted.scale(where, "train", SizeRequest(grows=grows, **asked), patience, SCRIPT)


async def test_before_a_scale_in_it_runs_and_its_lines_are_shown(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answering(server, says(*SAYS, (STATUS, SUCCESS)))
    no_wait = Patience(wait=False, seconds=9, look=False)
    assert await scaled(server, patience=no_wait, count=1) == Exit.DONE
    assert (asked, server.size) == ([(COMMAND, 2)], 1)
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["saving", "slow disk", "step 9\\u001b[2J"]
    assert printed.out.splitlines()[0] == "train: 2 → 1 worker"


@pytest.mark.parametrize(
    ("talk", "why"),
    [
        (says(*SAYS, EXITS_7), "the script exited with 7 in train-launcher; train was not changed"),
        (
            says((STATUS, failure("InternalError", "no\nenv"))),
            "the script did not run: .*no env; train was not changed",
        ),
    ],
)
async def test_no_worker_leaves_after_a_script_that_failed(
    server: Server, talk: Talk, why: str
) -> None:
    answering(server, talk)
    with pytest.raises(Refused, match=why):
        await scaled(server, count=1)
    assert server.writes == []


async def test_without_the_right_to_exec_nothing_is_changed(server: Server) -> None:
    async def refuse(_: Any) -> AsyncIterator[Message]:
        raise refused(403, "Forbidden", 'user "u" cannot create resource "pods/exec"')
        yield

    answering(server, refuse)
    for grows in (False, True):
        with pytest.raises(
            Refused, match=r'the script did not run: .*cannot create resource "pods/exec"'
        ):
            await scaled(server, grows=grows, count=1)
    assert server.writes == []


@pytest.mark.parametrize("grows", [False, True])
async def test_a_script_that_does_not_end_in_time_leaves_the_job_as_it_was(
    server: Server, *, grows: bool
) -> None:
    async def hangs(_: Any) -> AsyncIterator[Message]:
        yield STDOUT, "begun"
        await asyncio.Event().wait()

    answering(server, hangs)
    with pytest.raises(
        errors.Unreachable,
        match=r"within 0\.3 s; train was not changed, and what was begun in train-launcher may go on",
    ):
        await scaled(server, grows=grows, count=1)
    assert server.writes == []


async def test_ctrl_c_says_that_the_script_may_go_on(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = asyncio.Event()

    async def hangs(_: Any) -> AsyncIterator[Message]:
        begun.set()
        await asyncio.Event().wait()
        yield STDOUT, ""

    answering(server, hangs)
    command = asyncio.create_task(
        scaled(server, count=1, patience=Patience(wait=True, seconds=60, look=False))
    )
    await begun.wait()
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert capsys.readouterr().err == (
        "Interrupted: train was not changed, and what was begun in train-launcher may go on.\n"
    )


async def test_a_job_that_changes_while_the_script_runs_is_left_alone(server: Server) -> None:
    async def meanwhile(_: Any) -> AsyncIterator[Message]:
        server.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 5}}}})
        yield STATUS, SUCCESS

    answering(server, meanwhile)
    with pytest.raises(
        Refused,
        match="train has changed since the script began, so nothing was written: now it would be: train: 5 → 4",
    ):
        await scaled(server, count=1)
    assert server.writes == []


async def test_what_would_be_refused_runs_no_script(server: Server) -> None:
    asked = answering(server, prints(""))
    knows(server)
    for words in ({"count": 2}, {"nodes": ["node-7"]}):
        with pytest.raises(Refused):
            await scaled(server, **words)

    def refuse() -> None:
        raise refused(
            403,
            "Forbidden",
            'admission webhook "sizes.webhook.mpijob-elastic" denied the request: 1 is none of sizes',
        )

    server.between = refuse
    with pytest.raises(errors.Forbidden, match="1 is none of sizes"):
        await scaled(server, count=1)
    assert asked == []


async def test_where_no_worker_leaves_no_script_runs(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answering(server, prints(""))
    assert await scaled(server, to=2) == Exit.DONE
    assert asked == []
    assert capsys.readouterr().err == "The script was not run: no worker has to leave.\n"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (None, "train-launcher has not started: Running"),
        ({"terminated": {}}, "train-launcher has ended"),
        ({}, r"train-launcher does not exist yet \(Running\)"),
    ],
)
async def test_it_needs_a_launcher_that_runs(
    server: Server, state: dict[str, object] | None, why: str
) -> None:
    asked = answering(server, prints(""))
    runs(server, state)
    if state == {}:
        server.remove(LAUNCHER)
    for grows in (False, True):
        with pytest.raises(NotStarted, match=f"{why}; --script needs a launcher that runs"):
            await scaled(server, grows=grows, count=1)
    assert (asked, server.writes) == ([], [])


async def test_after_a_scale_out_it_runs_once_all_train(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answering(server, says(*SAYS, (STATUS, SUCCESS)))
    assert await scaled(server, grows=True, to=2) == Exit.DONE
    assert [command for command, _ in asked] == [EMPTY, COMMAND]

    assert await scaled(server, grows=True, to=4) == Exit.NOT_KNOWN
    assert asked[2:] == [(EMPTY, 2)]
    assert server.size == 4
    assert capsys.readouterr().err.splitlines()[-1] == "The script was not run."


async def test_a_scale_out_whose_script_fails_is_done_otherwise(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async def talk(asked: Any) -> AsyncIterator[Message]:
        if asked.command == EMPTY:
            yield STATUS, SUCCESS
            return
        yield STDERR, "no such file\n"
        yield EXITS_7

    answering(server, talk)
    assert await scaled(server, grows=True, to=2) == Exit.OTHERWISE
    assert capsys.readouterr().err.splitlines() == [
        "no such file",
        "the script exited with 7 in train-launcher; train keeps its new size",
    ]


def test_the_shell_gets_text_and_variables_as_they_were_given() -> None:
    script = Script(text='echo "$A"; echo "$B" >&2; exit 3', env={"A": "it's $HOME", "B": "x=y"})
    done = subprocess.run(
        script.command,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "it's $HOME\n", "x=y\n")


def test_no_look_takes_it_for_a_rank() -> None:
    text = f"sleep 60; : {names.DISCOVER_HOSTS_PATH} /opt/kube/kubectl exec train-worker-0 -- /bin/sh HOROVOD_RANK=0"
    with subprocess.Popen(
        Script(text=text, env={"HOROVOD_RANK": "0"}).command, start_new_session=True
    ) as process:
        try:
            printed = subprocess.run(
                launcher_execs.COMMAND, capture_output=True, text=True, check=True
            ).stdout
        finally:
            os.killpg(process.pid, 9)
    assert launcher_execs.parse(printed, started_at=0.0) is not None
    assert f"\n{process.pid} " not in printed
