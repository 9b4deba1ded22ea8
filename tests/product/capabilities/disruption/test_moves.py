"""Workers whose node is about to go: how many leave, in which order, and how often a worker is moved."""

from typing import Any

import pytest

from mpijob_elastic.decide import capability, decide, derive, moves, notices
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    NOW,
    Story,
    config,
    failed,
    job,
    launcher,
    left,
    pending,
    pods,
    tries,
    worker,
)
from tests.product.decide.plans import change, does, note, remembered, those
from tests.queues import granted, preempted, queue

TAINT = "taint aws-node-termination-handler/spot-itn"


def doomed(index: int, **facts: Any) -> Worker:
    """A worker on a node that is about to go."""
    return worker(index, **{"disruption": TAINT, "node": "n", **facts})


def workers(*going: int, count: int = 4) -> tuple[Worker, ...]:
    """So many workers, of which these are on such nodes."""
    return tuple(doomed(index) if index in going else worker(index) for index in range(count))


def at_least(count: int) -> Policy:
    return Policy(min_replicas=count)


def leaving(view: JobView, *, now: float = NOW) -> tuple[str, ...]:
    """Pods that should not be published any more."""
    return those(view, lambda worker: worker.moves_now, now=now)


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
        (
            job(4, workers=(doomed(0), doomed(1), worker(2, **NEW), worker(3, ready_at=NOW - 30))),
            (0, 1),
        ),
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
        (
            job(
                4,
                workers=(worker(0), worker(1), doomed(2, ready_at=None), doomed(3)),
                policy=at_least(2),
            ),
            (2, 3),
        ),
        # Surplus, deleted, ended: others see to them. Without a word, or without elasticity, nobody
        # goes.
        (job(4, replicas=3, workers=workers(3)), ()),
        (job(4, workers=(*workers(count=3), doomed(3, deleting=True))), ()),
        (job(4, workers=(*workers(count=3), failed(3, disruption=TAINT))), ()),
        (job(4), ()),
        (job(4, workers=workers(1, 3), elastic=False), ()),
    ],
)
def test_as_many_leave_as_may(view: JobView, leave: tuple[int, ...]) -> None:
    assert leaving(view) == pods(*leave)


def test_workers_whose_quota_kueue_wants_back_are_about_to_leave_too() -> None:
    """Else all four would leave at once, and training would wait for its least size."""
    found = queue(granted(), preempted("j-worker-2"), preempted("j-worker-3"))
    view = job(4, workers=workers(0, 1, 3), policy=at_least(2), queue=found)
    assert leaving(view) == ()
    assert does(view) == "publish 0 1 (Draining); ready launcher"
    after = view.but(config=config(pods(0, 1)))
    assert [one.name for one in derive(after, now=NOW).to_delete] == [*pods(3, 2)]


def test_a_newcomer_is_waited_for_and_then_the_last_leaves() -> None:
    view = job(2, workers=(doomed(0), worker(1, **NEW)))
    assert moves.wake_at(derive(view, now=NOW)) == NOW + 1
    assert leaving(view, now=NOW + 1) == pods(0)
    assert moves.wake_at(derive(view, now=NOW + 1)) is None
    assert moves.wake_at(derive(job(2).pod(1, **NEW), now=NOW)) is None


def moved(count: int, *, uid: str = "uid-of-j-worker-3", ago: float = 0.0) -> Memory:
    """Return the memory of worker-3."""
    counted = {"j-worker-3": tries(count, ago=ago, uid=uid)}
    return Memory(
        moved=counted, left={"j-worker-3": left("j-worker-3", ago=20)}, removed_at=NOW - 20
    )


def out(memory: Memory, last: Worker | None = None, **facts: Any) -> Story:
    """Worker-3 has left the list for its node's sake, and the launcher knew at once."""
    view = job(
        4,
        config=config(pods(0, 1, 2), memory=memory),
        workers=(*workers(count=3), last or doomed(3)),
        **facts,
    )
    return view.shown(at=NOW - 20)


DRAINED = doomed(3, probe=Probe(idle_at=NOW - 1, asked_at=NOW - 1))
AGAIN = doomed(3, created_at=NOW - 5)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (out(moved(1), DRAINED), "delete 3:drained"),
        (out(moved(1)), "probe 3; wake 40"),
        (out(moved(1), policy=Policy(drain_timeout=20.0)), "delete 3:timeout"),
        # Its move is not written down, or is another pod's.
        (out(moved(1, uid="before"), DRAINED), "remember left moved"),
        (out(Memory(left=moved(1).left), DRAINED), "remember left moved"),
        # It came to such a node a second and a third time.
        (out(moved(2, ago=29), DRAINED), "wake 1"),
        (out(moved(2, ago=30), DRAINED), "delete 3:drained"),
        (out(moved(3, ago=119), DRAINED), "wake 1"),
        (out(moved(3, ago=120), DRAINED), "delete 3:drained"),
        (out(moved(1), DRAINED, policy=Policy(replace_failed_workers=False)), "nothing"),
        (out(moved(1), worker(3, probe=DRAINED.probe)), "publish 0 1 2 3 (HostsPublished)"),
        (out(moved(1), DRAINED, elastic=False), "publish 0 1 2 3 (HostsPublished)"),
        (
            out(moved(1), launcher=None).configured(
                hostfile=config(pods(0, 1, 2, 3)).facts.hostfile
            ),
            "delete 3:idle",
        ),
    ],
)
def test_when_a_worker_is_moved(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_the_words_of_a_move() -> None:
    moves = note(out(moved(1), DRAINED))
    assert moves.reason == "WorkerReplaced"
    assert f"{TAINT} on node n" in moves.message
    leaves = note(job(4, workers=workers(3)))
    assert (leaves.reason, leaves.warning) == ("Disruption", True)
    assert f"j-worker-3 ({TAINT} on node n)" in leaves.message


def test_a_worker_leaves_in_one_write_with_the_count_of_its_moves() -> None:
    view = job(4, workers=workers(3))
    assert does(view) == "publish 0 1 2 (Disruption)"
    assert change(view).memory.moved == {"j-worker-3": tries(1, uid="uid-of-j-worker-3")}


@pytest.mark.parametrize(
    ("memory", "counted"),
    [
        (moved(1), tries(1, uid="uid-of-j-worker-3")),
        (moved(1, uid="before", ago=60), tries(2, uid="uid-of-j-worker-3")),
        (moved(1, uid="before", ago=1800), tries(1, uid="uid-of-j-worker-3")),
        # It was moved so often that it stays.
        (moved(3, uid="before", ago=60), tries(3, ago=60, uid="before")),
    ],
)
def test_each_incarnation_counts_once(memory: Memory, counted: Tries) -> None:
    assert remembered(out(memory, AGAIN)).moved == {"j-worker-3": counted}


def test_a_pod_that_comes_back_to_such_nodes_again_and_again_trains_there() -> None:
    view = out(moved(3, uid="before", ago=60), AGAIN)
    assert leaving(view) == ()
    assert does(view) == "publish 0 1 2 3 (HostsPublished)"


def reasons(view: JobView) -> list[str]:
    state = derive(view, now=NOW)
    own = (note for one in capability.of(state.view) for note in one.notes(state))
    return [note.reason for note in (*moves.notes(state), *own)]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (job(4, workers=workers(1, 3)), []),
        (job(4, workers=workers(1, 3), policy=at_least(4)), ["DisruptionHeld"]),
        (out(moved(3, uid="before", ago=60), AGAIN), ["DisruptionRepeated"]),
        (job(launcher=launcher(disruption=TAINT, node="n")), ["LauncherDisrupted"]),
        (job(launcher=launcher(LauncherPhase.WAITING, disruption=TAINT)), ["LauncherDisrupted"]),
        (job(launcher=launcher(disruption=TAINT, deleting=True)), []),
        (job(launcher=launcher(disruption=TAINT), elastic=False), []),
    ],
)
def test_what_the_user_is_told(view: JobView, expected: list[str]) -> None:
    assert reasons(view) == expected


@pytest.mark.parametrize(
    "gone", [{"deleting": True}, {"running": False, "ready_at": None, "terminated": True}]
)
def test_of_a_pod_that_is_evicted_the_cause_is_told_too(gone: dict[str, Any]) -> None:
    evicted = doomed(3, disruption="condition DisruptionTarget (DeletionByTaintManager)", **gone)
    view = job(4, workers=(*workers(count=3), evicted))
    assert does(view) == "publish 0 1 2 (Disruption)"
    assert "DisruptionTarget (DeletionByTaintManager) on node n) removed" in note(view).message


def test_a_notice_on_thousands_of_workers_is_short() -> None:
    """An annotation has limits, and what the API server refuses would be told again and again."""
    count = 2_500
    doomed_all = job(count, workers=workers(*range(count), count=count), policy=at_least(count))
    late: dict[str, Any] = {"deleting": True, "ends_at": NOW - 600}
    stuck = tuple(worker(index, node=f"node-{index}", **late) for index in range(1, count))
    for view in (doomed_all, job(count, workers=(worker(0), *stuck))):
        told, _ = notices.tell(derive(view, now=NOW))
        assert told is not None
        assert len(told.text) < 3_000


def test_a_sign_that_counts_later_is_looked_at_again_then() -> None:
    view = job(4, workers=(*workers(count=3), doomed(3, disruption_from=NOW + 600)))
    assert does(view) == "wake 600"
    assert does(view, now=NOW + 600) == "publish 0 1 2 (Disruption)"
    assert leaving(view, now=NOW + 599) == ()
    assert leaving(view, now=NOW + 600) == pods(3)


def test_a_launcher_is_told_of_when_its_sign_counts() -> None:
    later, now = (launcher(disruption=TAINT, disruption_from=at) for at in (NOW + 60, NOW))
    assert decide(job(launcher=later), now=NOW).wake_at == NOW + 60
    assert reasons(job(launcher=later)) == []
    assert reasons(job(launcher=now)) == ["LauncherDisrupted"]
