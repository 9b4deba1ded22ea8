"""A spot trace: which machines exist when. Times are seconds from the start of the trace."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class TraceError(ValueError):
    """A trace is impossible: what is wrong, where, and what is allowed."""


class Kind(StrEnum):
    """Kinds of moves."""

    UP = "up"
    NOTICE = "notice"
    GONE = "gone"


# At the same time, machines go before others join, so that the pool never has too many.
_ORDER = (Kind.GONE, Kind.NOTICE, Kind.UP)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One machine with one GPU: when it joins, when it gets its notice, when it is taken.

    noticed: None if it is taken without a notice; gone: None if it outlives the trace.
    """

    name: str
    up: float
    noticed: float | None = None
    gone: float | None = None


@dataclass(frozen=True, kw_only=True)
class Move:
    """One change of one machine."""

    at: float
    kind: Kind
    name: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """`size` machines are wanted for `horizon` seconds. `source` says in words where the instances come from."""

    source: str
    size: int
    horizon: float
    instances: tuple[Instance, ...]

    def __post_init__(self) -> None:
        """Raise TraceError if a machine's times are out of order, or more machines are up than wanted."""
        if self.size < 1 or self.horizon <= 0:
            what = f"a trace of {self.size} machines for {self.horizon:g} s"
            raise TraceError(f"{what} is impossible: give at least 1 machine, and more than 0 s")
        for instance in self.instances:
            gone = self.horizon if instance.gone is None else instance.gone
            if not 0 <= instance.up <= (gone if instance.noticed is None else instance.noticed) <= gone <= self.horizon:
                raise TraceError(f"{instance}: needs 0 <= up <= noticed <= gone <= {self.horizon:g}")
        if any(count > self.size for _, count in self.counts()):
            raise TraceError(f"more than the wanted {self.size} machines are up at once")

    def moves(self) -> list[Move]:
        """Return all moves in order."""
        return sorted(self._moves(), key=lambda move: (move.at, _ORDER.index(move.kind), move.name))

    def counts(self) -> list[tuple[float, int]]:
        """Return the number of machines over time: each time of change, with the number from then on."""
        found: list[tuple[float, int]] = []
        count = 0
        for at, moves in groupby(self.moves(), key=lambda move: move.at):
            count += sum({Kind.UP: 1, Kind.NOTICE: 0, Kind.GONE: -1}[move.kind] for move in moves)
            found.append((at, count))
        return found

    @property
    def machine_seconds(self) -> float:
        """The paid time: each machine from joining until it is taken, used or not."""
        ends = (self.horizon if instance.gone is None else instance.gone for instance in self.instances)
        return sum(ends) - sum(instance.up for instance in self.instances)

    @property
    def interruptions(self) -> int:
        """Number of machines that are taken."""
        return sum(instance.gone is not None for instance in self.instances)

    def _moves(self) -> Iterable[Move]:
        for instance in self.instances:
            yield Move(at=instance.up, kind=Kind.UP, name=instance.name)
            if instance.noticed is not None:
                yield Move(at=instance.noticed, kind=Kind.NOTICE, name=instance.name)
            if instance.gone is not None:
                yield Move(at=instance.gone, kind=Kind.GONE, name=instance.name)
