"""The clock for promises to other processes."""

from __future__ import annotations

import time


def awake_or_not() -> float:
    """Return seconds on a clock that never steps and, on Linux, counts the time of a suspension.

    `time.monotonic` stands still in a suspension, so a holder that wakes up would believe its lease is still young.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
