"""Stragglers: slow workers and silence are named, and never acted on.

Workers say how long their steps take without the wait for others (model/slowness), so the notice
can name the one for which all others wait. Whether the node, the data or the program is at fault,
only people can tell: nothing is moved, replaced or ended.
"""

from collections.abc import Iterable, Sequence

from mpijob_elastic.capabilities.stragglers import silence, slow
from mpijob_elastic.capabilities.stragglers.facts import ANNOTATION, ProgressTimeout
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem


class Stragglers(Capability):
    """An elastic job that tells how far it is, or that asks to be watched for silence."""

    name = "stragglers"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the time without a step after which a job asks to be named."""
        values, problems = policy.read(job.metadata.annotations, {"seconds": ANNOTATION})
        return ProgressTimeout(**values) if values else None, problems

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that asks for it, tells its progress, or was named."""
        if not view.elastic:
            return None
        if view.facts.of(ProgressTimeout) or slow.may_be(view):
            return cls()
        return None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a wish to see the job again when its silence is long enough."""
        due_at = silence.due_at(view, now=now)
        if due_at is not None and now < due_at:
            yield Wish(by=self.name, until=due_at)

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield a notice on each slow worker, and one on silence."""
        if not state.view.driver_running or state.stopped or state.wishes.suspend:
            return
        yield from slow.notes(state)
        yield from silence.notes(state)
