"""Suspension: a job stops, and waits, while an annotation asks for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.wishes import Suspend, Wish
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation, Policy, Problem

# On an MPIJob, written by users: holds new pods back.
SUSPEND = f"{names.PREFIX}suspend"
ANNOTATION = Annotation(SUSPEND, policy.boolean, '"true" or "false"')


@dataclass(frozen=True)
class Suspended(CapabilityFacts):
    """The annotation suspends the job."""

    gate = names.GATE_SUSPENDED
    elastic_only = SUSPEND


class Suspension(Capability):
    """A job that is suspended by its user."""

    name = "suspension"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return `Suspended` if the annotation suspends the job, None if it does not."""
        values, problems = policy.read(job.metadata.annotations, {"suspend": ANNOTATION})
        return Suspended() if values.get("suspend") else None, problems

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that is suspended."""
        return cls() if view.facts.of(Suspended) else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002
        """Yield a Suspend while the annotation suspends the job."""
        if view.facts.of(Suspended):
            ends_by = f"{names.PROGRAM} resume {view.name} -n {view.namespace}"
            yield Suspend(by=self.name, why=f"annotation {SUSPEND}", ends_by=ends_by)
