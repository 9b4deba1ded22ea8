"""Figures with their circumstances (when, which machine, which peer), on screen and as JSON."""

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.figures import Figure
from bench.tables import table, wide_console
from mpijob_elastic import __version__

GIB = 2**30


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """`load` is the mean number of running processes in the minute before: above about 0.5, other work ran too."""

    at: str
    command: str
    version: str
    python: str
    cores: int
    memory_gib: int
    load: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run of the benchmarks; `notes` name the compared sides."""

    circumstances: Circumstances
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]


def circumstances() -> Circumstances:
    """Return the present circumstances."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Circumstances(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        version=__version__,
        python=platform.python_version(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(memory / GIB),
        load=round(os.getloadavg()[0], 2),
    )


def line(about: Circumstances) -> str:
    """Return the circumstances in a line."""
    return (
        f"{about.at}, {about.cores} cores, {about.memory_gib} GiB, load {about.load} before; "
        f"mpijob-elastic {about.version}, Python {about.python}"
    )


def show(report: Report) -> None:
    """Print the report."""
    console = wide_console()
    console.print(line(report.circumstances))
    for note in report.notes:
        console.print(note, markup=False)
    for topic, figures in _topics(report.figures).items():
        console.print(f"\n{topic}\n", table(figures), sep="")


def save(report: msgspec.Struct, path: Path) -> None:
    """Write a report as indented JSON. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _topics(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    topics: dict[str, list[Figure]] = {}
    for figure in figures:
        topics.setdefault(figure.topic, []).append(figure)
    return topics
