"""Sizes: which sizes a job may have, as its annotation says: "2,4,8", or "*4" for multiples of 4; pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation, Policy, Problem

# On an MPIJob, written by users.
SIZES = f"{names.PREFIX}sizes"
# So many sizes can be listed: who wants more wants multiples.
MOST_LISTED = 100

_NUMBER = r"[1-9][0-9]{0,4}"
_LIST, _MULTIPLES = re.compile(rf"{_NUMBER}(?:, ?{_NUMBER})*"), re.compile(rf"\*({_NUMBER})")


@dataclass(frozen=True, kw_only=True)
class Allowed(Known):
    """The sizes that the annotation allows within the bounds of the job, in order; `text`: the annotation itself."""

    sizes: Sequence[int]
    text: str


def parse(text: str) -> Sequence[int] | None:
    """Return the sizes in order; None if the annotation cannot be read."""
    if found := _MULTIPLES.fullmatch(text):
        step = int(found[1])
        return range(step, MOST_WORKERS + 1, step) or None
    if not _LIST.fullmatch(text):
        return None
    listed = sorted({int(size) for size in text.split(",")})
    return tuple(listed) if len(listed) <= MOST_LISTED and listed[-1] <= MOST_WORKERS else None


def asked(job: MPIJob, known: Policy) -> tuple[Allowed | None, Sequence[Problem]]:
    """Return what an MPIJob asks for, None if nothing, and what is wrong with it."""
    values, problems = policy.read(job.metadata.annotations, {"sizes": ANNOTATION})
    every: Sequence[int] | None = values.get("sizes")
    if every is None:
        return None, problems
    low, high = known.min_replicas or 1, known.max_replicas or MOST_WORKERS
    text = job.metadata.annotations[SIZES]
    if sizes := every[bisect_left(every, low) : bisect_right(every, high)]:
        return Allowed(sizes=sizes, text=text[:64]), problems
    within = f"sizes of which one lies between {names.MIN_REPLICAS} ({low}) and {names.MAX_REPLICAS} ({high})"
    return None, [policy.problem(SIZES, text, within)]


def near(job: JobFacts, size: int) -> str:
    """Return the neighbours of a size that a job may not have, in words."""
    return " or ".join(str(other) for other in (job.size_at_most(size), job.size_at_least(size)) if other)


ANNOTATION = Annotation(
    SIZES, parse, f'"2,4,8" (these; at most {MOST_LISTED}, each from 1 to {MOST_WORKERS}) or "*4" (multiples of 4)'
)
