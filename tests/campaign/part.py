"""The options and the outcome of a part of the campaign, and what all parts say and judge in the same way."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True, kw_only=True)
class Options:
    """seed: repeats a run. minutes: wall time after which a part ends; None for the part's own number of runs."""

    seed: int
    minutes: float | None = None

    def runs(self, usual: int) -> Iterator[int]:
        """Yield 0, 1, 2, ...: `usual` numbers without `minutes`, else until that time is over, but at least one."""
        end = time.monotonic() + 60 * (self.minutes or 0.0)
        for number in count():
            is_over = (
                number >= usual if self.minutes is None else number > 0 and time.monotonic() >= end
            )
            if is_over:
                return
            yield number


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """runs: how many were made. violations: what went wrong, one text each. numbers: what was measured, in words."""

    runs: int
    violations: tuple[str, ...] = ()
    numbers: str = ""


def above(what: str, figure: float, most: float) -> list[str]:
    """Return the violation of a figure that is above its limit."""
    return [f"{what}: {figure:.3g} is above {most:.3g}"] if figure > most else []


def say(text: str) -> None:
    """Tell on standard error how far a part is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
