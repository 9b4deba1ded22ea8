"""Parking: which workers a job does without, as its annotation says: "1,3"; pure."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation, Policy, Problem

PARKED = names.PARKED
MOST_PARKED = 100

_LIST = re.compile(r"[0-9]{1,4}(?:, ?[0-9]{1,4})*")


@dataclass(frozen=True, kw_only=True)
class Parked(Known):
    """The indices of the workers that are parked."""

    sized = True
    skips: Collection[int]


def parse(text: str) -> frozenset[int] | None:
    """Return the indices; None if the annotation cannot be read."""
    found = frozenset(int(index) for index in text.split(",")) if _LIST.fullmatch(text) else frozenset()
    return found if 0 < len(found) <= MOST_PARKED else None


def asked(job: MPIJob, _known: Policy) -> tuple[Parked | None, Sequence[Problem]]:
    """Return what an MPIJob asks for, None if nothing, and what is wrong with it."""
    values, problems = policy.read(job.metadata.annotations, {"parked": ANNOTATION})
    return Parked(skips=values["parked"]) if values else None, problems


ANNOTATION = Annotation(
    PARKED, parse, f'"1,3" (numbers of workers; at most {MOST_PARKED}, each from 0 to {MOST_WORKERS - 1})'
)
