"""The name that somebody meant who wrote one that is not known."""

import difflib
from collections.abc import Iterable

# How alike a name is to the name that was meant: a letter or two differ.
_ALIKE = 0.8
# Longer names take long to compare.
_LONGEST_NAME = 64


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
