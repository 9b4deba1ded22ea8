"""Measurements that take long, one after the other: what came before a failure is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from bench.parts.context import TROUBLE
from lab.errors import LabError

Taken = TypeVar("Taken")


def until_trouble(measurements: Mapping[str, Callable[[], Taken]]) -> tuple[list[Taken], list[Exception]]:
    """Take them by title, until one fails; return what was taken, and that failure with its title, if any."""
    taken: list[Taken] = []
    for title, measure in measurements.items():
        try:
            taken.append(measure())
        except TROUBLE as error:
            return taken, [LabError(f"{title}: {error}")]
    return taken, []
