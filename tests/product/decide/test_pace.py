"""Deletions that repeat: each further one of a pod waits longer, whoever asks for it."""

from dataclasses import replace

import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide import decide, pace
from mpijob_elastic.decide.actions import DeleteWorkers
from mpijob_elastic.decide.state import DELETED, FORGIVEN_AFTER
from mpijob_elastic.decide.step import Step
from mpijob_elastic.model.job import Deleted, JobView
from tests.builders import NOW, but, failed, job, launcher, pending, worker
from tests.product.decide.plans import does, notes, removals, state

# Three workers, of which the last two have left the list, and are empty.
SURPLUS = job(1).shrunk(from_=3).drained(1, 2)
PLACEHOLDER = capabilities.told(
    replace(job(2), placeholders=(pending(1, gates=(names.GATE_PARKED,)),), workers=(worker(0),))
)
SUSPENDED = job(1, suspended_by="annotation x", launcher=launcher(created_at=NOW - 60))


def deleted(view: JobView, pod: str, *, times: int, ago: float) -> JobView:
    return replace(view, deleted={pod: Deleted(count=times, ago=ago)})


@pytest.mark.parametrize(("times", "pause"), [*enumerate(DELETED.delays[1:], 1), (99, 300.0)])
def test_each_further_deletion_of_a_pod_waits_longer(times: int, pause: float) -> None:
    early = deleted(SURPLUS, "j-worker-2", times=times, ago=pause - 0.5)
    assert [one.worker.name for one in removals(early)] == ["j-worker-1"]
    assert decide(early, now=NOW).wake_at == NOW + 0.5
    due = deleted(SURPLUS, "j-worker-2", times=times, ago=pause)
    assert [one.worker.name for one in removals(due)] == ["j-worker-2", "j-worker-1"]


def test_the_pauses_grow() -> None:
    assert [*DELETED.delays] == sorted(DELETED.delays)
    assert DELETED.delays[0] == 0.0


@pytest.mark.parametrize(
    ("view", "pod", "words"),
    [
        pytest.param(SURPLUS, "j-worker-2", "delete 2", id="a worker"),
        pytest.param(PLACEHOLDER, "j-worker-1", "delete the placeholder", id="a placeholder"),
        pytest.param(SUSPENDED, "j-launcher", "delete launcher", id="a launcher"),
    ],
)
def test_every_deletion_of_a_pod_has_this_pace(view: JobView, pod: str, words: str) -> None:
    assert words in does(view)
    early = deleted(view, pod, times=3, ago=1.0)
    assert words not in does(early)
    wake_at = decide(early, now=NOW).wake_at
    assert wake_at is not None
    assert wake_at <= NOW + 4.0
    assert words in does(deleted(view, pod, times=3, ago=5.0))


def test_a_deletion_of_long_ago_is_forgiven() -> None:
    view = deleted(SURPLUS, "j-worker-2", times=99, ago=FORGIVEN_AFTER)
    assert len(removals(view)) == 2


def test_only_the_deletions_that_wait_are_left_out() -> None:
    [action] = [one for one in decide(SURPLUS, now=NOW).actions if isinstance(one, DeleteWorkers)]
    assert action.deletes() == ("j-worker-2", "j-worker-1")
    left = action.without({"j-worker-2"})
    assert left is not None
    assert left.deletes() == ("j-worker-1",)
    assert action.without({"j-worker-1", "j-worker-2"}) is None


def test_the_looks_of_a_job_at_rest_do_not_wait_for_a_deletion_that_waits() -> None:
    plan = pace.paced(
        state(deleted(SURPLUS, "j-worker-2", times=9, ago=0.0)),
        Step(DeleteWorkers(removals=removals(SURPLUS)[:1])),
    )
    assert plan == (None, NOW + 300.0)


def test_the_user_is_told_of_deletions_in_vain() -> None:
    assert "DeletedInVain" not in told(times=3)
    assert "DeletedInVain" in told(times=4)
    gone = replace(deleted(SURPLUS, "j-worker-9", times=9, ago=0.0))
    assert not [note for note in notes(gone) if note.reason == "DeletedInVain"]


FAILED = job(3, workers=(worker(0), failed(1), worker(2)))


@pytest.mark.parametrize(
    ("view", "pod", "is_told"),
    [
        pytest.param(
            PLACEHOLDER, "j-worker-1", True, id="a placeholder of a worker that is wanted"
        ),
        pytest.param(SUSPENDED, "j-launcher", True, id="the launcher of a suspended job"),
        pytest.param(job(3), "j-worker-1", False, id="a worker that was replaced and runs"),
        pytest.param(FAILED, "j-worker-1", False, id="a worker that has failed again"),
        pytest.param(job(3), "j-launcher", False, id="a launcher that Kueue let start again"),
    ],
)
def test_a_pod_that_was_to_come_back_is_none(view: JobView, pod: str, *, is_told: bool) -> None:
    """A failed worker is deleted so that the operator makes it again: nothing is wrong with that."""
    found = pace.notes(state(deleted(view, pod, times=4, ago=60.0)))
    assert [note.reason for note in found] == ["DeletedInVain"] * is_told


def told(*, times: int) -> list[str]:
    return [note.reason for note in notes(deleted(SURPLUS, "j-worker-2", times=times, ago=0.0))]


def test_what_is_told_does_not_change_with_each_deletion() -> None:
    lines = {
        note.line
        for times in (4, 5, 50)
        for note in notes(deleted(but(SURPLUS), "j-worker-2", times=times, ago=0.0))
        if note.reason == "DeletedInVain"
    }
    assert len(lines) == 1
