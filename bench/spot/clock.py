"""The replay's time: as fast as real time while anything happens, and stretches of rest skipped at once.

Whatever is real (controller, operator, scheduler) thus always works at its true speed beside notices and costs of true
length, and there is nothing to scale. Only rest is skipped, in which by definition nothing would have happened.
"""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Seconds from the trace's begin; `monotonic` gives real ones."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._begin = monotonic()
        self._skipped = 0.0

    def now(self) -> float:
        """The trace's time."""
        return self.real + self._skipped

    @property
    def real(self) -> float:
        """Real seconds so far."""
        return self._monotonic() - self._begin

    def skip_to(self, at: float) -> None:
        """Go there at once; never back."""
        self._skipped += max(0.0, at - self.now())
