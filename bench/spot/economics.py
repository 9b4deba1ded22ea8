"""The cost of steps: each side's bill, compared with on-demand machines and the promised saving."""

from dataclasses import dataclass

from bench.spot.costs import Costs
from bench.spot.trace import Trace

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of a GPU-hour, in any currency."""

    spot: float = 0.30
    on_demand: float = 1.00

    @property
    def promised(self) -> float:
        """The saving if spot machines were as good as on-demand machines, as a share."""
        return 1 - self.spot / self.on_demand


@dataclass(frozen=True, kw_only=True)
class Bill:
    """Paid GPU-hours, useful steps, their cost in total and per thousand.

    saving: share saved of the cost per thousand, compared with on-demand machines; negative if spot costs more.
    survives: share of the promised saving. None if there is no useful step, or no promised saving.
    """

    gpu_hours: float
    useful: float
    cost: float
    per_thousand: float | None
    saving: float | None
    survives: float | None


def bill(*, gpu_seconds: float, useful: float, price: float, prices: Prices, costs: Costs, size: int) -> Bill:
    """Return the bill of GPUs at `price` per hour."""
    cost = gpu_seconds / HOUR * price
    per_thousand = cost / useful * 1000 if useful > 0 else None
    on_demand = size * 1000 * costs.step / HOUR * prices.on_demand
    saving = None if per_thousand is None else 1 - per_thousand / on_demand
    return Bill(
        gpu_hours=gpu_seconds / HOUR,
        useful=useful,
        cost=cost,
        per_thousand=per_thousand,
        saving=saving,
        survives=saving / prices.promised if saving is not None and prices.promised > 0 else None,
    )


def spot(trace: Trace, *, useful: float, prices: Prices, costs: Costs) -> Bill:
    """Return the bill of a side: every machine of the trace is paid for while it exists, used or not."""
    paid = trace.machine_seconds
    return bill(gpu_seconds=paid, useful=useful, price=prices.spot, prices=prices, costs=costs, size=trace.size)


def best(trace: Trace, *, costs: Costs) -> float:
    """Return the steps if every machine trained in every paid second."""
    return trace.machine_seconds / trace.size / costs.step


def on_demand(trace: Trace, *, prices: Prices, costs: Costs) -> Bill:
    """Return the bill of the same number of on-demand machines for the same time, never interrupted."""
    paid = trace.size * trace.horizon
    useful = trace.horizon / costs.step
    return bill(gpu_seconds=paid, useful=useful, price=prices.on_demand, prices=prices, costs=costs, size=trace.size)
