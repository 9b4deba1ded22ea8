"""What is to become of a worker: one goal, by the order of class Goal, and what its table promises."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.decide import decide, derive, host_list
from mpijob_elastic.decide.actions import DeleteWorkers
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import Goal
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, pods, worker
from tests.product.decide.plans import state
from tests.product.properties.test_wishes import seeds, wished
from tests.product.properties.views import jobs

(POD,) = pods(2)


@dataclass(frozen=True)
class Wisher(Capability):
    """Wishes that the third worker leaves."""

    kind: LeaveKind
    name = "wisher"

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        yield Leave(by=self.name, pod=POD, kind=self.kind, why="it is wished")


def third(last: Worker, *, wish: LeaveKind | None = None, **facts: Any) -> JobView:
    """A job of three whose third worker is `last`, with a wish that it leaves."""
    view = job(3, workers=(worker(0), worker(1), last), **facts)
    return view if wish is None else replace(view, capabilities=(Wisher(wish),))


WELL, ENDED = worker(2), failed(2)
NEVER_REPLACED = Policy(replace_failed_workers=False)
NEEDS_ALL = Policy(min_replicas=3)


@pytest.mark.parametrize(
    ("view", "goal"),
    [
        pytest.param(third(WELL), Goal.STAY, id="well"),
        pytest.param(third(WELL, replicas=2), Goal.LEAVE, id="surplus"),
        pytest.param(third(ENDED, replicas=2), Goal.LEAVE, id="surplus, and it has ended"),
        pytest.param(third(ENDED), Goal.REPLACE, id="it has ended"),
        pytest.param(third(ENDED, policy=NEVER_REPLACED), Goal.STAY, id="it ended and is kept"),
        pytest.param(third(failed(2, deleting=True)), Goal.STAY, id="somebody deletes it"),
        pytest.param(third(WELL, wish=LeaveKind.END), Goal.LEAVE, id="its quota is wanted"),
        pytest.param(
            third(ENDED, wish=LeaveKind.END), Goal.LEAVE, id="so it is, of one that ended"
        ),
        pytest.param(third(WELL, wish=LeaveKind.REPLACE), Goal.REPLACE, id="useless where it is"),
        pytest.param(
            third(WELL, wish=LeaveKind.REPLACE, replicas=2), Goal.LEAVE, id="useless and surplus"
        ),
        pytest.param(third(WELL, wish=LeaveKind.MOVE), Goal.MOVE, id="to train elsewhere"),
        pytest.param(
            third(WELL, wish=LeaveKind.MOVE, policy=NEEDS_ALL), Goal.WAIT, id="none can do without"
        ),
        pytest.param(
            third(ENDED, wish=LeaveKind.MOVE), Goal.REPLACE, id="it ended before it moved"
        ),
        pytest.param(
            third(WELL, wish=LeaveKind.MOVE, replicas=2), Goal.LEAVE, id="to move, and surplus"
        ),
    ],
)
def test_the_first_goal_that_holds_counts(view: JobView, goal: Goal) -> None:
    assert state(view).by_name[POD].goal is goal


TWO_LISTED = config(pods(0, 1))


@pytest.mark.parametrize(
    ("view", "is_listed"),
    [
        pytest.param(third(WELL), True, id="STAY"),
        pytest.param(third(WELL, config=TWO_LISTED), True, id="STAY joins"),
        pytest.param(third(WELL, wish=LeaveKind.REPLACE), True, id="REPLACE"),
        pytest.param(
            third(WELL, wish=LeaveKind.REPLACE, config=TWO_LISTED), True, id="REPLACE joins"
        ),
        pytest.param(third(ENDED), False, id="REPLACE, and it has ended"),
        pytest.param(third(WELL, wish=LeaveKind.MOVE, policy=NEEDS_ALL), True, id="WAIT"),
        pytest.param(third(WELL, wish=LeaveKind.MOVE), False, id="MOVE"),
        pytest.param(
            third(WELL, wish=LeaveKind.MOVE, config=TWO_LISTED), False, id="MOVE does not join"
        ),
        pytest.param(third(WELL, replicas=2), False, id="LEAVE"),
        pytest.param(third(WELL, replicas=2, config=TWO_LISTED), False, id="LEAVE does not join"),
        pytest.param(third(WELL, wish=LeaveKind.END), False, id="LEAVE by a wish"),
        pytest.param(third(WELL, replicas=2, elastic=False), True, id="LEAVE, not elastic"),
    ],
)
def test_the_goal_tells_whether_a_ready_worker_is_listed(view: JobView, is_listed: bool) -> None:
    assert (POD in host_list.following(state(view)).hosts) is is_listed


LATER = NOW + 3600


@given(st.one_of(jobs, seeds.map(wished)))
def test_no_worker_joins_that_is_to_leave_or_to_move(view: JobView) -> None:
    """Later, because a change of the list waits for others."""
    found = derive(view, now=LATER)
    joins = {*host_list.following(found).hosts}.difference(view.host_of)
    never = (Goal.LEAVE, Goal.MOVE) if view.elastic else (Goal.MOVE,)
    assert not [pod for pod in joins if found.by_name[pod].goal in never]


def _deleted(view: JobView) -> list[str]:
    actions = decide(view, now=NOW).actions
    deletions = [one for one in actions if isinstance(one, DeleteWorkers)]
    return [one.worker.name for each in deletions for one in each.removals]


@given(st.one_of(jobs, seeds.map(wished)))
def test_no_worker_is_deleted_that_is_to_stay_or_to_wait(view: JobView) -> None:
    """But a worker of a job that is over or stops, or whose node is gone."""
    workers = derive(view, now=NOW).by_name
    if view.ended:
        return
    deleted = [workers[pod] for pod in _deleted(view)]
    kept = [worker for worker in deleted if worker.goal in (Goal.STAY, Goal.WAIT)]
    assert all(worker.stopped or worker.pod.facts.node_gone_at for worker in kept)
