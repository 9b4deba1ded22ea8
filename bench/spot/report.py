"""Report of a replay, as a table and as JSON: bills beside what happened, and on-demand machines beside both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from bench.report import Circumstances, line
from bench.spot import economics
from bench.spot.costs import Costs
from bench.spot.economics import Bill, Prices
from bench.spot.replay import Outcome
from bench.spot.trace import Trace
from bench.tables import NOTHING, number

HOUR = 3600.0
HEADINGS = (
    "side",
    "GPU-hours paid",
    "trained",
    "useful steps",
    "lost steps",
    "ranks killed",
    "job restarts",
    "cost",
    "per 1,000 steps",
    "saving",
    "of the promised",
)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that one run found; outcomes by the sides' titles. Times in seconds."""

    circumstances: Circumstances
    trace: Trace
    costs: Costs
    prices: Prices
    notes: tuple[str, ...]
    outcomes: Mapping[str, Outcome]


def show(report: Report) -> None:
    """Print it."""
    # Wide enough for any row: a table that is cut or wrapped is no Markdown.
    console = Console(highlight=False, soft_wrap=True, width=240)
    console.print(line(report.circumstances))
    for note in (*_about(report), *report.notes):
        console.print(note, markup=False)
    console.print(table(report))


def save(report: Report, path: Path) -> None:
    """Write it as JSON, indented. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def table(report: Report) -> Table:
    """Return a row for each side, between on-demand machines and the best that spot machines could do."""
    trace, costs, prices = report.trace, report.costs, report.prices
    shown = Table(box=box.MARKDOWN)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading == HEADINGS[0] else "right", overflow="fold")
    demanded = economics.on_demand(trace, prices=prices, costs=costs)
    shown.add_row(*_bound("on demand, never interrupted", demanded))
    for title, outcome in report.outcomes.items():
        shown.add_row(*_cells(title, outcome, economics.spot(trace, useful=outcome.useful, prices=prices, costs=costs)))
    ideal = economics.spot(trace, useful=economics.best(trace, costs=costs), prices=prices, costs=costs)
    shown.add_row(*_bound("spot, if no second were lost", ideal))
    return shown


def _about(report: Report) -> Sequence[str]:
    trace, prices = report.trace, report.prices
    silent = sum(one.gone is not None and one.noticed is None for one in trace.instances)
    taken = f"{trace.interruptions} interruptions, {silent} of them without notice"
    each = f"{prices.spot:g} spot, {prices.on_demand:g} on demand"
    return [f"Trace: {trace.source}; {taken}.", f"A GPU-hour: {each}; promised saving {prices.promised:.0%}."]


def _cells(title: str, outcome: Outcome, bill: Bill) -> list[str]:
    happened = [number(outcome.lost), str(outcome.killed), str(len(outcome.failures))]
    return [title, *_amounts(bill, outcome.gpu_seconds), *happened, *_money(bill)]


def _bound(title: str, bill: Bill) -> list[str]:
    return [title, *_amounts(bill, bill.gpu_hours * HOUR), NOTHING, NOTHING, NOTHING, *_money(bill)]


def _amounts(bill: Bill, trained: float) -> list[str]:
    return [number(bill.gpu_hours), number(trained / HOUR), number(bill.useful)]


def _money(bill: Bill) -> list[str]:
    each = NOTHING if bill.per_thousand is None else f"{bill.per_thousand:.4f}"
    return [f"{bill.cost:,.2f}", each, _percent(bill.saving), _percent(bill.survives)]


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.1%}"
