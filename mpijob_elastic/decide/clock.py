"""Times that another process wrote, maybe on another machine, maybe before its clock was set back."""

from __future__ import annotations

# Clocks of one cluster's machines may differ by this many seconds.
SKEW = 5.0


def honest(at: float, *, now: float) -> float:
    """Return `at`, or 0 (long ago) where it lies too far ahead to be true."""
    return at if at <= now + SKEW else 0.0
