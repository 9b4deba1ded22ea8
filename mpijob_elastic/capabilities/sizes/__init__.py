"""Sizes: only those that make sense, because a batch has to be divided, or a ring wants powers of two.

The core keeps to them (JobFacts.sizes): it publishes no others, but for what a loss leaves.
"""

from collections.abc import Iterable, Sequence

from mpijob_elastic.capabilities.sizes import facts
from mpijob_elastic.capabilities.sizes.facts import SIZES, Allowed
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Capability
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem


class Sizes(Capability):
    """A job that may have some sizes only."""

    annotations = (facts.ANNOTATION,)

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[Known | None, Sequence[Problem]]:
        """Return the sizes that it may have."""
        return facts.asked(job, known)

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return it for a job that may have some sizes only."""
        return cls() if view.facts.of(Allowed) else None

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield that the size which is asked for is another: the webhook was away."""
        job, asked = state.view.facts, state.view.facts.of(Allowed)
        if not (asked and state.view.elastic and job.sizes and job.replicas) or job.workers in job.sizes:
            return
        most, near = job.size_at_most(job.workers), facts.near(job, job.workers)
        trains = f"only {most} of them train" if most else "all of them train"
        yield warning(
            "SizeNotAllowed",
            f"{job.workers} workers are none of {SIZES} ({asked.text}): {trains}. Set Worker.replicas to {near}",
            next_step=f"kubectl -n {state.view.namespace} edit mpijob {state.view.name}",
        )
