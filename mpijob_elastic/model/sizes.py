"""The sizes that a job may have: a batch is divided, or a ring wants powers of two.

The annotation says which: "2,4,8", or "*4" for multiples of 4. The host list keeps to these sizes:
no other size is published, except what a loss leaves.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mpijob_elastic.model.bounds import MOST_WORKERS

# The most sizes that can be listed; for more there are multiples.
MOST_LISTED = 100
# The allowed values of the annotation, in words.
ALLOWED = (
    f'"2,4,8" (these; at most {MOST_LISTED}, each from 1 to {MOST_WORKERS}) '
    'or "*4" (multiples of 4)'
)
# Characters of the annotation that are kept for messages.
_LONGEST_TEXT = 64

_NUMBER = r"[1-9][0-9]{0,4}"
_LIST, _MULTIPLES = re.compile(rf"{_NUMBER}(?:, ?{_NUMBER})*"), re.compile(rf"\*({_NUMBER})")


@dataclass(frozen=True, kw_only=True)
class AllowedSizes:
    """The sizes that a job may have."""

    #: The sizes within the bounds of the job, in order.
    sizes: Sequence[int]
    #: The annotation itself, for messages.
    text: str


def parse(text: str) -> AllowedSizes | None:
    """Return the sizes in an annotation; None if the annotation cannot be read."""
    sizes = _parsed(text)
    return AllowedSizes(sizes=sizes, text=text[:_LONGEST_TEXT]) if sizes else None


def within(allowed: AllowedSizes, *, least: int, most: int) -> AllowedSizes | None:
    """Return the sizes within these bounds; None if there is none."""
    every = allowed.sizes
    sizes = every[bisect_left(every, least) : bisect_right(every, most)]
    return AllowedSizes(sizes=sizes, text=allowed.text) if sizes else None


def _parsed(text: str) -> Sequence[int] | None:
    if found := _MULTIPLES.fullmatch(text):
        step = int(found[1])
        return range(step, MOST_WORKERS + 1, step)
    if not _LIST.fullmatch(text):
        return None
    listed = sorted({int(size) for size in text.split(",")})
    if len(listed) > MOST_LISTED or listed[-1] > MOST_WORKERS:
        return None
    return tuple(listed)
