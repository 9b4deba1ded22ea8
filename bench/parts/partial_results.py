"""Long measurements in a row: a failure keeps the results before it."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from bench.parts.context import TROUBLE
from lab.errors import LabError

Taken = TypeVar("Taken")


def until_trouble(measurements: Mapping[str, Callable[[], Taken]]) -> tuple[list[Taken], list[Exception]]:
    """Run measurements by title until a failure. Return the results, and the failure with its title, if any."""
    taken: list[Taken] = []
    for title, measure in measurements.items():
        try:
            taken.append(measure())
        except TROUBLE as error:
            return taken, [LabError(f"{title}: {error}")]
    return taken, []
