"""The parts of an explanation, as `-o json` and `-o yaml` print them. Field names are camelCase there."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import replace


class Level(StrEnum):
    """fine: as it should be; waiting: resolves by itself; wrong: somebody has to act."""

    FINE = "fine"
    WAITING = "waiting"
    WRONG = "wrong"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One cause: its name for programs, a sentence for people, and the command to type next ("" where none helps)."""

    cause: str
    level: Level
    says: str
    next_step: str = ""

    def about(self, name: str) -> Finding:
        """Return the finding with the object's name in front of its words."""
        return replace(self, says=f"{name} {self.says}")


def fine(cause: str, says: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(cause=cause, says=says, level=Level.FINE)


def waiting(cause: str, says: str, *, step: str = "") -> Finding:
    """Return a finding that resolves by itself."""
    return Finding(cause=cause, says=says, next_step=step, level=Level.WAITING)


def wrong(cause: str, says: str, *, step: str = "") -> Finding:
    """Return a finding that somebody has to act on."""
    return Finding(cause=cause, says=says, next_step=step, level=Level.WRONG)


class WorkerFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The cause that holds for one worker; host: its name in discover_hosts.sh, "" while it has none.

    wanted: the desired size includes it.
    """

    name: str
    host: str
    wanted: bool
    cause: Finding


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Every finding on the job and one on each worker; no workers where the job is over or not ours."""

    job: tuple[Finding, ...] = ()
    workers: tuple[WorkerFinding, ...] = ()

    def of(self, worker: str) -> Explanation:
        """Return the findings on the job and on that worker."""
        return replace(self, workers=tuple(found for found in self.workers if found.name == worker))

    @property
    def training(self) -> int:
        """Count the wanted workers that train, as far as can be seen."""
        return sum(found.wanted and found.cause.level is Level.FINE for found in self.workers)

    @property
    def all_train(self) -> bool:
        """Tell whether every wanted worker trains and nothing is wrong."""
        said = (*self.job, *(found.cause for found in self.workers))
        is_wrong = any(finding.level is Level.WRONG for finding in said)
        return 0 < self.training == sum(found.wanted for found in self.workers) and not is_wrong
