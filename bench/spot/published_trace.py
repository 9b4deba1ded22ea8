"""Read the trace format of "Can't Be Late" (NSDI 2024).

https://github.com/skypilot-org/spot-traces, a JSON object a file:

    {"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, 4]}

`data` has the number of available instances at each tick, `gap_seconds` apart; 1 or 0 in traces of a single node. The
format does not say which machine went, or whether there was a notice: the oldest instance goes first, at the
tick that first misses it. Its notice comes before that, by the time that the caller gives.
"""

from typing import Annotated

import msgspec

from bench.spot.trace import Instance, Trace, TraceError


class _Metadata(msgspec.Struct):
    gap_seconds: Annotated[float, msgspec.Meta(gt=0)]


class _File(msgspec.Struct):
    metadata: _Metadata
    data: Annotated[list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1)]


def read(text: bytes, *, name: str, size: int, notice: float, longest: float) -> Trace:
    """Return a trace of at most `size` machines and `longest` seconds. `name` is the file's. Raises TraceError."""
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError as error:
        raise TraceError(
            f"{name} is not a spot trace: {error}. "
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
            instance = alive.pop(0)
            ended.append(Instance(name=instance.name, up=instance.up, noticed=max(instance.up, at - notice), gone=at))
        while len(alive) < count:
            alive.append(Instance(name=str(len(alive) + len(ended)), up=at))
    return [*ended, *alive]
