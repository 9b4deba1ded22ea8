"""A spot trace: which machines exist when. Times are seconds from the start of the trace.

The format is that of "Can't Be Late" (NSDI 2024), https://github.com/skypilot-org/spot-traces, a
JSON object a file:

    {"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, 4]}

`data` has the number of available machines at each tick, `gap_seconds` apart; 1 or 0 in traces of a
single node. The format does not say which machine went, or whether there was a notice: the oldest
goes first, at the tick that first misses it, two minutes after its notice, as AWS gives it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

NOTICE = 120.0


class Kind(StrEnum):
    """Kinds of moves."""

    UP = "up"
    NOTICE = "notice"
    GONE = "gone"


# At the same time, machines go before others join, so that the pool never has too many.
_ORDER = (Kind.GONE, Kind.NOTICE, Kind.UP)


@dataclass(frozen=True, kw_only=True)
class Move:
    """One change of one machine, which has one GPU."""

    at: float
    kind: Kind
    name: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """`size` machines are wanted for `horizon` seconds; the moves in order.

    `source` says where they come from.
    """

    source: str
    size: int
    horizon: float
    moves: Sequence[Move]

    @property
    def machine_seconds(self) -> float:
        """The paid time: each machine from joining until it is taken, used or not."""
        ends = {Kind.UP: 1, Kind.NOTICE: 0, Kind.GONE: -1}
        return sum(ends[move.kind] * (self.horizon - move.at) for move in self.moves)

    @property
    def interruptions(self) -> int:
        """Number of machines that are taken."""
        return sum(move.kind is Kind.GONE for move in self.moves)


class _Metadata(msgspec.Struct):
    gap_seconds: Annotated[float, msgspec.Meta(gt=0)]


class _File(msgspec.Struct):
    metadata: _Metadata
    data: Annotated[list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1)]


def read(text: bytes, *, name: str, size: int, longest: float) -> Trace:
    """Return a trace of at most `size` machines and `longest` seconds.

    `name` is the file's. Raises ValueError.
    """
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"{name} is not a spot trace: {error}. "
            'Allowed is {"metadata": {"gap_seconds": SECONDS}, "data": [MACHINES, ...]}'
        ) from error
    gap = file.metadata.gap_seconds
    horizon = min(longest, gap * len(file.data))
    ticks = [
        (tick * gap, min(count, size))
        for tick, count in enumerate(file.data)
        if tick * gap < horizon
    ]
    moves = sorted(_moves(ticks), key=lambda move: (move.at, _ORDER.index(move.kind), move.name))
    source = f"{name}, {size} machines at most, {horizon / 3600:g} h"
    return Trace(source=source, size=size, horizon=horizon, moves=moves)


def _moves(ticks: Sequence[tuple[float, int]]) -> Iterable[Move]:
    alive: list[Move] = []
    made = 0
    for at, count in ticks:
        while len(alive) > count:
            oldest = alive.pop(0)
            yield Move(at=max(oldest.at, at - NOTICE), kind=Kind.NOTICE, name=oldest.name)
            yield Move(at=at, kind=Kind.GONE, name=oldest.name)
        while len(alive) < count:
            alive.append(Move(at=at, kind=Kind.UP, name=str(made)))
            made += 1
            yield alive[-1]
