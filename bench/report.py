"""Figures with their circumstances (when, which machine, which peer): as Markdown on the screen, and as JSON."""

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from bench.figures import Figure, Target, spread
from mpijob_elastic import __version__

GIB = 2**30
NOTHING = "-"
LAST_RELEASE = "last release"

# Topic, group, name and unit.
Place = tuple[str, str, str, str]


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


def show(report: Report, *, released: Report | None = None) -> None:
    """Print the report; with that of the last release, each figure has a column with what it was then."""
    # Wide enough for any row: a cut or wrapped table is not Markdown.
    console = Console(highlight=False, soft_wrap=True, width=240)
    console.print(line(report.circumstances))
    for note in report.notes:
        console.print(note, markup=False)
    if released:
        console.print(f"{LAST_RELEASE}: {line(released.circumstances)}", markup=False)
    then = by_place(released.figures) if released else None
    for topic, figures in _topics(report.figures).items():
        console.print(f"\n{topic}\n", table(figures, then=then), sep="")


def save(report: msgspec.Struct, path: Path) -> None:
    """Write a report as indented JSON. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def read(path: Path) -> Report:
    """Return a report that `save` wrote. Raises OSError, and ValueError if it is none."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def by_place(figures: Sequence[Figure]) -> dict[Place, Figure]:
    """Return figures by where a report shows them."""
    return {place(figure): figure for figure in figures}


def place(figure: Figure) -> Place:
    """Return where a report shows a figure: the same in each run."""
    return figure.topic, figure.group, figure.name, figure.unit


def _topics(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    topics: dict[str, list[Figure]] = {}
    for figure in figures:
        topics.setdefault(figure.topic, []).append(figure)
    return topics


def table(figures: Sequence[Figure], *, then: Mapping[Place, Figure] | None = None) -> Table:
    """Return a row per figure: median (min to max). The peer has columns only if it has samples.

    `then` has the figures of the last release, which get a column.
    """
    compared = any(figure.peer for figure in figures)
    shown = Table(box=box.MARKDOWN)
    for heading in (
        "what",
        "measured",
        *(("peer", "ours", "ratio") if compared else ("ours",)),
        *(() if then is None else (LAST_RELEASE,)),
        "target",
        "verdict",
    ):
        shown.add_column(heading, overflow="fold")
    for figure in figures:
        at_release = () if then is None else (_at_release(then.get(place(figure))),)
        shown.add_row(*_cells(figure, at_release, compared=compared))
    return shown


def _cells(figure: Figure, at_release: Sequence[str], *, compared: bool) -> list[str]:
    ratio = NOTHING if figure.ratio is None else f"{figure.ratio:.2f}"
    measured = (
        [_spread(figure.peer), _spread(figure.ours), ratio] if compared else [_spread(figure.ours)]
    )
    unit = f"{figure.name}, {figure.unit}" if figure.unit else figure.name
    judged = (_target(figure.target), _verdict(figure.verdict))
    return [figure.group, unit, *measured, *at_release, *judged]


def _at_release(figure: Figure | None) -> str:
    """Return our median, with the ratio to the peer if there is one: another machine changes the ratio less."""
    if figure is None or not figure.ours:
        return NOTHING
    median = number(spread(figure.ours).median)
    return median if figure.ratio is None else f"{median}, ratio {figure.ratio:.2f}"


def _spread(samples: Sequence[float]) -> str:
    if not samples:
        return NOTHING
    found = spread(samples)
    if found.least == found.most:
        return number(found.median)
    return f"{number(found.median)} ({number(found.least)} to {number(found.most)})"


def _target(target: Target | None) -> str:
    return NOTHING if target is None else f"{'≥' if target.floor else '≤'} {number(target.limit)}"


def _verdict(verdict: bool | None) -> str:  # noqa: FBT001 - the value has no name
    return {True: "met", False: "MISSED", None: NOTHING}[verdict]


def number(value: float) -> str:
    """Render three significant digits, or all digits before the point."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}"
