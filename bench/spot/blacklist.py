"""Host names that Horovod does not use because a rank died there, permanently or until they have cooled down.

From horovod/runner/elastic/discovery.py, class Host: with --blacklist-cooldown-range MIN MAX a name may be used again
after MIN seconds times two to the number of its losses, plus a random time up to MIN, but after MAX at the latest.
"""

import math
from collections import Counter
from collections.abc import Iterable
from random import Random


class Blacklist:
    """The blacklist of a run of horovodrun. Times are seconds; `chance` draws the random times."""

    def __init__(self, *, cooldown: tuple[float, float] | None, chance: Random) -> None:
        self._cooldown = cooldown
        self._chance = chance
        self._losses = Counter[str]()
        self._until: dict[str, float] = {}

    @property
    def losses(self) -> int:
        """Number of ranks that have died."""
        return self._losses.total()

    def add(self, host: str, now: float) -> None:
        """Record that a rank died on `host`."""
        self._losses[host] += 1
        self._until[host] = now + self._length(self._losses[host])

    def usable(self, hosts: Iterable[str], now: float) -> tuple[str, ...]:
        """Return the hosts that may be used."""
        return tuple(host for host in hosts if self._until.get(host, 0.0) <= now)

    def next_usable(self, hosts: Iterable[str], now: float) -> float:
        """Return when the next of these hosts may be used again."""
        return min((at for host in hosts if (at := self._until.get(host, 0.0)) > now), default=math.inf)

    def _length(self, losses: int) -> float:
        if self._cooldown is None:
            return math.inf
        least, most = self._cooldown
        return min(least * 2.0**losses + self._chance.uniform(0, least), most)
