"""Summaries of samples."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
    """Return the smallest sample that `percent` % of the samples do not exceed (nearest rank). Raises ValueError."""
    if not samples:
        raise ValueError("there is no percentile of no samples")
    rank = math.ceil(len(samples) * percent / 100)
    return sorted(samples)[max(rank, 1) - 1]
