"""The clock for promises made to others."""

from __future__ import annotations

import time


def awake_or_not() -> float:
    """Seconds on a clock that never steps and that, on Linux, goes on while the machine is suspended.

    `time.monotonic` stands still then, so a holder waking up would believe that its lease is still young.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
