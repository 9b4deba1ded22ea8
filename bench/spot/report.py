"""The results of a replay, as a table and as JSON: bills and events of each side, beside on-demand machines."""

from collections.abc import Mapping, Sequence

import msgspec
from rich import box
from rich.table import Table

from bench.report import Circumstances, line
from bench.spot import economics
from bench.spot.costs import Costs
from bench.spot.economics import Bill, Prices
from bench.spot.replay import Outcome
from bench.spot.trace import Trace
from bench.tables import NOTHING, number, wide_console

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
    """The results of a run; outcomes by the sides' titles. Times in seconds."""

    circumstances: Circumstances
    trace: Trace
    costs: Costs
    prices: Prices
    notes: tuple[str, ...]
    outcomes: Mapping[str, Outcome]


def show(report: Report) -> None:
    """Print the report."""
    console = wide_console()
    console.print(line(report.circumstances))
    for note in (*_about(report), *report.notes):
        console.print(note, markup=False)
    console.print(table(report))


def table(report: Report) -> Table:
    """Return a row per side, between on-demand machines and the upper limit of spot machines."""
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
    silent = sum(instance.gone is not None and instance.noticed is None for instance in trace.instances)
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
