"""Figures of a benchmark, each with its samples, and its target where it has one."""

from __future__ import annotations

import msgspec

from bench.statistics import Spread, spread


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A bound for the median of a figure's samples: at most `limit`, or at least that where `floor` is set."""

    limit: float
    floor: bool = False

    def met(self, value: float) -> bool:
        """Return True if `value` keeps the bound."""
        return value >= self.limit if self.floor else value <= self.limit


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured quantity in `unit`: a sample a repeat, of us and of the peer (none where there is no peer).

    `topic` is the table it belongs to, `group` what was done, `name` what was measured of it.
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
        """Return True if our median meets the target; None where there is nothing to judge."""
        return self.target.met(spread(self.ours).median) if self.target and self.ours else None

    @property
    def ratio(self) -> float | None:
        """Our median as a multiple of the peer's; None where one is missing or the peer's is 0."""
        if not self.ours or not self.peer or not spread(self.peer).median:
            return None
        return spread(self.ours).median / spread(self.peer).median


def spreads(figure: Figure) -> tuple[Spread | None, Spread | None]:
    """Ours and the peer's, None where there are no samples."""
    return spread(figure.ours) if figure.ours else None, spread(figure.peer) if figure.peer else None
