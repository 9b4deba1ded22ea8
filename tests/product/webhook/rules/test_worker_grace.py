"""The grace period of a job's new workers."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.act import worker_probes
from tests.doubles.terminals import on_terminal
from tests.product.webhook.answers import patched
from tests.product.webhook.objects import PLAIN, Object, mpi_job, worker_pod
from webhook.rules import worker_grace

HOOK = {"name": "hooked", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
PROXY = {"name": "proxy", "image": "i"}
SIDECAR = {**PROXY, "restartPolicy": "Always"}
PERIOD = "terminationGracePeriodSeconds"


def worker(
    *, period: int = 30, before: tuple[Object, ...] = (), behind: tuple[Object, ...] = (), **more: Any
) -> Object:
    """A worker with this period, which is 30 s unless something says otherwise, and these containers and fields."""
    pod = worker_pod()
    first = {**pod["spec"]["containers"][0], **{key: more.pop(key) for key in ("command", "args") if key in more}}
    pod["spec"] |= {"terminationGracePeriodSeconds": period, "containers": [*before, first, *behind], **more}
    return pod


def asking(*, drain: str = "", template: Object | None = None, **job: Any) -> Object:
    """A job with this drain-timeout and this in the template of its workers."""
    made = mpi_job(annotations={names.DRAIN_TIMEOUT: drain} if drain else {}, **job)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] |= template or {}
    return made


def fitted(pod: Object, seconds: int) -> Object:
    """The pod with this period and the main process that ends by itself."""
    own = {"command": ["/bin/sh", "-c"], "args": [worker_grace.MAIN]}
    containers = [{**one, **own} if one["name"] == "worker" else one for one in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": seconds, "containers": containers}}


@pytest.mark.parametrize(
    ("pod", "job", "seconds"),
    [
        pytest.param(worker(), asking(), 60, id="the default drain timeout"),
        pytest.param(worker(), asking(drain="90500ms"), 91, id="up to a whole second"),
        pytest.param(worker(), asking(drain="10s"), 30, id="never less than it has"),
        pytest.param(worker(period=600), asking(), 600, id="what another webhook made longer"),
        pytest.param(worker(before=(PROXY,)), asking(), 30, id="behind a container, which may ignore SIGTERM"),
        pytest.param(worker(behind=(PROXY,)), asking(), 30, id="before a container, which may ignore SIGTERM"),
        pytest.param(worker(initContainers=[SIDECAR]), asking(), 30, id="beside a sidecar, which may ignore SIGTERM"),
        pytest.param(worker(initContainers=[PROXY]), asking(), 60, id="after a container that has ended"),
    ],
)
def test_a_worker_gets_at_least_its_drain_timeout_and_nothing_else(pod: Object, job: Object, seconds: int) -> None:
    assert patched(worker_grace.fitting, pod, job) == fitted(pod, seconds)


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(worker(period=0), asking(template={PERIOD: 0}), id="no period in the template"),
        pytest.param(worker(), asking(template={PERIOD: 30}), id="the default in the template"),
        pytest.param(worker(command=["sleep", "infinity"], args=[]), asking(), id="another sleep"),
        pytest.param(worker(behind=(HOOK,)), asking(), id="a hook whose author knew the period"),
        pytest.param(worker(initContainers=[HOOK]), asking(), id="a hook of a sidecar"),
        pytest.param(worker(), asking(command=PLAIN), id="a plain job"),
        # The main process would take others' processes for ranks, and end with the grace period only.
        pytest.param(worker(hostPID=True), asking(), id="the processes of the node"),
        pytest.param(worker(shareProcessNamespace=True), asking(), id="the processes of other containers"),
    ],
)
def test_what_somebody_else_decided_stays(pod: Object, job: Object) -> None:
    assert patched(worker_grace.fitting, pod, job) == pod


@pytest.mark.parametrize(
    ("main", "says"), [(worker_grace.MAIN, f"{names.RANKS_LEFT}\n"), (f"echo mine\n{worker_grace.MAIN}", None)]
)
@pytest.mark.parametrize("shell", [shell for shell in ("dash", "bash") if shutil.which(shell)])
def test_the_main_process_is_told_that_its_worker_drained_and_no_other_is(
    main: str, says: str | None, shell: str, tmp_path: Path
) -> None:
    """By the command that the controller runs in the container (act/worker_probes)."""
    log, line = tmp_path / "termination-log", tmp_path / "cmdline"
    line.write_bytes(b"".join(word.encode() + b"\0" for word in ("/bin/sh", "-c", main)))
    tell = worker_probes.TELL.replace("/proc/1/cmdline", str(line)).replace("/dev/termination-log", str(log))
    told = subprocess.run([shell, "-c", tell], check=True, capture_output=True, text=True)
    assert (told.stdout, log.read_text() if log.exists() else None) == ("told\n", says)


NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.thorough
@pytest.mark.skipif(subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0, reason="no PID namespace")
@pytest.mark.parametrize(
    ("ranks", "least", "most", "words"),
    [
        ("sleep 4 & sleep 2 &", 2.5, 4.5, names.RANKS_LEFT),
        ("", 4.5, 7.0, names.NO_RANK_SEEN),
        ("late", 4.5, 7.0, names.RANKS_LEFT),
        ("told", 0.2, 2.0, names.RANKS_LEFT),
        ("told; sleep 4 & sleep 2 &", 2.5, 4.5, names.RANKS_LEFT),
        ("attached", 4.5, 7.0, names.NO_RANK_SEEN),
    ],
)
def test_the_main_process_ends_with_the_last_rank_and_says_so(
    ranks: str, least: float, most: float, words: str, tmp_path: Path
) -> None:
    """As process 1 of a container.

    late: a driver with the old list starts a rank 3 s after SIGTERM. told: the controller says that the worker drained.
    attached: somebody has a shell in it, and a command in that.
    """
    log = tmp_path / "termination-log"
    main_process = worker_grace.MAIN.replace("/dev/termination-log", str(log))
    begins = ranks.removeprefix("late").removeprefix("told").removeprefix("; ").removeprefix("attached")
    ends = Popen([*NAMESPACE, "/bin/sh", "-c", begins + main_process], start_new_session=True)
    time.sleep(1)
    (main,) = Path(f"/proc/{ends.pid}/task/{ends.pid}/children").read_text().split()
    if ranks.startswith("told"):
        log.write_text(f"{names.RANKS_LEFT}\n")
    inside = ("nsenter", "--target", main, "--pid", "--mount")
    with on_terminal(*inside, "bash", "-c", "sleep 60; exit") if ranks == "attached" else nullcontext():
        time.sleep(0.5)
        began = time.monotonic()
        os.kill(int(main), signal.SIGTERM)
        if ranks == "late":
            time.sleep(3)
            subprocess.run([*inside, "sleep", "2"], check=True, start_new_session=True)
        assert ends.wait(30) == worker_grace.ENDED
    assert least < time.monotonic() - began < most
    assert log.read_text() == f"{words}\n"


@pytest.mark.thorough
@pytest.mark.skipif(subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0, reason="no PID namespace")
def test_the_ranks_of_a_job_that_is_gone_are_ended_and_those_beside_another_main_process_are_not(
    tmp_path: Path,
) -> None:
    """By the command that the controller runs in the container (act/worker_probes)."""
    log = tmp_path / "termination-log"
    ranks = "sh -c 'trap : TERM; while :; do sleep 9; done; exit' & sleep 90 & "
    for main_process, ends in ((worker_grace.MAIN.replace("/dev/termination-log", str(log)), True), ("cat", False)):
        words = [*NAMESPACE, "/bin/sh", "-c", ranks + main_process]
        container = Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        time.sleep(1)
        (main,) = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        os.kill(int(main), signal.SIGTERM)
        time.sleep(1)
        inside = ["nsenter", "--target", main, "--pid", "--mount"]
        told = subprocess.run([*inside, "/bin/sh", "-c", worker_probes.END], check=True, capture_output=True, text=True)
        assert told.stdout == "told\n"
        if ends:
            assert container.wait(10) == worker_grace.ENDED
        else:
            assert "sleep" in subprocess.run([*inside, "ps", "-A"], check=True, capture_output=True, text=True).stdout
            container.kill()
            container.wait()
    assert log.read_text() == f"{names.RANKS_LEFT}\n"
