"""The QueueUnit of a job that KubeQueue holds: made while the job waits, and deleted when its quota is free.

We do for MPIJobs of v1 what KubeQueue's extensions do for other jobs: release the job when its unit is Dequeued, say
when it runs, suspend it when its quota is wanted back. A job that is held again first stops. Its unit says Running by
then, which tells it from one whose turn has come; nothing runs any more, so it goes, and the next one queues.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide import workloads
from mpijob_elastic.decide.actions import (
    CreateUnit,
    DeleteUnit,
    HoldJob,
    MarkRunning,
    Note,
    ReleaseJob,
    UnitAction,
    normal,
    warning,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kube_queue import GRANTED, HELD, OVER, RUNNING, TAKEN_BACK, KubeQueue, QueueUnit
from mpijob_elastic.model.phrases import listed


def due(state: JobState, queued: KubeQueue) -> UnitAction | None:
    """Return the write that is due, or None."""
    view, unit = state.view, queued.unit
    if view.facts.deleting or state.foreign:
        return None
    is_held = view.suspended_by == HELD
    if unit is None:
        return _asked(view) if is_held and not queued.rivals else None
    if queued.rivals or view.facts.finished:
        return None if view.facts.finished and workloads.ending(view) else DeleteUnit(ref=unit.metadata)
    return _while_it_waits(view, unit) if is_held and _waits(view) else _while_it_runs(view, unit, is_held=is_held)


def waiting(view: JobView) -> QueueUnit | None:
    """Return the QueueUnit for whose turn the job waits, or None."""
    unit = view.kube_queue.unit if view.kube_queue and not view.facts.finished else None
    return unit if unit and unit.waits and view.suspended_by == HELD else None


def notes(view: JobView, queued: KubeQueue) -> Iterator[Note]:
    """Yield what the job waits for. Not in KubeQueue's words: its numbers change with every try."""
    if view.suspended_by == HELD and queued.rivals:
        why = (
            f"{listed(queued.rivals)} queues it already, so mpijob-elastic does not take {names.KUBEQUEUE_SUSPEND} away"
        )
        yield warning("KubeQueueYields", f"{view.name} gets no QueueUnit: {why}")
    elif unit := waiting(view):
        yield normal("Enqueued", f"{view.name} waits in KubeQueue: {unit.words}")


def _while_it_waits(view: JobView, unit: QueueUnit) -> DeleteUnit | ReleaseJob | None:
    if unit.phase in OVER or unit.workers != view.replicas:
        return DeleteUnit(ref=unit.metadata)
    note = normal("Dequeued", f"{view.name} is released: {unit.words}")
    return ReleaseJob(unit=unit, note=note) if unit.phase in GRANTED else None


def _while_it_runs(view: JobView, unit: QueueUnit, *, is_held: bool) -> HoldJob | MarkRunning | None:
    if unit.phase in TAKEN_BACK:
        why = f"{unit.words}{': ' if unit.said else ''}{unit.said}"
        note = warning("QuotaWanted", f"{view.name} stops: {why}")
        return None if view.suspended_by else HoldJob(ref=view.ref, note=note)
    is_started = unit.phase in GRANTED if is_held else view.driver_running
    return MarkRunning(unit=unit) if is_started and unit.phase != RUNNING else None


def _asked(view: JobView) -> CreateUnit | None:
    """Return the unit for all workers, once there are pods from which it can be told what they need.

    All, not the least: once released, nothing holds the others back.
    """
    pods = workloads.pod_sets(view, workers=view.replicas) if _waits(view) else ()
    return CreateUnit(name=names.queue_unit(view.name), pods=pods, workers=view.replicas) if pods else None


def _waits(view: JobView) -> bool:
    """Tell whether the job's next launcher waits, and nothing of it runs."""
    return view.launcher is not None and all(pod.facts.gates for pod in view.pods)
