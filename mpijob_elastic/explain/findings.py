"""The parts of an explanation, as `-o json` and `-o yaml` print them. Field names are camelCase there."""

from __future__ import annotations

from enum import StrEnum
from functools import partial

import msgspec
from msgspec.structs import replace

# In the words of a worker's finding where a finding on the job, which stands above it, has the rest.
ABOVE = " (see above)"


class Level(StrEnum):
    """fine: as it should be; waiting: resolves by itself; wrong: somebody has to act; unknown: nobody could look."""

    FINE = "fine"
    WAITING = "waiting"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    """One cause: its name for programs, a sentence for people, and the command to type next ("" where none helps)."""

    cause: str
    says: str
    next_step: str = ""
    level: Level = Level.WRONG

    @property
    def alone(self) -> str:
        """The sentence where nothing stands above it."""
        return self.says.replace(ABOVE, "")

    def about(self, name: str) -> Finding:
        """Return the finding with the object's name in front of its words."""
        return self if self.says.startswith(f"{name} ") else replace(self, says=f"{name} {self.says}")


fine = partial(Finding, level=Level.FINE)
waiting = partial(Finding, level=Level.WAITING)
wrong = partial(Finding, level=Level.WRONG)


class WorkerFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The cause that holds for one worker; host: its name in discover_hosts.sh, "" while it has none.

    wanted: the desired size includes it.
    """

    name: str
    host: str
    wanted: bool
    cause: Finding


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every finding on a job and the finding on each worker; no workers where the job is over or not ours.

    training: wanted workers in which exec has shown a rank. all_train: every wanted worker trains, and nothing is
    wrong. Both are None where that is not known; not_known: why. notices: the controller's.
    """

    namespace: str
    name: str
    state: str
    desired: int | None
    training: int | None
    all_train: bool | None
    not_known: str
    job: tuple[Finding, ...]
    workers: tuple[WorkerFinding, ...]
    notices: list[str]
