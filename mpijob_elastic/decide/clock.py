"""Times that were written by another process, maybe on another machine, maybe before the clock was set back."""

from __future__ import annotations

# Clocks of one cluster's machines may differ by this many seconds.
SKEW = 5.0


def honest(at: float, *, now: float) -> float:
    """`at`, or 0 (long ago) where it lies so far ahead that it cannot have been true."""
    return at if at <= now + SKEW else 0.0
