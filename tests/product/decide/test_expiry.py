"""Finished jobs that are to be deleted after a while."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import DeleteJob, DeleteWorkers, TellUser
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.queue import Queue
from tests.builders import LONG_AGO, NOW, config, job, launcher, pods

TTL = 600


def over(*, ago: float = TTL, **facts: Any) -> JobView:
    """A job of two that ended `ago` and is to be deleted ten minutes after its end."""
    facts = {"finished": True, "ended_at": NOW - ago, "ttl": TTL, "launcher": None, **facts}
    return job(2, **facts)


@pytest.mark.parametrize(
    ("view", "deleted"),
    [
        (over(), True),
        (over(ago=TTL + 1e6), True),
        (over(ago=0, ttl=0), True),
        (over(ago=TTL - 0.1), False),
        (over(ago=-60, ttl=0), False),  # the operator's clock is ahead
        (over(elastic=False), True),
        (over(launcher=launcher(LauncherPhase.FINISHED)), True),
        (over(launcher=launcher()), False),
        (over(config=None, role=None, workers=()), True),
        (over(clean_pod_policy="Running", replicas=1), True),
        (over(ttl=None), False),
        (over(ended_at=None), False),
        (over(finished=False, ended_at=None), False),
        (over(deleting=True), False),
        (over(foreign="another's"), False),
        (over(queue=Queue(name="team")), True),
        # MultiKueue deletes its copy once it knows the end; of one that is gone before it would make another.
        (over(queue=Queue(name="team", prebuilt=True)), False),
    ],
)
def test_when_it_is_deleted(view: JobView, deleted: bool) -> None:
    plan = decide(view, now=NOW)
    assert [action.ref for action in plan.actions if isinstance(action, DeleteJob)] == [view.ref] * deleted
    if deleted:
        assert plan.wake_at is None


@pytest.mark.parametrize("ended_at", [NOW, NOW - 300, NOW + 60])
def test_until_then_it_sleeps(ended_at: float) -> None:
    plan = decide(over(ended_at=ended_at), now=NOW)
    assert (plan.actions, plan.wake_at) == ((), ended_at + TTL)


def test_until_then_surplus_workers_go_as_ever() -> None:
    plan = decide(over(ago=60, clean_pod_policy="Running", replicas=1), now=NOW)
    assert [type(action) for action in plan.actions] == [DeleteWorkers]


def test_a_notice_of_its_end_is_written_first() -> None:
    memory = Memory(removed_at=NOW - 5.0, added_at=LONG_AGO)
    view = over(ago=0, ttl=0, succeeded_at=NOW, config=config(pods(0, 1), memory=memory))
    [told] = decide(view, now=NOW).actions
    assert isinstance(told, TellUser)


def test_it_says_why() -> None:
    [action] = decide(over(), now=NOW).actions
    assert isinstance(action, DeleteJob)
    assert action.due_at == NOW
    message = "j is deleted with all that it owns, 10m after its end (ttlSecondsAfterFinished)"
    assert (action.note.reason, action.note.message) == ("FinishedJobDeleted", message)
