"""The grace period of a job's new workers."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.act import worker_scripts
from mpijob_elastic.admission import worker_grace
from tests.doubles.terminals import on_terminal
from tests.product.webhook.answers import patched
from tests.product.webhook.objects import PLAIN, Object, mpi_job, worker_pod

HOOK = {"name": "hooked", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
PROXY = {"name": "proxy", "image": "i"}
SIDECAR = {**PROXY, "restartPolicy": "Always"}
PERIOD = "terminationGracePeriodSeconds"


def worker(
    *,
    period: int = 30,
    before: tuple[Object, ...] = (),
    behind: tuple[Object, ...] = (),
    **more: Any,
) -> Object:
    """A worker with this period, which is 30 s unless something says otherwise, and these containers and fields."""
    pod = worker_pod()
    first = {
        **pod["spec"]["containers"][0],
        **{key: more.pop(key) for key in ("command", "args") if key in more},
    }
    pod["spec"] |= {
        "terminationGracePeriodSeconds": period,
        "containers": [*before, first, *behind],
        **more,
    }
    return pod


def asking(*, drain: str = "", template: Object | None = None, **job: Any) -> Object:
    """A job with this drain-timeout and this in the template of its workers."""
    made = mpi_job(annotations={names.DRAIN_TIMEOUT: drain} if drain else {}, **job)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] |= template or {}
    return made


def fitted(pod: Object, seconds: int) -> Object:
    """The pod with this period and the main process that ends by itself."""
    own = {"command": ["/bin/sh", "-c"], "args": [worker_grace.MAIN]}
    containers = [
        {**one, **own} if one["name"] == "worker" else one for one in pod["spec"]["containers"]
    ]
    return {
        **pod,
        "spec": {**pod["spec"], "terminationGracePeriodSeconds": seconds, "containers": containers},
    }


@pytest.mark.parametrize(
    ("pod", "job", "seconds"),
    [
        pytest.param(worker(), asking(), 60, id="the default drain timeout"),
        pytest.param(worker(), asking(drain="90500ms"), 91, id="up to a whole second"),
        pytest.param(worker(), asking(drain="10s"), 30, id="never less than it has"),
        pytest.param(worker(period=600), asking(), 600, id="what another webhook made longer"),
        pytest.param(
            worker(before=(PROXY,)), asking(), 30, id="behind a container, which may ignore SIGTERM"
        ),
        pytest.param(
            worker(behind=(PROXY,)), asking(), 30, id="before a container, which may ignore SIGTERM"
        ),
        pytest.param(
            worker(initContainers=[SIDECAR]),
            asking(),
            30,
            id="beside a sidecar, which may ignore SIGTERM",
        ),
        pytest.param(
            worker(initContainers=[PROXY]), asking(), 60, id="after a container that has ended"
        ),
    ],
)
def test_a_worker_gets_at_least_its_drain_timeout_and_nothing_else(
    pod: Object, job: Object, seconds: int
) -> None:
    assert patched(worker_grace.fitting, pod, job) == fitted(pod, seconds)


@pytest.mark.parametrize(
    ("injected", "drain", "seconds"),
    [
        pytest.param({}, "1h", 3600, id="nothing was added"),
        pytest.param({"behind": (PROXY,)}, "1h", 30, id="a container was added"),
        pytest.param({"initContainers": [SIDECAR]}, "1h", 30, id="a sidecar was added"),
        pytest.param(
            {"behind": (PROXY,)}, "10s", 30, id="a container, and the period was long enough"
        ),
        pytest.param(
            {"behind": (PROXY,), "period": 600},
            "1h",
            600,
            id="a container, with a period of its own",
        ),
    ],
)
def test_what_a_later_webhook_adds_takes_the_long_period_back(
    injected: Object, drain: str, seconds: int
) -> None:
    """The API server asks again after another webhook has changed the pod (reinvocationPolicy)."""
    job = asking(drain=drain)
    first = patched(worker_grace.fitting, worker(), job)
    period = injected.pop("period", first["spec"][PERIOD])
    later = worker(**injected, period=period)
    main = next(one for one in first["spec"]["containers"] if one["name"] == "worker")
    others = [one for one in later["spec"]["containers"] if one["name"] != "worker"]
    seen = {**later, "spec": {**later["spec"], "containers": [main, *others]}}
    again = patched(worker_grace.fitting, seen, job)
    assert again == {**seen, "spec": {**seen["spec"], PERIOD: seconds}}
    assert patched(worker_grace.fitting, again, job) == again


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(
            worker(period=0), asking(template={PERIOD: 0}), id="no period in the template"
        ),
        pytest.param(worker(), asking(template={PERIOD: 30}), id="the default in the template"),
        pytest.param(worker(command=["sleep", "infinity"], args=[]), asking(), id="another sleep"),
        pytest.param(worker(behind=(HOOK,)), asking(), id="a hook whose author knew the period"),
        pytest.param(worker(initContainers=[HOOK]), asking(), id="a hook of a sidecar"),
        pytest.param(worker(), asking(command=PLAIN), id="a plain job"),
        # The main process would take others' processes for ranks, and end with the grace period
        # only.
        pytest.param(worker(hostPID=True), asking(), id="the processes of the node"),
        pytest.param(
            worker(shareProcessNamespace=True), asking(), id="the processes of other containers"
        ),
    ],
)
def test_what_somebody_else_decided_stays(pod: Object, job: Object) -> None:
    assert patched(worker_grace.fitting, pod, job) == pod


@pytest.mark.parametrize(
    ("main", "says"),
    [(worker_grace.MAIN, f"{names.RANKS_LEFT}\n"), (f"echo mine\n{worker_grace.MAIN}", None)],
)
@pytest.mark.parametrize("shell", [shell for shell in ("dash", "bash") if shutil.which(shell)])
def test_the_main_process_is_told_that_its_worker_drained_and_no_other_is(
    main: str, says: str | None, shell: str, tmp_path: Path
) -> None:
    """By the command that the controller runs in the container (act/worker_scripts)."""
    log, line = tmp_path / "termination-log", tmp_path / "cmdline"
    line.write_bytes(b"".join(word.encode() + b"\0" for word in ("/bin/sh", "-c", main)))
    tell = worker_scripts.TELL.replace("/proc/1/cmdline", str(line)).replace(
        "/dev/termination-log", str(log)
    )
    told = subprocess.run([shell, "-c", tell], check=True, capture_output=True, text=True)
    assert (told.stdout, log.read_text() if log.exists() else None) == ("told\n", says)


NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.thorough
@pytest.mark.skipif(
    subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0, reason="no PID namespace"
)
@pytest.mark.parametrize(
    ("ranks", "least", "words"),
    [
        ("sleep 4 & sleep 2 &", 4.0, names.RANKS_LEFT),
        ("", 4.5, names.NO_RANK_SEEN),
        ("late", 7.0, names.RANKS_LEFT),
        ("told", 0.0, names.RANKS_LEFT),
        ("told; sleep 4 & sleep 2 &", 4.0, names.RANKS_LEFT),
        ("attached", 4.5, names.NO_RANK_SEEN),
    ],
)
def test_the_main_process_ends_with_the_last_rank_and_says_so(
    ranks: str, least: float, words: str, tmp_path: Path
) -> None:
    """As process 1 of a container. least: seconds from its start to its end.

    late: a driver with the old list starts a rank 1 s after SIGTERM. told: the controller says that
    the worker drained. attached: somebody has a shell in it, and a command in that.
    """
    log, slept = tmp_path / "termination-log", tmp_path / "slept"
    (tmp_path / "sleep").write_text(SLEEP.format(slept=slept))
    (tmp_path / "sleep").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    main_process = worker_grace.MAIN.replace("/dev/termination-log", str(log))
    begins = (
        ranks.removeprefix("late").removeprefix("told").removeprefix("; ").removeprefix("attached")
    )
    began = time.monotonic()
    ends = Popen(
        [*NAMESPACE, "/bin/sh", "-c", begins + main_process],
        start_new_session=True,
        env=environment,
    )
    main = main_of(ends)
    while not catches_sigterm(main):
        time.sleep(0.01)
    if ranks.startswith("told"):
        log.write_text(f"{names.RANKS_LEFT}\n")
    inside = ("nsenter", "--target", main, "--pid", "--mount")
    with (
        on_terminal(*inside, "bash", "-c", "tail -f /dev/null; exit")
        if ranks == "attached"
        else nullcontext()
    ):
        while ranks == "attached" and "tail" not in processes(inside):
            time.sleep(0.01)
        os.kill(int(main), signal.SIGTERM)
        if ranks == "late":
            time.sleep(1)
            subprocess.run([*inside, "sleep", "6"], check=True, start_new_session=True)
        assert ends.wait(60) == worker_grace.ENDED
    assert time.monotonic() - began >= least
    assert log.read_text() == f"{words}\n"
    if ranks != "late":
        # From the end of the last rank on it looks again for 5 s only where it has seen and heard
        # of none.
        looks = slept.read_text().rpartition("4\n")[2].split()
        assert {*looks} <= {"0.2"}
        assert (len(looks) >= 24) == (words == names.NO_RANK_SEEN)


# Counts the looks of the main process, which sleeps after each, and tells the end of a rank.
SLEEP = '#!/bin/sh\n/bin/sleep "$1"\necho "$1" >> {slept}\n'


def main_of(container: "Popen[bytes]") -> str:
    """Return the main process of a container, once it is there."""
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    while not (found := children.read_text().strip()):
        time.sleep(0.01)
    return found


def catches_sigterm(process: str) -> bool:
    [caught] = re.findall(
        r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE
    )
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def processes(inside: Sequence[str]) -> str:
    """Return the table of the processes in a container."""
    return subprocess.run([*inside, "ps", "-A"], check=True, capture_output=True, text=True).stdout


@pytest.mark.thorough
@pytest.mark.skipif(
    subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0, reason="no PID namespace"
)
def test_the_ranks_of_a_job_that_is_gone_are_ended_and_those_beside_another_main_process_are_not(
    tmp_path: Path,
) -> None:
    """By the command that the controller runs in the container (act/worker_scripts)."""
    log = tmp_path / "termination-log"
    ranks = "sh -c 'trap : TERM; while :; do sleep 9; done; exit' & sleep 90 & "
    for main_process, ends in (
        (worker_grace.MAIN.replace("/dev/termination-log", str(log)), True),
        ("cat", False),
    ):
        words = [*NAMESPACE, "/bin/sh", "-c", ranks + main_process]
        container = Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        main = main_of(container)
        while ends and not catches_sigterm(main):
            time.sleep(0.01)
        os.kill(int(main), signal.SIGTERM)
        time.sleep(1)
        inside = ["nsenter", "--target", main, "--pid", "--mount"]
        told = subprocess.run(
            [*inside, "/bin/sh", "-c", worker_scripts.END],
            check=True,
            capture_output=True,
            text=True,
        )
        assert told.stdout == "told\n"
        if ends:
            assert container.wait(60) == worker_grace.ENDED
        else:
            assert "sleep" in processes(inside)
            container.kill()
            container.wait()
    assert log.read_text() == f"{names.RANKS_LEFT}\n"
