"""Kueue: quota for a job and for each worker beyond its least size, from a queue that many jobs share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue import facts, wishes, words
from mpijob_elastic.capabilities.kueue.facts import Queue, Workload
from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Capability, Wish
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, Worker
from mpijob_elastic.model.policy import Policy, Problem


@dataclass(frozen=True)
class Kueue(Capability):
    """What Kueue says of a job; queue: None while it is not known whether there is a Kueue."""

    queue: Queue | None

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[Known | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the queue that a job asks for."""
        return facts.asked(job), ()

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return it for a job that may wait for quota."""
        return cls(None) if any(names.GATE_QUEUED in pod.facts.gates for pod in view.pods) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield who waits for quota, and who leaves for it."""
        return wishes.of(view, self.queue, now=now)

    def due(self, state: JobState) -> Iterable[Action]:
        """Yield the writes of Workloads."""
        return wishes.due(state, self.queue) if self.queue else ()

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield what the job waits for, in Kueue's words."""
        return words.notes(state, self.queue) if self.queue else ()

    def waits_for(self, state: JobState) -> str:
        """Return that the job waits for quota, if it does."""
        return "the job waits for quota" if self.queue and wishes.waiting(state.view, self.queue) else ""

    def workload_of(self, view: JobView, pod: Launcher | Worker | None) -> Workload | None:
        """Return the Workload that asks for a pod's quota; None if there is none."""
        return wishes.workload_of(view, self.queue, pod) if self.queue and pod else None
