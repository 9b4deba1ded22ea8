"""The workers that a job does without: their numbers, in an annotation of the MPIJob."""

import re

from mpijob_elastic.model.bounds import MOST_WORKERS

# The most workers that can be parked.
MOST_PARKED = 100
# The allowed values of the annotation, in words.
ALLOWED = f'"1,3" (numbers of workers; at most {MOST_PARKED}, each from 0 to {MOST_WORKERS - 1})'

_LIST = re.compile(r"[0-9]{1,4}(?:, ?[0-9]{1,4})*")


def parse(text: str) -> frozenset[int] | None:
    """Return the indices in the annotation; None if the annotation cannot be read."""
    if not _LIST.fullmatch(text):
        return None
    found = frozenset(int(index) for index in text.split(","))
    return found if len(found) <= MOST_PARKED else None
