"""KubeQueue: quota for a whole job, which its annotation holds until it is granted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import wishes
from mpijob_elastic.capabilities.kube_queue.facts import HELD, Held, QueueUnit
from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Capability, Stop, Wish
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem


@dataclass(frozen=True, kw_only=True)
class KubeQueue(Capability):
    """What KubeQueue says of a job.

    unit: its QueueUnit, None without; rivals: what else queues the job, in words. known: KubeQueue is installed.
    """

    unit: QueueUnit | None = None
    rivals: tuple[str, ...] = ()
    known: bool = True

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[Known | None, Sequence[Problem]]:  # noqa: ARG003
        """Return whether the annotation holds the job."""
        return Held() if job.metadata.annotations.get(names.KUBEQUEUE_SUSPEND) == "true" else None, ()

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return it for a job that is held."""
        return cls(known=False) if view.facts.of(Held) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield that the job is held."""
        return [Stop(why=HELD)] if view.facts.of(Held) else []

    def due(self, state: JobState) -> Iterable[Action]:
        """Yield the write of the QueueUnit, or of the annotation."""
        due = wishes.due(state, self.unit, self._rivals(state), is_held=self._holds(state)) if self.known else None
        return [due] if due else []

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield what a held job waits for."""
        return wishes.notes(state.view, self.unit, self._rivals(state)) if self.known and self._holds(state) else ()

    def waits_for(self, state: JobState) -> str:
        """Return that the job waits for its turn, if it does."""
        return "the job waits in KubeQueue" if self.waiting(state) else ""

    def waiting(self, state: JobState) -> QueueUnit | None:
        """Return the QueueUnit for whose turn the job waits, or None."""
        waits = self.unit and self.unit.waits and self._holds(state) and not state.view.facts.finished
        return self.unit if waits else None

    def _rivals(self, state: JobState) -> Sequence[str]:
        return (*self.rivals, *state.wishes.rationed_by)

    def _holds(self, state: JobState) -> bool:
        return state.wishes.stopped_by is self
