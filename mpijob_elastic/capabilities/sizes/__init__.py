"""Sizes: only some make sense, because a batch is divided, or a ring wants powers of two.

The annotation says which: "2,4,8", or "*4" for multiples of 4. The core keeps to these sizes
(JobFacts.sizes): it publishes no other size, except what a loss leaves.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation, Policy, Problem

# On an MPIJob, written by users.
SIZES = f"{names.PREFIX}sizes"
# The most sizes that can be listed; for more there are multiples.
MOST_LISTED = 100

_NUMBER = r"[1-9][0-9]{0,4}"
_LIST, _MULTIPLES = re.compile(rf"{_NUMBER}(?:, ?{_NUMBER})*"), re.compile(rf"\*({_NUMBER})")


@dataclass(frozen=True, kw_only=True)
class Allowed(CapabilityFacts):
    """The sizes that a job may have."""

    elastic_only = SIZES
    #: The sizes that the annotation allows within the bounds of the job, in order.
    sizes: Sequence[int]
    #: The annotation itself.
    text: str

    def findings(self, job: JobFacts) -> Iterable[str]:
        """Yield a warning if a launcher would start without hosts."""
        least = job.policy.min_replicas
        if job.elastic and least and least not in job.sizes:
            few = f"{names.MIN_REPLICAS} ({least})"
            yield (
                f"a launcher that starts with {few} workers has no hosts until "
                f"{job.size_at_least(least)} are Ready"
            )


def parse(text: str) -> Sequence[int] | None:
    """Return the sizes in order; None if the annotation cannot be read."""
    if found := _MULTIPLES.fullmatch(text):
        step = int(found[1])
        return range(step, MOST_WORKERS + 1, step) or None
    if not _LIST.fullmatch(text):
        return None
    listed = sorted({int(size) for size in text.split(",")})
    return tuple(listed) if len(listed) <= MOST_LISTED and listed[-1] <= MOST_WORKERS else None


ANNOTATION = Annotation(
    SIZES,
    parse,
    f'"2,4,8" (these; at most {MOST_LISTED}, each from 1 to {MOST_WORKERS}) '
    'or "*4" (multiples of 4)',
)


def near(job: JobFacts, size: int) -> str:
    """Return the neighbours of a size that a job may not have, in words."""
    return " or ".join(
        str(other) for other in (job.size_at_most(size), job.size_at_least(size)) if other
    )


class Sizes(Capability):
    """A job that may have only some sizes."""

    name = "sizes"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:
        """Return the sizes that a job may have."""
        values, problems = policy.read(job.metadata.annotations, {"sizes": ANNOTATION})
        every: Sequence[int] | None = values.get("sizes")
        if every is None:
            return None, problems
        low, high = known.min_replicas or 1, known.max_replicas or MOST_WORKERS
        text = job.metadata.annotations[SIZES]
        if sizes := every[bisect_left(every, low) : bisect_right(every, high)]:
            return Allowed(sizes=sizes, text=text[:64]), problems
        within = (
            f"sizes, at least one of them between {names.MIN_REPLICAS} ({low}) and "
            f"{names.MAX_REPLICAS} ({high})"
        )
        return None, [policy.problem(SIZES, text, within)]

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that may have only some sizes."""
        return cls() if view.facts.of(Allowed) else None

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield a notice if the size that is asked for is not allowed.

        This happens after an edit while the webhook was away.
        """
        job, asked = state.view.facts, state.view.facts.of(Allowed)
        if (
            not (asked and state.view.elastic and job.sizes and job.replicas)
            or job.workers in job.sizes
        ):
            return
        most = job.size_at_most(job.workers)
        trains = f"only {most} of its workers train" if most else "all of its workers train"
        yield warning(
            "SizeNotAllowed",
            f"{job.workers} is not a size of {SIZES} ({asked.text}): {trains}. Set "
            f"Worker.replicas to {near(job, job.workers)}",
            next_step=f"kubectl -n {state.view.namespace} edit mpijob {state.view.name}",
        )
