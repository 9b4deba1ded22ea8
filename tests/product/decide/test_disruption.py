"""Workers whose node is about to go: how many leave, in which order, and how often a worker is moved."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, disruption
from mpijob_elastic.decide.actions import DeleteWorkers, Plan, ProbeWorkers, WriteConfig
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import Queue
from tests.builders import NOW, config, failed, job, launcher, pending, pods, shown, worker
from tests.product.decide.plans import remembered
from tests.queues import granted, preempted

TAINT = "taint aws-node-termination-handler/spot-itn"


def doomed(index: int, **facts: Any) -> Worker:
    """A worker on a node that is about to go."""
    return worker(index, **{"disruption": TAINT, "node": "n", **facts})


def workers(*going: int, count: int = 4) -> tuple[Worker, ...]:
    """So many workers, of which these are on such nodes."""
    return tuple(doomed(index) if index in going else worker(index) for index in range(count))


def at_least(count: int) -> Policy:
    return Policy(min_replicas=count)


def leaving(view: JobView, *, now: float) -> set[str]:
    """Pods that should not be published any more."""
    return {worker.name for worker in derive(view, now=now).workers if worker.leaves}


NEW: dict[str, Any] = {"ready_at": NOW - 29}


@pytest.mark.parametrize(
    ("view", "leave"),
    [
        (job(4, workers=workers(1, 3)), (1, 3)),
        (job(4, workers=workers(1, 3), policy=at_least(3)), (3,)),
        (job(4, workers=workers(1, 3), policy=at_least(4)), ()),
        (job(4, workers=workers(1, 3), policy=at_least(2)), (1, 3)),
        # horovodrun's own least counts as well.
        (job(4, workers=workers(1, 3), min_np_workers=3), (3,)),
        (job(4, workers=workers(1, 3), min_np_workers=3, policy=at_least(4)), ()),
        # One stays until somebody else has the training's state.
        (job(4, workers=workers(0, 1, 2, 3)), (1, 2, 3)),
        (job(4, workers=(doomed(0), doomed(1), worker(2, **NEW), worker(3, **NEW))), (1,)),
        (job(4, workers=(doomed(0), doomed(1), worker(2, **NEW), worker(3, ready_at=NOW - 30))), (0, 1)),
        # Those that have left stay out, and do not count as staying.
        (job(4, workers=workers(1, 3), config=config(pods(0, 1, 2)), policy=at_least(3)), (3,)),
        (job(4, workers=workers(1, 3), config=config(pods(0, 1, 2)), policy=at_least(2)), (1, 3)),
        (job(4, workers=workers(1, 3), config=config(pods(0, 2))), (1, 3)),
        # A replacement counts once it is published.
        (job(4, workers=workers(1), config=config(pods(0, 1, 2)), policy=at_least(3)), ()),
        # Surplus workers are about to leave themselves.
        (job(4, replicas=3, workers=workers(1, 2), policy=at_least(2)), (2,)),
        # Those that are not Ready support nobody.
        (job(4, workers=(worker(0), doomed(1), doomed(2), pending(3)), policy=at_least(2)), (2,)),
        (job(4, workers=(worker(0), worker(1), doomed(2, ready_at=None), doomed(3)), policy=at_least(2)), (2, 3)),
        # Surplus, deleted, ended: others see to them. Without a word, or without elasticity, nobody goes.
        (job(4, replicas=3, workers=workers(3)), ()),
        (job(4, workers=(*workers(count=3), doomed(3, deleting=True))), ()),
        (job(4, workers=(*workers(count=3), failed(3, disruption=TAINT))), ()),
        (job(4), ()),
        (job(4, workers=workers(1, 3), elastic=False), ()),
    ],
)
def test_as_many_leave_as_may(view: JobView, leave: tuple[int, ...]) -> None:
    assert leaving(view, now=NOW) == {*pods(*leave)}


def test_workers_whose_quota_kueue_wants_back_are_about_to_leave_too() -> None:
    """Else all four would leave at once, and training would wait for its least size."""
    found = {one.metadata.name: one for one in (granted(), preempted("j-worker-2"), preempted("j-worker-3"))}
    view = job(4, workers=workers(0, 1, 3), policy=at_least(2), queue=Queue(name="team", workloads=found))
    assert leaving(view, now=NOW) == set()
    change = next(action for action in decide(view, now=NOW).actions if isinstance(action, WriteConfig))
    assert change.removed == pods(2, 3)
    after = job(4, workers=view.workers, policy=at_least(2), queue=view.queue, config=config(pods(0, 1)))
    assert [one.name for one in derive(after, now=NOW).leaving] == [*pods(3, 2)]


def test_a_newcomer_is_waited_for_and_then_the_last_leaves() -> None:
    view = job(2, workers=(doomed(0), worker(1, **NEW)))
    assert disruption.wake_at(derive(view, now=NOW)) == NOW + 1
    assert leaving(view, now=NOW + 1) == {*pods(0)}
    assert disruption.wake_at(derive(view, now=NOW + 1)) is None
    assert disruption.wake_at(derive(job(2, workers=(worker(0), worker(1, **NEW))), now=NOW)) is None


def moved(count: int, *, uid: str = "uid-of-j-worker-3", at: float = NOW) -> Memory:
    """Return the memory of worker-3."""
    left = {"j-worker-3": Left(pod=pod_fingerprint("uid-of-j-worker-3"), at=NOW - 20)}
    return Memory(moved={"j-worker-3": Tries(count=count, at=at, uid=uid)}, left=left, removed_at=NOW - 20)


def left(memory: Memory, last: Worker | None = None, **facts: Any) -> JobView:
    """Worker-3 has left the list for its node's sake, and the launcher knew at once."""
    facts = {"config": config(pods(0, 1, 2), memory=memory), **facts}
    view = job(4, workers=(*workers(count=3), last or doomed(3)), **facts)
    return shown(view, at=NOW - 20) if view.launcher else view


def deleted(plan: Plan) -> dict[str, str]:
    removals = [removal for action in plan.actions if isinstance(action, DeleteWorkers) for removal in action.removals]
    return {removal.worker.name: removal.note.reason for removal in removals}


DRAINED = doomed(3, probe=Probe(idle_at=NOW - 1, asked_at=NOW - 1))
AGAIN = doomed(3, created_at=NOW - 5)


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (left(moved(1), DRAINED), "WorkerReplaced"),
        (left(moved(1)), None),
        (left(moved(1), policy=Policy(drain_timeout=20.0)), "DrainTimeout"),
        # Its move is not written down, or is another pod's.
        (left(moved(1, uid="before"), DRAINED), None),
        (left(Memory(left=moved(1).left), DRAINED), None),
        # It came to such a node a second and a third time.
        (left(moved(2, at=NOW - 29), DRAINED), None),
        (left(moved(2, at=NOW - 30), DRAINED), "WorkerReplaced"),
        (left(moved(3, at=NOW - 119), DRAINED), None),
        (left(moved(3, at=NOW - 120), DRAINED), "WorkerReplaced"),
        (left(moved(1), DRAINED, policy=Policy(replace_failed_workers=False)), None),
        (left(moved(1), worker(3, probe=DRAINED.probe)), None),
        (left(moved(1), DRAINED, elastic=False), None),
        (
            left(moved(1), launcher=None, config=config(pods(0, 1, 2), memory=moved(1), hostfile=pods(0, 1, 2, 3))),
            "WorkerReplaced",
        ),
    ],
)
def test_when_a_worker_is_moved(view: JobView, reason: str | None) -> None:
    assert deleted(decide(view, now=NOW)) == ({"j-worker-3": reason} if reason else {})


def test_the_reason_names_node_and_cause() -> None:
    [action] = [
        action for action in decide(left(moved(1), DRAINED), now=NOW).actions if isinstance(action, DeleteWorkers)
    ]
    assert f"{TAINT} on node n" in action.removals[0].note.message


def test_it_is_looked_into_and_waited_for_like_any_that_leaves() -> None:
    plan = decide(left(moved(1)), now=NOW)
    assert (plan.actions, [type(look) for look in plan.looks][:1]) == ((), [ProbeWorkers])
    assert decide(left(moved(2), DRAINED), now=NOW).wake_at is not None


def test_a_worker_leaves_in_one_write_with_the_count_of_its_moves() -> None:
    [change] = [
        action for action in decide(job(4, workers=workers(3)), now=NOW).actions if isinstance(action, WriteConfig)
    ]
    assert change.removed == pods(3)
    assert change.memory.moved == {"j-worker-3": Tries(count=1, at=NOW, uid="uid-of-j-worker-3")}
    assert [(note.reason, note.warning) for note in change.notes] == [("Disruption", True)]
    assert f"j-worker-3 ({TAINT} on node n)" in change.notes[0].message


@pytest.mark.parametrize(
    ("memory", "counted"),
    [
        (moved(1), Tries(count=1, at=NOW, uid="uid-of-j-worker-3")),
        (moved(1, uid="before", at=NOW - 60), Tries(count=2, at=NOW, uid="uid-of-j-worker-3")),
        (moved(1, uid="before", at=NOW - 1800), Tries(count=1, at=NOW, uid="uid-of-j-worker-3")),
        # It was moved so often that it stays.
        (moved(3, uid="before", at=NOW - 60), Tries(count=3, at=NOW - 60, uid="before")),
    ],
)
def test_each_incarnation_counts_once(memory: Memory, counted: Tries) -> None:
    assert remembered(left(memory, AGAIN)).moved == {"j-worker-3": counted}


def test_a_pod_that_comes_back_to_such_nodes_again_and_again_trains_there() -> None:
    view = left(moved(3, uid="before", at=NOW - 60), AGAIN)
    assert leaving(view, now=NOW) == set()
    [change] = [action for action in decide(view, now=NOW).actions if isinstance(action, WriteConfig)]
    assert change.added == pods(3)


def reasons(view: JobView) -> list[str]:
    return [note.reason for note in disruption.notes(derive(view, now=NOW))]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (job(4, workers=workers(1, 3)), []),
        (job(4, workers=workers(1, 3), policy=at_least(4)), ["DisruptionHeld"]),
        (left(moved(3, uid="before", at=NOW - 60), AGAIN), ["DisruptionRepeated"]),
        (job(launcher=launcher(disruption=TAINT, node="n")), ["LauncherDisrupted"]),
        (job(launcher=launcher(LauncherPhase.WAITING, disruption=TAINT)), ["LauncherDisrupted"]),
        (job(launcher=launcher(disruption=TAINT, deleting=True)), []),
        (job(launcher=launcher(disruption=TAINT), elastic=False), []),
    ],
)
def test_what_the_user_is_told(view: JobView, expected: list[str]) -> None:
    assert reasons(view) == expected


@pytest.mark.parametrize("gone", [{"deleting": True}, {"running": False, "ready_at": None, "terminated": True}])
def test_of_a_pod_that_is_evicted_the_cause_is_told_too(gone: dict[str, Any]) -> None:
    evicted = doomed(3, disruption="condition DisruptionTarget (DeletionByTaintManager)", **gone)
    plan = decide(job(4, workers=(*workers(count=3), evicted)), now=NOW)
    [change] = [action for action in plan.actions if isinstance(action, WriteConfig)]
    assert [note.reason for note in change.notes] == ["Disruption"]
    assert "DisruptionTarget (DeletionByTaintManager) on node n) removed" in change.notes[0].message
