"""Figures of a benchmark: each has samples, and may have a target."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

Sample = TypeVar("Sample")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median, minimum and maximum of some samples."""

    median: float
    least: float
    most: float


def spread(samples: Sequence[float]) -> Spread:
    """Return median, minimum and maximum. Raises statistics.StatisticsError without samples."""
    return Spread(median=statistics.median(samples), least=min(samples), most=max(samples))


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the smallest sample that `percent` % of the samples do not exceed (nearest rank).

    Raises ValueError.
    """
    if not samples:
        raise ValueError("there is no percentile of no samples")
    rank = math.ceil(len(samples) * percent / 100)
    return sorted(samples)[max(rank, 1) - 1]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A bound for the median of a figure's samples: at most `limit`, or at least `limit` if `floor`."""

    limit: float
    floor: bool = False

    def met(self, value: float) -> bool:
        """Return True if `value` keeps the bound."""
        return value >= self.limit if self.floor else value <= self.limit


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured quantity in `unit`, with a sample per repeat of us and of the peer.

    `topic` is its table, `group` the action, `name` the measured part.
    """

    topic: str
    group: str
    name: str
    unit: str
    ours: tuple[float, ...] = ()
    peer: tuple[float, ...] = ()
    target: Target | None = None

    @property
    def verdict(self) -> bool | None:
        """True if our median meets the target; None without target or samples."""
        return self.target.met(spread(self.ours).median) if self.target and self.ours else None

    @property
    def ratio(self) -> float | None:
        """Our median as a multiple of the peer's; None if a side has no samples or the peer's median is 0."""
        if not self.ours or not self.peer or not spread(self.peer).median:
            return None
        return spread(self.ours).median / spread(self.peer).median


def measured(
    heading: tuple[str, str],
    name: str,
    unit: str,
    read: Callable[[Sample], float | None],
    *,
    ours: Sequence[Sample],
    peer: Sequence[Sample] = (),
    target: Target | None = None,
) -> Figure:
    """Return what `read` finds in the samples of both sides, without None; `heading` is topic and group."""
    topic, group = heading
    mine, others = (
        tuple(value for one in side if (value := read(one)) is not None) for side in (ours, peer)
    )
    return Figure(
        topic=topic, group=group, name=name, unit=unit, ours=mine, peer=others, target=target
    )
