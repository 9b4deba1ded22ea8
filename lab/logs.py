"""Reads the logs of a lab's components."""

import time
from collections.abc import Iterator
from pathlib import Path

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


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a file."""
    return path.read_text(errors="replace").splitlines()[-lines:] if lines else []


def follow(path: Path) -> Iterator[str]:
    """Yield what is appended to a file from now on, until it is removed."""
    with path.open(errors="replace") as file:
        file.seek(0, 2)
        while path.exists():
            if text := file.read():
                yield text
            else:
                time.sleep(POLL)
