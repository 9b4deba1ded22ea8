"""The replay's time: real time while anything happens; rest is skipped at once.

So the real programs (controller, operator, scheduler) work at their true speed beside notices and costs of true length,
and nothing is scaled. Only rest is skipped, in which by definition nothing happens.
"""

from collections.abc import Callable


class Clock:
    """Seconds from the start of the trace; `monotonic` gives real seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._begin = monotonic()
        self._skipped = 0.0

    def now(self) -> float:
        """Return the trace's time."""
        return self.real + self._skipped

    @property
    def real(self) -> float:
        """Real seconds so far."""
        return self._monotonic() - self._begin

    def skip_to(self, at: float) -> None:
        """Move forward to `at` at once; never back."""
        self._skipped += max(0.0, at - self.now())
