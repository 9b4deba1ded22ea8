"""The size of a job that takes what lies idle."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, fill
from mpijob_elastic.decide.actions import Fill, WriteConfig
from mpijob_elastic.model.autoscale import Autoscale, Autoscaler
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Growth, Memory
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import NO_QUEUE, Queue
from mpijob_elastic.model.wire import Owned
from tests.builders import LONG_AGO, NOW, config, job, launcher, pending, pods, worker

POLICY = Policy(min_replicas=2, max_replicas=5, autoscale=Autoscale(fill=True))
RIVAL = Autoscaler(metadata=Owned(name="own", namespace="default", uid="h", resource_version="1", job="j"))
LONG, JUST = NOW - 30, NOW - 5


def filling(size: int = 3, *, at: float = LONG_AGO, added_at: float = LONG_AGO, **facts: Any) -> JobView:
    """A job that trains on all of its workers since then."""
    memory = Memory(growth=Growth(worked=size, asked=size, at=at), added_at=added_at)
    facts = {"policy": POLICY, "queue": NO_QUEUE, "config": config(pods(*range(size)), memory=memory), **facts}
    return job(size, **facts)


def waiting(created_at: float = LONG_AGO, **facts: Any) -> JobView:
    """The last of four has no node."""
    three, facts = (worker(0), worker(1), worker(2)), {"node": "", **facts}
    listed = config(pods(0, 1, 2), memory=Memory(growth=Growth(worked=3, asked=4, at=LONG_AGO)))
    return filling(4, workers=(*three, pending(3, created_at=created_at, **facts)), config=listed)


def size(view: JobView) -> int:
    action, _ = fill.resize(derive(view, now=NOW))
    return action.after if action else view.replicas


@pytest.mark.parametrize(
    ("view", "after"),
    [
        (filling(), 4),
        (filling(5), 5),
        (filling(max_np_workers=3), 3),
        (filling(at=NOW - 59), 3),
        (filling(added_at=NOW - 59), 3),
        (filling(launcher=launcher(LauncherPhase.DELIVERING)), 3),
        (filling(elastic=False), 3),
        (filling(autoscalers=(RIVAL,)), 3),
        (filling(queue=None), 3),
        # Another size, not yet written down.
        (filling(config=config(pods(0, 1, 2), memory=Memory(growth=Growth(worked=2, asked=2, at=0.0)))), 3),
        (filling(config=config(pods(0, 1, 2))), 3),
        # A worker that is lost comes back first.
        (filling(workers=(worker(0), worker(1))), 3),
    ],
)
def test_it_grows_by_one_worker_while_none_waits(view: JobView, after: int) -> None:
    assert size(view) == after


@pytest.mark.parametrize(
    ("view", "after"),
    [
        (waiting(), 3),
        (waiting(NOW - 119), 4),
        # It has a node, or waits for quota or a gate: that takes its time.
        (waiting(node="n"), 4),
        (waiting(gates=("mpijob-elastic/queued",)), 4),
        # The operator knows a size only, so a worker in between stays wanted.
        (filling(4, workers=(worker(0), pending(1, node=""), worker(2), worker(3))), 4),
        (filling(2, workers=(worker(0), pending(1, node=""))), 2),
    ],
)
def test_it_gives_back_what_no_node_takes(view: JobView, after: int) -> None:
    assert size(view) == after


@pytest.mark.parametrize(
    ("view", "after"),
    [
        (filling(5, others_wait=(LONG,)), 4),
        (filling(5, others_wait=(LONG, LONG, JUST)), 3),
        (filling(5, others_wait=(LONG,) * 9), 2),
        # Its own worker that waits for a node makes no room.
        (replace(waiting(JUST), others_wait=(LONG,)), 2),
        (filling(2, others_wait=(LONG,)), 2),
        (filling(5, others_wait=(LONG,), at=NOW - 59), 5),
        # Soon it will be known if they find a node by themselves.
        (filling(3, others_wait=(JUST,)), 3),
    ],
)
def test_it_gives_back_what_others_wait_for(view: JobView, after: int) -> None:
    assert size(view) == after


@pytest.mark.parametrize(("most", "after"), [(0, 5), (4, 4)])
def test_in_a_queue_it_asks_for_all_at_once(most: int, after: int) -> None:
    view = filling(queue=Queue(name="team"), at=NOW, others_wait=(LONG,), max_np_workers=most)
    assert size(view) == after
    assert fill.resize(derive(replace(filling(5), queue=Queue(name="team")), now=NOW)) == (None, None)


def test_the_event_says_why() -> None:
    due = [
        action for action in decide(filling(5, others_wait=(LONG, LONG)), now=NOW).actions if isinstance(action, Fill)
    ]
    [action] = due
    assert (action.before, action.after, action.note.reason) == (5, 3, "SizeFilled")
    assert action.note.message == "Worker.replicas 5 → 3: other jobs wait for nodes for 2 of their workers"


def test_it_looks_again_and_a_suspended_job_does_not() -> None:
    assert decide(filling(5), now=NOW).wake_at == NOW + fill.EVERY
    assert decide(filling(at=NOW - 10, added_at=NOW - 5), now=NOW).wake_at == NOW + 55
    stopped = decide(filling(suspended_by="annotation"), now=NOW)
    assert not any(isinstance(action, Fill) for action in stopped.actions)


def test_a_new_size_is_remembered_before_the_next() -> None:
    plan = decide(filling(at=NOW, config=config(pods(0, 1, 2), memory=Memory())), now=NOW)
    [change] = [action for action in plan.actions if isinstance(action, WriteConfig)]
    assert change.memory.growth == Growth(worked=3, asked=3, at=NOW)
    assert not any(isinstance(action, Fill) for action in plan.actions)
