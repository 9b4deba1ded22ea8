"""From samples to the few numbers that are shown of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Middle and ends of a few repeats."""

    median: float
    least: float
    most: float


def spread(samples: Sequence[float]) -> Spread:
    """Median, minimum and maximum. Raises statistics.StatisticsError where there is no sample."""
    return Spread(median=statistics.median(samples), least=min(samples), most=max(samples))


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` % of them do not exceed (nearest rank). Raises ValueError."""
    if not samples:
        raise ValueError("there is no percentile of no samples")
    rank = math.ceil(len(samples) * percent / 100)
    return sorted(samples)[max(rank, 1) - 1]
