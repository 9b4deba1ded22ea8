"""Reads the logs of a lab's components."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from lab.errors import LabError
from lab.layout import Layout

POLL = 0.2  # seconds


def log_files(layout: Layout, component: str | None) -> list[Path]:
    """Return the logs of one component or of all; raise LabError if there is no such log."""
    there = sorted(layout.logs.glob("*.log"))
    chosen = [path for path in there if component in (None, path.stem)]
    if not there:
        raise LabError(f"lab {layout.name!r} has no logs: it is not up.")
    if not chosen:
        names = ", ".join(path.stem for path in there)
        raise LabError(f"lab {layout.name!r} has no component {component!r}; there are {names}.")
    return chosen


def tail(file: TextIO, lines: int) -> list[str]:
    """Read a file to its end and return the last lines."""
    text = file.read()
    return text.splitlines()[-lines:] if lines else []


def follow(path: Path, file: TextIO) -> Iterator[str]:
    """Yield what comes after the position of `file`, opened from `path`, until `path` is removed."""
    while path.exists():
        if text := file.read():
            yield text
        else:
            time.sleep(POLL)
