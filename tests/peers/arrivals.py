"""Jobs of two priorities that come during an hour, and what they make of what they get. No IO."""

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from bench.spot.tally import Costs

HOUR = 3600.0
# Mean jobs an hour, and GPU-seconds of training that each needs on average.
LOW, HIGH, WORK = 10, 5, 1400.0
COSTS = Costs()


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A job: seconds from the start, and the GPU-seconds of training that it needs."""

    at: float
    name: str
    urgent: bool
    work: float


def arrivals(seed: int, *, seconds: float) -> list[Arrival]:
    """Return the jobs that come in that time, the first at once.

    A shorter time gives the beginning of a longer one.
    """
    found: list[Arrival] = []
    for kind, rate in (("low", LOW), ("high", HIGH)):
        chance = Random(f"{seed} {kind}")
        at = 0.0 if kind == "low" else chance.expovariate(rate / HOUR)
        for number in itertools.count():
            if at >= seconds:
                break
            work = WORK * chance.uniform(0.5, 1.5)
            found.append(Arrival(at=at, name=f"{kind}-{number}", urgent=kind == "high", work=work))
            at += chance.expovariate(rate / HOUR)
    return sorted(found, key=lambda arrival: arrival.at)


@dataclass(kw_only=True)
class Progress:
    """A job's training in GPU-seconds. done: what counts; lost: what was done twice; started_at: of its first step.

    A GPU trains from when its host is listed and the launcher runs, but for the seconds that
    Horovod needs to form a ring (bench/spot/tally.py). A launcher that starts again goes on from
    the last checkpoint.
    """

    arrival: Arrival
    done: float = 0.0
    lost: float = 0.0
    started_at: float | None = None
    _kept: float = 0.0
    _kept_at: float = 0.0
    _launcher: str = ""
    _hosts: frozenset[str] = field(default_factory=frozenset)
    _trains_at: float = 0.0
    _seen_at: float = 0.0

    @property
    def finished(self) -> bool:
        """True once it has done its work."""
        return self.done >= self.arrival.work

    def look(self, now: float, *, launcher: str, hosts: Collection[str]) -> None:
        """Go on to `now`: what was there at the last look trained until then. launcher: its uid, "" if none runs."""
        self._train(now)
        if launcher != self._launcher:
            self.lost += self.done - self._kept
            self.done = self._kept
            self._kept_at = now
        if launcher != self._launcher or {*hosts} - self._hosts:
            self._trains_at = now + COSTS.reset + COSTS.start
        elif self._hosts - {*hosts}:
            self._trains_at = max(self._trains_at, now + COSTS.reset)
        self._launcher, self._hosts, self._seen_at = launcher, frozenset(hosts), now

    def _train(self, now: float) -> None:
        since = max(self._seen_at, self._trains_at)
        if not self._launcher or not self._hosts or now <= since:
            return
        if self.started_at is None:
            self.started_at = since
        self.done += (now - since) * len(self._hosts)
        if now - self._kept_at >= COSTS.checkpoint:
            self._kept, self._kept_at = self.done, now
