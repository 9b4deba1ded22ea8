"""The name that somebody meant who wrote one that is not known."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

# How alike a name is to the name that was meant: a letter or two differ.
_ALIKE = 0.8
# Longer names take long to compare.
_LONGEST_NAME = 64


class StandIn(NamedTuple):
    """A field whose name is nearly that of a missing field, at the place of the latter."""

    #: The path of the field that is there.
    field: str
    #: The question to its author.
    question: str


def nearest(written: str, known: Iterable[str]) -> str:
    """Return the known name that is nearly the written one; "" if there is none.

    Capitals do not count, and letters may have changed places: `imgae` is nearly `image`.
    """
    name = written[:_LONGEST_NAME].lower()
    by_lower = {one.lower(): one for one in known}
    letters = sorted(name)
    for lower, one in by_lower.items():
        if sorted(lower) == letters:
            return one
    near = difflib.get_close_matches(name, by_lower, n=1, cutoff=_ALIKE)
    return by_lower[near[0]] if near else ""


def stand_in(missing: str, unknown: Iterable[str]) -> StandIn | None:
    """Return the first unknown field that seems to be a missing one, or an object around it.

    missing, unknown: paths such as `spec.mpiReplicaSpecs.Launcher`. None if there is no such field.
    """
    for field in unknown:
        parent, _, written = field.rpartition(".")
        inner = missing.removeprefix(f"{parent}.")
        if inner == missing or written.endswith("]"):
            continue
        meant = inner.partition(".")[0].partition("[")[0]
        if nearest(written, (meant,)):
            return StandIn(field, f"did you mean {meant} instead of {written}?")
    return None
