"""The `kubectl exec`s by which a launcher holds its ranks: one process in the launcher for each rank."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

# How often an exec is tried to be ended, each time after another look (decide/frozen_execs).
MOST_TRIES = 6


@dataclass(frozen=True, kw_only=True)
class Exec:
    """A running exec: its process id in the launcher, its pod, and its start (seconds since the epoch).

    ticks: its start in field 22 of /proc/PID/stat, which differs for a later process of the same id.
    """

    pid: int
    pod: str
    started_at: float
    ticks: int = 0


@dataclass(frozen=True, kw_only=True)
class Held:
    """The result of looks into a launcher. asked_at: time of the last look, 0 if never; about: its reasons.

    suspects: execs without a peer at the last look. frozen: suspects of two looks that were not ended since. tries: how
    often ending a suspect was tried; tried_at: time of the last try.
    """

    asked_at: float = 0.0
    about: frozenset[str] = frozenset()
    suspects: tuple[Exec, ...] = ()
    frozen: tuple[Exec, ...] = ()
    tries: Mapping[Exec, int] = field(default_factory=dict)
    tried_at: float = 0.0

    @cached_property
    def unended(self) -> frozenset[str]:
        """Pods of suspects that we have not ended."""
        frozen = {*self.frozen}
        return frozenset(one.pod for one in self.suspects if one in frozen or self.tries.get(one, 0) < MOST_TRIES)
