"""Causes in a worker's pod."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.explain.findings import Level
from mpijob_elastic.model.job import JobView, LauncherPhase, Worker
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, launcher, pending, pods, worker
from tests.product.explain.said import of_job, of_worker
from tests.queues import granted, waiting, workload

LAST = "j-worker-2"
SCHEDULER = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def last(pod: Worker | None, **facts: Any) -> Any:
    """A job of three whose last worker is that pod, not published."""
    others = (worker(0), worker(1))
    return job(workers=others if pod is None else (*others, pod), config=config(pods(0, 1)), **facts)


@pytest.mark.parametrize(
    ("worker_pod", "pod", "cause", "words"),
    [
        (None, Pod(), "missing", "check that mpi-operator is running"),
        (pending(2), Pod(unscheduled=SCHEDULER), "not-scheduled", SCHEDULER),
        (
            pending(2),
            Pod(stuck=Stuck(container="main", reason="ImagePullBackOff", message="not found")),
            "image",
            "ImagePullBackOff: not found",
        ),
        (
            pending(2),
            Pod(stuck=Stuck(container="main", reason="CrashLoopBackOff"), ended=("main: Error",)),
            "crashing",
            "crashes repeatedly in container main (last exit: main: Error)",
        ),
        (
            worker(2, ready_at=None, out_of_memory=True),
            Pod(stuck=Stuck(container="main", reason="CrashLoopBackOff"), ended=("main: OOMKilled",)),
            "out-of-memory",
            "OOMKilled",
        ),
        (
            pending(2),
            Pod(stuck=Stuck(container="main", reason="CreateContainerConfigError", message='secret "s"')),
            "cannot-start",
            'CreateContainerConfigError: secret "s"',
        ),
        (pending(2, node="n"), Pod(), "starting", "on node n"),
        (
            worker(2, ready_at=None),
            Pod(unready="containers with unready status: [main]"),
            "not-ready",
            "[main]",
        ),
        (worker(2, ready_at=None), Pod(), "not-ready", "its node does not respond"),
    ],
)
def test_what_keeps_a_pod_from_being_ready(worker_pod: Worker | None, pod: Pod, cause: str, words: str) -> None:
    found = of_worker(last(worker_pod), 2, pods={LAST: pod})
    assert found.cause == cause
    assert words in found.says
    assert found.next_step


def test_why_the_operator_creates_no_worker_is_in_its_own_words() -> None:
    event = "MPIJobFailed: worker pod created failed: exceeded quota: gpus"
    found = of_worker(last(None), 2, events={"j": event})
    assert f"Its last warning: {event}. The operator tries again at most 1,000 s after" in found.says
    assert found.next_step == "kubectl -n default describe mpijob j"


def test_an_event_on_a_pod_that_starts_is_shown() -> None:
    found = of_worker(last(pending(2)), 2, events={LAST: "FailedMount: no such volume"})
    assert (found.cause, found.level) == ("starting", Level.WAITING)
    assert "FailedMount: no such volume" in found.says


@pytest.mark.parametrize("late", [None, -20.0, 0.0, 59.0])
def test_a_pod_that_is_given_time_to_end(late: float | None) -> None:
    going = worker(2, deleting=True, disruption="preempted", ends_at=None if late is None else NOW - late)
    found = of_worker(last(going), 2, pods={LAST: Pod()})
    assert (found.cause, found.level) == ("terminating", Level.WAITING)
    assert "preempted" in found.says


def test_a_pod_that_should_be_gone_tells_of_its_node() -> None:
    found = of_worker(last(worker(2, deleting=True, ends_at=NOW - 70.0, node="n")), 2)
    assert (found.cause, found.level) == ("lost-node", Level.WRONG)
    assert "1m10s ago" in found.says
    assert "delete pod j-worker-2 --grace-period=0 --force" in found.says
    assert found.next_step == "kubectl describe node n"


FAILED = failed(2, last_state="Failed; Evicted on node n")


def failures(count: int) -> JobView:
    """The last worker failed so often, the last time 4 s ago."""
    memory = Memory(replaced={LAST: Tries(count=count, at=NOW - 4.0, uid=FAILED.ref.uid)})
    return job(workers=(worker(0), worker(1), FAILED), config=config(pods(0, 1), memory=memory))


def test_a_failed_worker_that_is_replaced() -> None:
    found = of_worker(failures(2), 2, pods={LAST: Pod(message="The node was low on memory")})
    assert (found.cause, found.level) == ("failed", Level.WAITING)
    assert "Failed; Evicted on node n: The node was low on memory" in found.says
    assert "the controller replaces it in 6s" in found.says


def test_a_worker_that_failed_too_often_is_given_up() -> None:
    found = of_worker(failures(8), 2)
    assert (found.cause, found.level) == ("given-up", Level.WRONG)
    assert "failed 8 times (Failed; Evicted on node n) and is not replaced for 59m56s" in found.says
    assert found.next_step == "kubectl -n default delete pod j-worker-2"


@pytest.mark.parametrize(
    ("pod", "facts", "words"),
    [
        (failed(2, succeeded=True), {}, "ended with success"),
        (FAILED, {"elastic": False}, "the job is not elastic"),
        (FAILED, {"policy": Policy(replace_failed_workers=False)}, 'mpijob-elastic/replace-failed-workers="false"'),
    ],
)
def test_a_failed_worker_that_is_not_replaced(pod: Worker, facts: dict[str, Any], words: str) -> None:
    found = of_worker(last(pod, **facts), 2)
    assert (found.cause, found.level) == ("failed", Level.WRONG)
    assert words in found.says


def test_a_worker_killed_for_its_memory_is_named_so() -> None:
    assert of_worker(last(failed(2, out_of_memory=True)), 2).cause == "out-of-memory"


def test_a_pod_at_a_gate_names_it_and_a_worker_of_a_stopped_job_is_about_to_go() -> None:
    gates = (names.GATE_SUSPENDED,)
    held = launcher(LauncherPhase.WAITING, gates=gates)
    workers = (worker(0), pending(1, gates=gates))
    view = job(2, workers=workers, launcher=held, config=config([]), known=False, suspended_by="annotation x")
    assert of_worker(view, 0).cause == "suspending"
    found = of_worker(view, 1)
    assert (found.cause, found.level) == ("gated", Level.WAITING)
    assert names.GATE_SUSPENDED in found.says
    said = of_job(view)
    assert "is suspended by annotation x" in said["suspended"].says
    assert names.GATE_SUSPENDED in said["launcher-stuck"].says


def test_a_pod_that_waits_for_quota_says_where_and_why() -> None:
    view = waiting(3, granted(), workload("j-worker-2", said="insufficient\n quota"), policy=Policy(min_replicas=2))
    found = of_worker(view, 2, places={"uid-of-j-worker-2": 4})
    assert (found.cause, found.level) == ("queued", Level.WAITING)
    assert found.says == "j-worker-2 waits at place 4 in queue team: insufficient quota"
    assert found.next_step == "kubectl -n default describe workload j-worker-2"
    assert of_worker(view, 0).cause == "gated"
    held = of_job(waiting(2, workload(said="insufficient")))["queued"]
    assert held.says == "j-launcher waits in queue team: insufficient"
