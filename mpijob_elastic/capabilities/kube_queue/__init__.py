"""KubeQueue: quota for a whole job; an annotation holds the job until the quota is granted."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import facts, wishes
from mpijob_elastic.capabilities.kube_queue.facts import (
    ENQUEUED,
    HELD,
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    HeldJob,
    QueueUnit,
)
from mpijob_elastic.decide.actions import Action, Note, normal, warning
from mpijob_elastic.decide.capability import Capability, Holding
from mpijob_elastic.decide.shown import Reading, Shown, Turn
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Suspend, Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.policy import Policy, Problem

HOLDING = Holding(
    resource=QUEUE_UNITS,
    selector=f"{names.LABEL_MANAGED_BY}={names.PROGRAM}",
    read=lambda raw: facts.read(raw).metadata,
)


@dataclass(frozen=True, kw_only=True)
class KubeQueue(Capability, Shown):
    """What KubeQueue says of a job."""

    #: The job's QueueUnit, None without one.
    unit: QueueUnit | None = None
    #: What else queues the job, in words.
    rivals: tuple[str, ...] = ()
    #: KubeQueue is installed.
    known: bool = True

    name = "kube-queue"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return `Held` if the annotation holds the job, None if it does not."""
        return HeldJob() if job.metadata.annotations.get(KUBEQUEUE_SUSPEND) == "true" else None, ()

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that is held."""
        return cls(known=False) if view.facts.of(HeldJob) else None

    @classmethod
    def of(cls, job: JobFacts, found: Collection[QueueUnit]) -> "KubeQueue | None":
        """Return what KubeQueue says of a job, by the QueueUnits that are about the job.

        The unit of an earlier job of the same name goes by itself.
        """
        if not found and not job.of(HeldJob):
            return None
        mine = (one for one in found if one.metadata.job_uid == job.metadata.uid)
        rivals = [f"QueueUnit {one.metadata.name}" for one in found if not one.metadata.job_uid]
        return cls(unit=next(mine, None), rivals=tuple(sorted(rivals)))

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield a Suspend while the annotation holds the job."""
        return [Suspend(by=self.name, why=HELD, queued=True)] if view.facts.of(HeldJob) else []

    def writes(self, state: JobState, when: When) -> Iterable[Step[Action]]:
        """Yield the writes of the QueueUnit, or of the annotation."""
        if when is not When.ANY_TIME or not self.known:
            return
        is_held = self._holds(state)
        for write in wishes.due(state, self.unit, self._rivals(state), is_held=is_held):
            if write:
                yield Step(write)

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield a notice on what a held job waits for.

        Its message leaves KubeQueue's words out, because their numbers change with every try.
        """
        view, unit, rivals = state.view, self.unit, self._rivals(state)
        if not (self.known and self._holds(state)):
            return
        if rivals:
            why = (
                f"{listed(rivals)} queues it already, so mpijob-elastic does not "
                f"take {KUBEQUEUE_SUSPEND} away"
            )
            yield warning("KubeQueueYields", f"{view.name} gets no QueueUnit: {why}")
        elif unit and unit.waits:
            step = _look(view, unit)
            yield normal(
                "Enqueued",
                f"{view.name} waits in KubeQueue: {unit.words}",
                next_step=step,
                detail=unit.said,
            )

    def waits_for(self, state: JobState) -> str:
        """Return a sentence if the job waits for its turn, "" if not."""
        return "the job waits in KubeQueue" if self.waiting(state) else ""

    def waiting(self, state: JobState) -> QueueUnit | None:
        """Return the QueueUnit for whose turn the job waits, or None."""
        if not (self.unit and self.unit.waits) or state.view.facts.finished:
            return None
        return self.unit if self._holds(state) else None

    @classmethod
    def reading(cls, job: JobFacts) -> Reading[QueueUnit] | None:
        """Return how a command reads the QueueUnits of a held job, None for any other job."""
        if job.of(HeldJob) is None:
            return None
        return Reading(resource=QUEUE_UNITS, read=facts.read, seeing=lambda _: cls._see)

    def state_word(self, state: JobState) -> str:
        """Return the phase of the QueueUnit for whose turn the job waits."""
        unit = self.waiting(state)
        return unit.phase or ENQUEUED if unit else ""

    def turn(self, state: JobState) -> Turn | None:
        """Return the queue in which the job waits, None if it does not wait."""
        unit = self.waiting(state)
        if unit is None:
            return None
        look = _look(state.view, unit)
        return Turn(unit.shown_queue, waiting=unit.metadata.name, says=unit.said, look=look)

    @classmethod
    def _see(cls, view: JobView, mine: Collection[QueueUnit]) -> Capability | None:
        return cls.of(view.facts, mine) if mine else None

    def _rivals(self, state: JobState) -> Sequence[str]:
        return (*self.rivals, *state.wishes.rationed_by)

    def _holds(self, state: JobState) -> bool:
        suspend = state.wishes.suspend
        # A job at zero asks for nothing until its user gives it a size.
        if suspend is None or state.view.facts.is_at_zero:
            return False
        return suspend.by == self.name


def _look(view: JobView, unit: QueueUnit) -> str:
    """Return the command that shows a QueueUnit."""
    return f"kubectl -n {view.namespace} describe queueunit {unit.metadata.name}"
