"""The QueueUnit of a job that KubeQueue holds: when it is made, what its phases lead to, and when it goes."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, kube_queue
from mpijob_elastic.decide.actions import CreateUnit, DeleteUnit, HoldJob, MarkRunning, ReleaseJob
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.kube_queue import HELD, QueueUnit
from tests.builders import NOW, job, launcher, pending, worker
from tests.queues import SUSPENDED, held, queued, unit

WAITING, GRANTED = ("", "Enqueued", "Reserved", "SchedReady"), ("Dequeued", "SchedSucceed")
OVER = ("Running", "TimeoutBackoff", "Preempted", "Succeed", "Failed")


def running(found: QueueUnit | None = None, **facts: Any) -> JobView:
    return job(2, **{"kube_queue": queued(found), **facts})


def due(view: JobView) -> object:
    """What is due, by its own and in the plan."""
    assert view.kube_queue is not None
    found = kube_queue.due(derive(view, now=NOW), view.kube_queue)
    assert decide(view, now=NOW).queue == (() if found is None else (found,))
    return found


def test_a_unit_asks_for_all_workers_once_all_pods_wait() -> None:
    asked = due(held())
    assert isinstance(asked, CreateUnit)
    assert (asked.name, asked.workers) == ("j-mpi-qu", 2)
    assert [(part.count, part.like.name) for part in asked.pods] == [(1, "j-launcher"), (2, "j-worker-0")]


@pytest.mark.parametrize(
    "view",
    [
        held(launcher=None),
        held(workers=()),
        held(workers=(pending(0, gates=SUSPENDED), worker(1))),
        held(launcher=launcher()),
        held(suspended_by="annotation mpijob-elastic/suspend"),
        held(kube_queue=queued(None, "QueueUnit other")),
        held(deleting=True),
        held(foreign="another operator manages it"),
        running(),
    ],
)
def test_no_unit_is_made(view: JobView) -> None:
    assert due(view) is None


def test_without_kube_queue_nothing_is_due() -> None:
    assert decide(held(kube_queue=None), now=NOW).queue == ()


def test_a_launcher_without_workers_queues_too() -> None:
    asked = due(held(workers=(), replicas=0))
    assert isinstance(asked, CreateUnit)
    assert [part.name for part in asked.pods] == ["launcher"]


@pytest.mark.parametrize("phase", WAITING)
def test_a_job_waits_for_its_turn(phase: str) -> None:
    view = held(unit(phase))
    assert due(view) is None
    assert kube_queue.waiting(view)
    [note] = kube_queue.notes(view, queued(unit(phase)))
    assert note.line == f"Enqueued: j waits in KubeQueue: QueueUnit j-mpi-qu is {phase or 'Enqueued'}"


@pytest.mark.parametrize("phase", GRANTED)
def test_a_job_whose_turn_has_come_is_released(phase: str) -> None:
    asked = due(held(unit(phase)))
    assert isinstance(asked, ReleaseJob)
    assert asked.note.line == f"Dequeued: j is released: QueueUnit j-mpi-qu is {phase}"


@pytest.mark.parametrize("phase", WAITING + GRANTED + OVER)
def test_a_job_of_another_size_asks_again(phase: str) -> None:
    assert isinstance(due(held(unit(phase, workers=3))), DeleteUnit)


@pytest.mark.parametrize("phase", OVER)
def test_a_job_that_has_stopped_gives_its_quota_back(phase: str) -> None:
    assert isinstance(due(held(unit(phase))), DeleteUnit)


@pytest.mark.parametrize("phase", [*WAITING, *GRANTED])
def test_a_job_that_runs_says_so_once(phase: str) -> None:
    assert isinstance(due(running(unit(phase))), MarkRunning)
    assert due(running(unit("Running"))) is None
    assert due(running(unit(phase), launcher=launcher(LauncherPhase.WAITING))) is None


def test_a_job_that_is_held_again_before_it_ran_is_not_released_again() -> None:
    """Its unit says Running while something may run, so that it goes when nothing does."""
    starting: dict[str, Any] = {"workers": (pending(0), pending(1)), "launcher": launcher(LauncherPhase.WAITING)}
    assert isinstance(due(held(unit("Dequeued"), **starting)), MarkRunning)
    assert due(held(unit("Enqueued"), **starting)) is None
    assert due(held(unit("Running"), **starting)) is None


@pytest.mark.parametrize("phase", ["TimeoutBackoff", "Preempted"])
def test_a_job_whose_quota_is_wanted_back_is_held_again(phase: str) -> None:
    asked = due(running(unit(phase, said="no pod after 10m")))
    assert isinstance(asked, HoldJob)
    assert asked.note.line == f"QuotaWanted: j stops: QueueUnit j-mpi-qu is {phase}: no pod after 10m"
    assert due(running(unit(phase), suspended_by=HELD)) is None
    assert due(running(unit(phase), suspended_by="annotation mpijob-elastic/suspend")) is None


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_a_finished_job_gives_its_quota_back_when_its_pods_have_ended(policy: str) -> None:
    ends = running(unit("Running"), finished=True, clean_pod_policy=policy, launcher=launcher(LauncherPhase.FINISHED))
    assert isinstance(due(ends), DeleteUnit) == (policy == "None")
    ended = running(unit("Running"), finished=True, clean_pod_policy=policy, workers=(), launcher=None)
    assert isinstance(due(ended), DeleteUnit)


def test_a_rival_is_told_and_left_in_charge() -> None:
    view = held(unit(), kube_queue=queued(unit(), "QueueUnit own"))
    assert isinstance(due(view), DeleteUnit)
    [note] = kube_queue.notes(view, queued(None, "QueueUnit own", "queue team of Kueue"))
    assert (note.reason, note.warning) == ("KubeQueueYields", True)
    assert "QueueUnit own, queue team of Kueue queues it already" in note.message
    assert not [*kube_queue.notes(running(), queued(None, "QueueUnit own"))]


@pytest.mark.parametrize("view", [running(unit()), held(unit("Dequeued")), held(unit(), finished=True)])
def test_who_does_not_wait_is_told_nothing(view: JobView) -> None:
    assert kube_queue.waiting(view) is None
    assert view.kube_queue
    assert not [*kube_queue.notes(view, view.kube_queue)]
