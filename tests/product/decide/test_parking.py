"""What becomes of parked workers, and of their placeholders."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide import decide, demand, host_list, launcher_start
from mpijob_elastic.decide.actions import DeleteWorkers, WriteConfig
from mpijob_elastic.decide.parking import DeletePlaceholder
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import NOW, but, config, job, launcher, pending, pods, worker
from tests.product.decide.plans import does, notes, state

GATE = (names.GATE_PARKED,)


def parked(*indices: int, size: int = 3, there: tuple[int, ...] = (), **facts: Any) -> JobView:
    """A job at rest at that size, without these workers; of those that are `there` a placeholder waits."""
    story = job(size, **facts)
    wanted = tuple(pod for pod in story.workers if pod.index not in there)
    view = but(story, parked=indices, workers=wanted)
    held = tuple(pending(index, gates=GATE) for index in there)
    count = size - sum(index < size for index in indices)
    view = replace(
        but(view, facts=but(view.facts, replicas=size)), replicas=count, placeholders=held
    )
    return capabilities.told(view)


def test_the_size_asks_for_the_others() -> None:
    view = parked(1, 5, there=(1,))
    assert view.wanted_names == pods(0, 2)
    assert [index in view.wanted for index in range(4)] == [True, False, True, False]


def test_a_worker_that_is_parked_leaves_the_list_and_the_others_stay() -> None:
    view = parked(1)
    assert host_list.following(state(view)).hosts == pods(0, 2)
    [write] = [
        action for action in decide(view, now=NOW).actions if isinstance(action, WriteConfig)
    ]
    assert write.removed == pods(1)
    assert not write.lost


def test_it_is_deleted_once_it_has_left() -> None:
    view = parked(1, config=config(pods(0, 2)))
    [gone] = [
        action for action in decide(view, now=NOW).actions if isinstance(action, DeleteWorkers)
    ]
    assert [removal.worker.name for removal in gone.removals] == ["j-worker-1"]


def test_one_that_passed_by_the_webhook_is_deleted_at_a_pace() -> None:
    young = worker(1, created_at=NOW - 1)
    view = parked(1, config=config(pods(0, 2)))
    view = replace(view, workers=(view.workers[0], young, view.workers[2]))
    plan = decide(view, now=NOW)
    assert not any(isinstance(action, DeleteWorkers) for action in plan.actions)
    assert plan.wake_at == NOW + 4
    assert any(isinstance(action, DeleteWorkers) for action in decide(view, now=NOW + 4).actions)


def test_a_placeholder_that_the_operator_has_not_made_is_missing() -> None:
    """While it is refused, as by a LimitRange that came later, the operator does nothing for the job."""
    gone = parked(1, 5, config=config(pods(0, 2)))
    gone = replace(gone, workers=(gone.workers[0], gone.workers[2]))
    assert gone.missing == pods(1)
    assert parked(1, 5, there=(1,)).missing == ()
    later = replace(gone, drains_seen={("j-worker-1", 0.0): 30.0})
    [note] = [note for note in notes(later) if note.reason == "WorkersRefused"]
    assert note.message.startswith(
        "the operator has not created j-worker-1: usually a ResourceQuota or "
    )


def test_a_job_with_a_placeholder_rests() -> None:
    view = parked(1, there=(1,), config=config(pods(0, 2)))
    assert not view.missing
    told = notes(view)
    assert any(
        "j-worker-1 holds no resources: parked by the annotation mpijob-elastic/parked"
        in one.message
        for one in told
    )
    assert not any(
        isinstance(action, DeletePlaceholder) for action in decide(view, now=NOW).actions
    )


@pytest.mark.parametrize(
    ("view", "why"),
    [
        pytest.param(parked(there=(1,)), "not in the annotation", id="unparked"),
        pytest.param(parked(2, there=(2,), size=2), "asks for fewer workers", id="above the size"),
        pytest.param(
            parked(1, there=(1,), finished=True), "has finished", id="the job has finished"
        ),
    ],
)
def test_a_placeholder_goes_when_nobody_wants_it(view: JobView, why: str) -> None:
    [gone] = [
        action for action in decide(view, now=NOW).actions if isinstance(action, DeletePlaceholder)
    ]
    assert gone.ref.name.startswith("j-worker-")
    assert why in gone.note.message


def test_another_operator_gets_no_placeholder() -> None:
    view = parked(1, there=(1,), foreign="mpi-operator v0.3.0 manages it")
    assert "delete the placeholder j-worker-1" in does(view)


def test_the_launcher_awaits_the_others_alone() -> None:
    view = parked(1, there=(1,), launcher=launcher(LauncherPhase.DELIVERING))
    assert view.config is not None
    assert launcher_start.awaited(state(view), view.config) == pods(0, 2)


def test_what_is_asked_of_a_scheduler_is_like_the_first_that_is_no_placeholder() -> None:
    view = parked(0, there=(0,))
    assert demand.pod_sets(view, workers=2)[1].like.name == "j-worker-1"
