"""What an explanation is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from mpijob_elastic.model.job import JobView


class Level(StrEnum):
    """fine: as it should be; waiting: it comes right by itself; wrong: somebody has to do something."""

    FINE = "fine"
    WAITING = "waiting"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One cause: its name for programs, what holds in words, and the command to type next ("" where none helps)."""

    cause: str
    says: str
    next_step: str = ""
    level: Level = Level.WRONG


@dataclass(frozen=True, kw_only=True)
class WorkerFinding:
    """The cause that holds for one worker; wanted: whether the size asks for it."""

    worker: str
    wanted: bool
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Of the job everything that holds, of each worker one cause; no workers where the job is over or not ours."""

    job: tuple[Finding, ...] = ()
    workers: tuple[WorkerFinding, ...] = ()

    def of(self, worker: str) -> Explanation:
        """What concerns that worker alone."""
        return replace(self, workers=tuple(one for one in self.workers if one.worker == worker))

    @property
    def training(self) -> int:
        """How many workers that are asked for train, as far as can be seen."""
        return sum(one.wanted and one.finding.level is Level.FINE for one in self.workers)

    @property
    def all_train(self) -> bool:
        """Whether every worker that is asked for trains and nothing is wrong."""
        said = (*self.job, *(one.finding for one in self.workers))
        is_wrong = any(finding.level is Level.WRONG for finding in said)
        return 0 < self.training == sum(one.wanted for one in self.workers) and not is_wrong


def kubectl(view: JobView, *words: str) -> str:
    """The command for the job's namespace."""
    return " ".join(("kubectl", "-n", view.namespace, *words))
