"""Figures as a Markdown table, for the terminal and for docs/records/performance.md."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from bench.figures import Figure, Spread, Target, spreads

NOTHING = "-"


def table(figures: Sequence[Figure]) -> Table:
    """Return a row per figure: median (min to max). The peer has columns only if it has samples."""
    compared = any(figure.peer for figure in figures)
    shown = Table(box=box.MARKDOWN)
    for heading in ("what", "measured", *(("peer", "ours", "ratio") if compared else ("ours",)), "target", "verdict"):
        shown.add_column(heading, overflow="fold")
    for figure in figures:
        shown.add_row(*_cells(figure, compared=compared))
    return shown


def wide_console() -> Console:
    """Return a console that is wide enough for any row: a cut or wrapped table is not Markdown."""
    return Console(highlight=False, soft_wrap=True, width=240)


def _cells(figure: Figure, *, compared: bool) -> list[str]:
    ours, peer = spreads(figure)
    measured = [_spread(peer), _spread(ours), _ratio(figure.ratio)] if compared else [_spread(ours)]
    unit = f"{figure.name}, {figure.unit}" if figure.unit else figure.name
    return [figure.group, unit, *measured, _target(figure.target), _verdict(figure.verdict)]


def _spread(samples: Spread | None) -> str:
    if samples is None:
        return NOTHING
    if samples.least == samples.most:
        return number(samples.median)
    return f"{number(samples.median)} ({number(samples.least)} to {number(samples.most)})"


def _ratio(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.2f}"


def _target(target: Target | None) -> str:
    return NOTHING if target is None else f"{'≥' if target.floor else '≤'} {number(target.limit)}"


def _verdict(verdict: bool | None) -> str:  # noqa: FBT001 - the value has no name
    return {True: "met", False: "MISSED", None: NOTHING}[verdict]


def number(value: float) -> str:
    """Render three significant digits, or all digits before the point."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}"
