"""Causes in a worker's pod."""

from __future__ import annotations

from typing import Any

import pytest

from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.explain.findings import Level
from mpijob_elastic.model.job import Worker
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, pending, pods, worker
from tests.unit.explain.said import of_worker

LAST = "j-worker-2"
SCHEDULER = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def last(one: Worker | None, **facts: Any) -> Any:
    """A job of three whose last worker is that one, not published."""
    others = (worker(0), worker(1))
    return job(workers=others if one is None else (*others, one), config=config(pods(0, 1)), **facts)


@pytest.mark.parametrize(
    ("one", "pod", "cause", "words"),
    [
        (None, Pod(), "missing", "no mpi-operator is at work"),
        (pending(2), Pod(unscheduled=SCHEDULER), "not-scheduled", SCHEDULER),
        (
            pending(2),
            Pod(node="n", stuck=Stuck(container="main", reason="ImagePullBackOff", message="not found")),
            "image",
            "ImagePullBackOff: not found",
        ),
        (
            pending(2),
            Pod(node="n", stuck=Stuck(container="main", reason="CrashLoopBackOff"), ended=("main: Error",)),
            "crashing",
            "main ends again and again (last time: main: Error)",
        ),
        (
            worker(2, ready_at=None),
            Pod(node="n", stuck=Stuck(container="main", reason="CrashLoopBackOff"), ended=("main: OOMKilled",)),
            "out-of-memory",
            "OOMKilled",
        ),
        (
            pending(2),
            Pod(node="n", stuck=Stuck(container="main", reason="CreateContainerConfigError", message='secret "s"')),
            "cannot-start",
            'CreateContainerConfigError: secret "s"',
        ),
        (pending(2), Pod(node="n"), "starting", "on node n"),
        (
            worker(2, ready_at=None),
            Pod(node="n", unready="containers with unready status: [main]"),
            "not-ready",
            "[main]",
        ),
        (worker(2, ready_at=None), Pod(node="n"), "not-ready", "its node does not answer"),
    ],
)
def test_what_keeps_a_pod_from_being_ready(one: Worker | None, pod: Pod, cause: str, words: str) -> None:
    found = of_worker(last(one), 2, pods={LAST: pod})
    assert found.cause == cause
    assert words in found.says
    assert found.next_step


def test_why_the_operator_creates_no_worker_is_in_its_own_words() -> None:
    event = "MPIJobFailed: worker pod created failed: exceeded quota: gpus"
    found = of_worker(last(None), 2, events={"j": event})
    assert event in found.says
    assert found.next_step == "kubectl -n default describe mpijob j"


def test_an_event_on_a_pod_that_starts_is_told() -> None:
    found = of_worker(last(pending(2)), 2, events={LAST: "FailedMount: no such volume"})
    assert (found.cause, found.level) == ("starting", Level.WAITING)
    assert "FailedMount: no such volume" in found.says


@pytest.mark.parametrize("late", [None, -20.0, 0.0, 29.0])
def test_a_pod_that_is_given_time_to_end(late: float | None) -> None:
    pod = Pod(node="n", deadline=None if late is None else NOW - late, disrupted="preempted")
    found = of_worker(last(worker(2, deleting=True)), 2, pods={LAST: pod})
    assert (found.cause, found.level) == ("terminating", Level.WAITING)
    assert "preempted" in found.says


def test_a_pod_that_should_be_gone_tells_of_its_node() -> None:
    found = of_worker(last(worker(2, deleting=True)), 2, pods={LAST: Pod(node="n", deadline=NOW - 40.0)})
    assert (found.cause, found.level) == ("lost-node", Level.WRONG)
    assert "40s ago" in found.says
    assert "delete pod j-worker-2 --force" in found.says
    assert found.next_step == "kubectl describe node n"


FAILED = failed(2, last_state="Failed; Evicted on node n")


def test_a_failed_worker_that_is_replaced() -> None:
    memory = Memory(replaced={LAST: Tries(count=2, at=NOW - 4.0, uid=FAILED.ref.uid)})
    view = job(workers=(worker(0), worker(1), FAILED), config=config(pods(0, 1), memory=memory))
    found = of_worker(view, 2, pods={LAST: Pod(node="n", message="The node was low on memory")})
    assert (found.cause, found.level) == ("failed", Level.WAITING)
    assert "Failed; Evicted on node n: The node was low on memory" in found.says
    assert "replaced in 6s" in found.says


@pytest.mark.parametrize(
    ("one", "facts", "words"),
    [
        (failed(2, succeeded=True), {}, "ended as a success"),
        (FAILED, {"elastic": False}, "the job is not elastic"),
        (FAILED, {"policy": Policy(replace_failed_workers=False)}, "as the job's annotation says"),
    ],
)
def test_a_failed_worker_that_is_not_replaced(one: Worker, facts: dict[str, Any], words: str) -> None:
    found = of_worker(last(one, **facts), 2)
    assert (found.cause, found.level) == ("failed", Level.WRONG)
    assert words in found.says


def test_one_that_was_killed_for_its_memory_is_named_so() -> None:
    found = of_worker(last(FAILED), 2, pods={LAST: Pod(node="n", ended=("main: OOMKilled",))})
    assert found.cause == "out-of-memory"
