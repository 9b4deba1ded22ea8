"""Slowness: how a rank's own time of a step compares with that of the others; pure.

All ranks of a ring step together, so the time of a step does not tell which of them is slow. Their
own times do (`ProgressLine.own_ms`): each is without the wait for other ranks, and is the usual one
of many steps, so that an evaluation, a checkpoint or a pause does not count.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from mpijob_elastic.model.progress import ProgressLine

# A look finds a rank slow from so many times the median of the others on, and quick below.
SLOW, QUICK = 1.5, 1.3
# Looks in a row that decide.
ENOUGH = 3
# Looks after which a rank that is still not found slow is none, whoever has said so before.
TWICE = 2 * ENOUGH
# Ranks of a ring that can be compared: among fewer nobody can tell which one is unusual.
FEWEST = 4
# Seconds of a ring, and after a change of the list, before ranks are compared: caches are cold.
SETTLED = 120.0
# Seconds for which a line counts after it was read.
FRESH_FOR = 120.0
# Seconds by which the starts of one ring may differ: ranks load data, and clocks differ.
APART = 30.0


class Slowness(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What looks have shown of one rank, in its present ring."""

    #: Looks that have seen it do a step, no more than TWICE are counted.
    looks: int = 0
    #: Looks in a row that have found it slow; no more than ENOUGH are counted.
    slow: int = 0
    #: Looks in a row that have found it quick; no more than ENOUGH are counted.
    quick: int = 0
    #: Once it counts as slow: how many times as long it takes as the median of the others; else 0.
    times: float = 0.0
    #: The number of ranks that were compared then.
    among: int = 0


NOT_COMPARED = Slowness()


def after(before: Slowness, factor: float | None, *, among: int) -> Slowness:
    """Return what is known after one more look that has seen a step.

    factor: how many times as long it takes as the median of so many others; None if the look could
    not compare it.
    """
    looks = min(before.looks + 1, TWICE)
    if factor is None:
        return replace(before, looks=looks)
    found = replace(
        before,
        looks=looks,
        slow=min(before.slow + 1, ENOUGH) if factor > SLOW else 0,
        quick=min(before.quick + 1, ENOUGH) if factor < QUICK else 0,
    )
    if found.times and found.quick == ENOUGH:
        return replace(found, times=0.0, among=0)
    if not found.times and found.slow == ENOUGH:
        return replace(found, times=round(factor, 1), among=among)
    return found


def factors(lines: Mapping[str, ProgressLine], *, now: float) -> Mapping[str, float]:
    """Return each rank's own time of a step, divided by the median of the others' in its ring.

    Only ranks of the newest ring that say their own time are in it; none, if they are too few.
    """
    known = {key: line for key, line in lines.items() if _tells(line, now=now)}
    newest = max(known.values(), key=lambda line: line.since, default=None)
    if newest is None:
        return {}
    ring = {key: line.own_ms for key, line in known.items() if _are_together(line, newest)}
    if len(ring) < FEWEST:
        return {}
    in_order = sorted(ring.values())
    return {key: own / _median_of_others(in_order, own) for key, own in ring.items()}


def _tells(line: ProgressLine, *, now: float) -> bool:
    """Tell whether a line says now how long the steps of its rank take."""
    if not line.alive or not line.own_ms:
        return False
    return now <= line.asked_at + FRESH_FOR and line.at - line.since >= SETTLED


def _are_together(line: ProgressLine, newest: ProgressLine) -> bool:
    return line.ranks == newest.ranks and newest.since - line.since <= APART


def _median_of_others(in_order: Sequence[float], one: float) -> float:
    """Return the median of sorted numbers without one of them."""
    place, half = bisect_left(in_order, one), (len(in_order) - 1) // 2
    upper = _without(in_order, place, half)
    if len(in_order) % 2 == 0:
        return upper
    return (_without(in_order, place, half - 1) + upper) / 2


def _without(in_order: Sequence[float], place: int, index: int) -> float:
    """Return the number at an index once that of a place is left out."""
    return in_order[index + 1] if index >= place else in_order[index]
