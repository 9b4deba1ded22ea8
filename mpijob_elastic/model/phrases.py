"""Lists of names in a sentence."""

from collections.abc import Iterable

# So many names are said, the others counted.
MOST_NAMED = 8


def listed(items: Iterable[str]) -> str:
    """Return `a, b and 3 more`."""
    items = list(items)
    shown = ", ".join(items[:MOST_NAMED])
    return shown if len(items) <= MOST_NAMED else f"{shown} and {len(items) - MOST_NAMED} more"


def workers(count: int) -> str:
    """Return `1 worker`, `2 workers`."""
    return f"{count} worker{'' if count == 1 else 's'}"
