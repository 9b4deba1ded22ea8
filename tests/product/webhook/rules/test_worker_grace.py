"""The grace period of a job's new workers."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from subprocess import Popen
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.act import worker_probes
from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, Object, launcher_pod, mpi_job, worker_pod
from webhook.rules import mutate, worker_grace

HOOKED = [{"name": "proxy", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}]


def created(pod: Object, *, template: Object | None = None, drain: str | None = None, **job: Any) -> Object:
    """The pod as it becomes, with this pod spec of the template and this drain-timeout; 30 s is Kubernetes' default."""
    pod["spec"].setdefault("terminationGracePeriodSeconds", 30)
    made = mpi_job(**{"command": ELASTIC, "annotations": {names.DRAIN_TIMEOUT: drain} if drain else {}, **job})
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] |= template or {}
    facts = job_facts.read(json.dumps(made).encode())
    changed: Object = jsonpatch.apply_patch(pod, worker_grace.fitting(msgspec.convert(pod, mutate.Pod), facts))
    return changed


def told(pod: Object) -> tuple[int, bool]:
    """Its seconds, and whether it ends by itself when no rank needs them."""
    main = pod["spec"]["containers"][0]
    assert (main["command"], main["args"]) in ((["sleep"], ["365d"]), (["/bin/sh", "-c"], [worker_grace.MAIN]))
    return pod["spec"]["terminationGracePeriodSeconds"], main["command"] != ["sleep"]


@pytest.mark.parametrize(("drain", "seconds"), [(None, 60), ("2m", 120), ("90500ms", 91), ("10s", 30), ("0s", 30)])
def test_a_worker_gets_at_least_its_drain_timeout(drain: str | None, seconds: int) -> None:
    assert told(created(worker_pod(), drain=drain)) == (seconds, True)


def test_nothing_else_of_it_changes() -> None:
    pod, changed = worker_pod(), created(worker_pod())
    main = changed["spec"]["containers"][0]
    containers = [{**main, "command": ["sleep"], "args": ["365d"]}]
    assert {**changed, "spec": {**changed["spec"], "containers": containers}} == {
        **pod,
        "spec": {**pod["spec"], "terminationGracePeriodSeconds": 60},
    }
    assert created(json.loads(json.dumps(changed))) == changed


def test_the_container_of_the_ranks_is_found_behind_one_that_was_put_before_it() -> None:
    pod = worker_pod()
    pod["spec"]["containers"].insert(0, {"name": "proxy", "image": "i"})
    assert [one.get("command") for one in created(pod)["spec"]["containers"]] == [None, ["/bin/sh", "-c"]]


def test_what_another_webhook_has_made_longer_stays() -> None:
    pod = worker_pod()
    pod["spec"]["terminationGracePeriodSeconds"] = 600
    assert told(created(pod)) == (600, True)


@pytest.mark.parametrize("seconds", [0, 30, 300])
def test_a_period_in_the_template_is_the_users_word(seconds: int) -> None:
    pod = worker_pod()
    pod["spec"]["terminationGracePeriodSeconds"] = seconds
    assert told(created(pod, template={"terminationGracePeriodSeconds": seconds})) == (seconds, False)


@pytest.mark.parametrize("command", [["sleep", "infinity"], ["/usr/sbin/sshd", "-D"]])
def test_so_is_a_command(command: list[str]) -> None:
    pod = worker_pod()
    pod["spec"]["containers"][0] |= {"command": command, "args": []}
    pod["spec"]["terminationGracePeriodSeconds"] = 30
    assert created(json.loads(json.dumps(pod))) == pod


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_hook_has_the_period_that_its_author_knew(containers: str) -> None:
    pod = worker_pod()
    pod["spec"].setdefault(containers, []).extend(HOOKED)
    assert told(created(pod)) == (30, False)


def test_a_plain_job_and_the_workers_of_a_newer_operator_stay_as_they_are() -> None:
    newer = worker_pod()
    newer["metadata"]["labels"]["replica-index"] = "0"
    assert told(created(worker_pod(), command=["mpirun"])) == told(created(newer)) == (30, False)


def test_a_launcher_stays_as_it_is() -> None:
    assert created(launcher_pod())["spec"]["containers"] == launcher_pod()["spec"]["containers"]


def test_a_worker_of_an_earlier_job_of_that_name_or_an_unknown_one_stays_as_it_is() -> None:
    pod = worker_pod()
    assert worker_grace.fitting(msgspec.convert(pod, mutate.Pod), None) == ()
    pod["metadata"]["ownerReferences"][0]["uid"] = "of an earlier job"
    assert told(created(pod)) == (30, False)


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
    ],
)
def test_the_main_process_ends_with_the_last_rank_and_says_so(
    ranks: str, least: float, most: float, words: str, tmp_path: Path
) -> None:
    """As process 1 of a container.

    late: a driver with the old list starts a rank 3 s after SIGTERM. told: the controller says that the worker drained.
    """
    log = tmp_path / "termination-log"
    main_process = worker_grace.MAIN.replace("/dev/termination-log", str(log))
    begins = ranks.removeprefix("late").removeprefix("told").removeprefix("; ")
    ends = Popen([*NAMESPACE, "/bin/sh", "-c", begins + main_process])
    time.sleep(1)
    (main,) = Path(f"/proc/{ends.pid}/task/{ends.pid}/children").read_text().split()
    if ranks.startswith("told"):
        log.write_text(f"{names.RANKS_LEFT}\n")
    began = time.monotonic()
    os.kill(int(main), signal.SIGTERM)
    if ranks == "late":
        time.sleep(3)
        subprocess.run(["nsenter", "--target", main, "--pid", "--mount", "sleep", "2"], check=True)
    assert ends.wait(30) == 0
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
        container = Popen([*NAMESPACE, "/bin/sh", "-c", ranks + main_process], stdin=subprocess.PIPE)
        time.sleep(1)
        (main,) = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        os.kill(int(main), signal.SIGTERM)
        time.sleep(1)
        inside = ["nsenter", "--target", main, "--pid", "--mount"]
        told = subprocess.run([*inside, "/bin/sh", "-c", worker_probes.END], check=True, capture_output=True, text=True)
        assert told.stdout == "told\n"
        if ends:
            assert container.wait(10) == 0
        else:
            assert "sleep" in subprocess.run([*inside, "ps", "-A"], check=True, capture_output=True, text=True).stdout
            container.kill()
            container.wait()
    assert log.read_text() == f"{names.RANKS_LEFT}\n"
