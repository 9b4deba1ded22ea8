"""The QueueUnit of a job that KubeQueue holds, and its writes.

The unit is created while the job waits, and deleted when its quota is free. We do for MPIJobs of v1
what KubeQueue's extensions do for other jobs: release the job when its unit is Dequeued, say when
the job runs, suspend the job when its quota is wanted back. A job that is held again first stops.
Its unit says Running by then, which tells it from a unit whose turn has come; nothing of the job
runs any more, so the unit is deleted, and the next unit queues.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpijob_elastic.capabilities.kube_queue import facts
from mpijob_elastic.capabilities.kube_queue.facts import HeldJob, QueueUnit
from mpijob_elastic.decide import demand
from mpijob_elastic.decide.actions import (
    Action,
    Adopt,
    Annotate,
    Delete,
    Noted,
    PodSet,
    normal,
    warning,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.job import JobView


@dataclass(frozen=True, kw_only=True)
class CreateUnit(Action):
    """Ask KubeQueue for the quota of pods, `workers` of them workers."""

    words = "ask KubeQueue for quota with the QueueUnit {self.name}"

    name: str
    pods: tuple[PodSet, ...]
    workers: int

    def about(self) -> tuple[object, ...]:
        """Return the name of the unit."""
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class DeleteUnit(Delete):
    """Give the quota of a QueueUnit back, or stop asking for it."""

    words = "delete the QueueUnit {self.ref.name}"
    rechecked = True
    frees = True
    at_version = False

    resource: Resource = facts.QUEUE_UNITS


@dataclass(frozen=True, kw_only=True)
class AdoptUnit(Adopt):
    """Make pods that replace others the owners of a QueueUnit.

    So the quota of a deleted job stays until its pods are gone.
    """

    words = "make the job and its pods the owners of the QueueUnit {self.ref.name}"

    resource: Resource = facts.QUEUE_UNITS


@dataclass(frozen=True, kw_only=True)
class MarkRunning(Action):
    """Say that the job of a QueueUnit runs."""

    words = "say in the QueueUnit {self.unit.metadata.name} that the job runs"

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class ReleaseJob(Noted):
    """Take KubeQueue's annotation off a job whose QueueUnit says, read live, that it may start."""

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class HoldJob(Noted, Annotate):
    """Put KubeQueue's annotation back on a job whose quota is wanted back."""

    frees = True

    key: str = facts.KUBEQUEUE_SUSPEND
    resource: Resource = MPI_JOBS
    text: str = "true"


def due(
    state: JobState, unit: QueueUnit | None, rivals: Sequence[str], *, is_held: bool
) -> Iterator[Action | None]:
    """Yield the writes that are due.

    is_held: KubeQueue alone holds the job.
    """
    view = state.view
    is_over = bool(rivals) or view.facts.finished
    if view.facts.deleting or state.foreign or (is_over and view.may_run_unseen):
        return
    if unit is None:
        yield _asked(view) if is_held and not is_over else None
    elif is_over:
        yield None if view.facts.finished and demand.ending(view) else DeleteUnit(ref=unit.metadata)
    elif is_held and _waits(view):
        yield _while_it_waits(view, unit)
    else:
        yield _while_it_runs(state, unit, is_held=is_held)
        yield _adopted(view, unit)


def _while_it_waits(view: JobView, unit: QueueUnit) -> DeleteUnit | ReleaseJob | None:
    if unit.phase in facts.OVER or unit.workers != view.replicas:
        return DeleteUnit(ref=unit.metadata)
    note = normal("Dequeued", f"{view.name} is released: {unit.words}")
    return ReleaseJob(unit=unit, note=note) if unit.phase in facts.GRANTED else None


def _while_it_runs(
    state: JobState, unit: QueueUnit, *, is_held: bool
) -> HoldJob | DeleteUnit | MarkRunning | None:
    if unit.phase in facts.TAKEN_BACK:
        if state.view.facts.of(
            HeldJob
        ):  # a job that is suspended as well gives its quota back, too
            return DeleteUnit(ref=unit.metadata) if _waits(state.view) else None
        why = f"{unit.words}{': ' if unit.said else ''}{unit.said}"
        return HoldJob(
            ref=state.view.ref, note=warning("QuotaWanted", f"{state.view.name} stops: {why}")
        )
    is_started = unit.phase in facts.GRANTED if is_held else state.view.driver_running
    return MarkRunning(unit=unit) if is_started and unit.phase != facts.RUNNING else None


def _adopted(view: JobView, unit: QueueUnit) -> AdoptUnit | None:
    """Return the write by which pods made since the job started own its unit as well, or None."""
    pods = tuple(pod.ref for pod in demand.firsts(view) if pod)
    is_due = unit.phase == facts.RUNNING and any(pod.uid not in unit.pods for pod in pods)
    return AdoptUnit(ref=unit.metadata, job=view.ref, pods=pods) if is_due else None


def _asked(view: JobView) -> CreateUnit | None:
    """Return the unit for all workers, once there are pods that tell what they need.

    It asks for all workers, not for the least size: once the job is released, nothing holds workers
    back.
    """
    pods = demand.pod_sets(view, workers=view.replicas) if _waits(view) else ()
    return (
        CreateUnit(name=facts.queue_unit_name(view.name), pods=pods, workers=view.replicas)
        if pods
        else None
    )


def _waits(view: JobView) -> bool:
    """Tell whether the job's next launcher waits, and nothing of it runs."""
    waits = view.launcher is not None and view.launcher.facts.gates != ()
    return waits and demand.nothing_runs(view)
