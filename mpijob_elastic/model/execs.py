"""The `kubectl exec`s by which a launcher holds its ranks: one process in the launcher for each rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Exec:
    """One that runs: its process id in the launcher, the pod it was started for, when (seconds since the epoch).

    ticks: when, as field 22 of its /proc/PID/stat says; a later process of the same id has others.
    """

    pid: int
    pod: str
    started_at: float
    ticks: int = 0


@dataclass(frozen=True, kw_only=True)
class Held:
    """What looks into a launcher have shown. asked_at: when last asked, 0 if never; about: for which reasons.

    suspects: execs at whose other end nothing was at the last look; frozen: those of which that held twice, and that
    were not ended since. tries: how often one was tried to be ended, where it is a suspect still.
    """

    asked_at: float = 0.0
    about: frozenset[str] = frozenset()
    suspects: tuple[Exec, ...] = ()
    frozen: tuple[Exec, ...] = ()
    tries: Mapping[Exec, int] = field(default_factory=dict)
