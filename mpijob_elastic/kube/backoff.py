"""Delays after failures in a row."""

from dataclasses import dataclass
from random import Random

# Every sensible bound is reached below this exponent; far above it floats overflow.
_LARGEST_EXPONENT = 64


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Doubling from `first` to `longest` seconds, half of each wait random so that clients do not retry together."""

    first: float
    longest: float

    def delay(self, failures: int, random: Random) -> float:
        """Return the seconds to wait; `failures` counts from 1."""
        bound = min(self.longest, self.first * 2.0 ** min(failures - 1, _LARGEST_EXPONENT))
        return bound * (1 + random.random()) / 2
