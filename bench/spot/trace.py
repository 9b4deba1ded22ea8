"""A spot trace: which machines there are when. Times are seconds from the trace's begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class TraceError(ValueError):
    """A trace that cannot be: what is wrong, where, what is allowed."""


class Kind(StrEnum):
    """Kind of event of a machine."""

    UP = "up"
    NOTICE = "notice"
    GONE = "gone"


# At one time machines go before others come, so that the pool never holds more than it may.
_ORDER = (Kind.GONE, Kind.NOTICE, Kind.UP)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A machine with one GPU: when it joins, when its notice comes, when it is taken.

    noticed is None for one that is taken without a word; gone is None for one that outlives the trace.
    """

    name: str
    up: float
    noticed: float | None = None
    gone: float | None = None


@dataclass(frozen=True, kw_only=True)
class Move:
    """An event of a machine."""

    at: float
    kind: Kind
    name: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """`size` machines are wanted for `horizon` seconds; `source` says in words where the rest comes from."""

    source: str
    size: int
    horizon: float
    instances: tuple[Instance, ...]

    def __post_init__(self) -> None:
        """Raise TraceError where a machine's times are out of order, or more machines are up than are wanted."""
        if self.size < 1 or self.horizon <= 0:
            raise TraceError(f"a trace of {self.size} machines for {self.horizon:g} s; allowed are 1 and more, above 0")
        for one in self.instances:
            gone = self.horizon if one.gone is None else one.gone
            if not 0 <= one.up <= (gone if one.noticed is None else one.noticed) <= gone <= self.horizon:
                raise TraceError(f"{one}: needs 0 <= up <= noticed <= gone <= {self.horizon:g}")
        if any(count > self.size for _, count in self.counts()):
            raise TraceError(f"more machines are up at once than the {self.size} that are wanted")

    def moves(self) -> list[Move]:
        """Everything that happens, in order."""
        return sorted(self._moves(), key=lambda move: (move.at, _ORDER.index(move.kind), move.name))

    def counts(self) -> list[tuple[float, int]]:
        """Return the times at which the number of machines changes, with the number from then on."""
        found: list[tuple[float, int]] = []
        count = 0
        for at, moves in groupby(self.moves(), key=lambda move: move.at):
            count += sum({Kind.UP: 1, Kind.NOTICE: 0, Kind.GONE: -1}[move.kind] for move in moves)
            found.append((at, count))
        return found

    @property
    def machine_seconds(self) -> float:
        """Return the time that is paid for: each machine from joining to being taken, used or not."""
        return sum((self.horizon if one.gone is None else one.gone) - one.up for one in self.instances)

    @property
    def interruptions(self) -> int:
        """Number of machines that are taken."""
        return sum(one.gone is not None for one in self.instances)

    def _moves(self) -> Iterable[Move]:
        for one in self.instances:
            yield Move(at=one.up, kind=Kind.UP, name=one.name)
            if one.noticed is not None:
                yield Move(at=one.noticed, kind=Kind.NOTICE, name=one.name)
            if one.gone is not None:
                yield Move(at=one.gone, kind=Kind.GONE, name=one.name)
