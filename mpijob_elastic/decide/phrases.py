"""How many pods are said in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

# So many are named, the others counted.
MOST_NAMED = 8


def listed(pods: Iterable[str]) -> str:
    """`a, b and 3 more`."""
    pods = list(pods)
    shown = ", ".join(pods[:MOST_NAMED])
    return shown if len(pods) <= MOST_NAMED else f"{shown} and {len(pods) - MOST_NAMED} more"
