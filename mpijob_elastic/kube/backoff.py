"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

# Past this exponent every sensible bound has been reached, and floats would overflow some time after it.
_LARGEST_EXPONENT = 64


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Doubling from `first` to `longest` seconds, half of each wait random so that clients do not march in step."""

    first: float
    longest: float

    def delay(self, failures: int, random: Random) -> float:
        """Seconds to wait; `failures` counts from 1."""
        bound = min(self.longest, self.first * 2.0 ** min(failures - 1, _LARGEST_EXPONENT))
        return bound * (1 + random.random()) / 2
