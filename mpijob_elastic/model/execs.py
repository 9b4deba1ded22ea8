"""The `kubectl exec`s by which a launcher holds its ranks: one process in the launcher for each rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Exec:
    """One that runs: its process id in the launcher, the pod it was started for, when (seconds since the epoch)."""

    pid: int
    pod: str
    started_at: float


@dataclass(frozen=True, kw_only=True)
class Held:
    """What looks into a launcher have shown. asked_at: when last asked, 0 if never; about: for which reasons.

    suspects: execs at whose other end nothing was at the last look; frozen: those of which that held twice.
    """

    asked_at: float = 0.0
    about: frozenset[str] = frozenset()
    suspects: tuple[Exec, ...] = ()
    frozen: tuple[Exec, ...] = ()
