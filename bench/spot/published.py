"""Read the format of the traces published with "Can't Be Late" (NSDI 2024).

https://github.com/skypilot-org/spot-traces, a JSON object a file:

    {"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, 4]}

`data` holds how many instances were available at each tick, `gap_seconds` apart; in traces of a single node 1 or 0.
Which machine went is not said, nor whether there was a notice: the one that has been up longest goes first, at the tick
that first misses it, and a notice comes as long before as the caller says.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from bench.spot.trace import Instance, Trace, TraceError


class _Metadata(msgspec.Struct):
    gap_seconds: Annotated[float, msgspec.Meta(gt=0)]


class _File(msgspec.Struct):
    metadata: _Metadata
    data: Annotated[list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1)]


def read(text: bytes, *, name: str, size: int, notice: float, longest: float) -> Trace:
    """The trace of at most `size` machines, cut after `longest` seconds; `name` is the file's. Raises TraceError."""
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError as error:
        raise TraceError(
            f"{name} is no spot trace: {error}. "
            'Allowed is {"metadata": {"gap_seconds": SECONDS}, "data": [MACHINES, ...]}'
        ) from error
    gap = file.metadata.gap_seconds
    horizon = min(longest, gap * len(file.data))
    ticks = [(tick * gap, min(count, size)) for tick, count in enumerate(file.data) if tick * gap < horizon]
    return Trace(
        source=f"{name}, {size} machines at most, {horizon / 3600:g} h",
        size=size,
        horizon=horizon,
        instances=tuple(_instances(ticks, notice)),
    )


def _instances(ticks: list[tuple[float, int]], notice: float) -> list[Instance]:
    alive: list[Instance] = []
    ended: list[Instance] = []
    for at, count in ticks:
        while len(alive) > count:
            one = alive.pop(0)
            ended.append(Instance(name=one.name, up=one.up, noticed=max(one.up, at - notice), gone=at))
        while len(alive) < count:
            alive.append(Instance(name=str(len(alive) + len(ended)), up=at))
    return [*ended, *alive]
