"""Bills, saving, and how much of the promise survives."""

import pytest

from bench.spot import economics
from bench.spot.costs import Costs
from bench.spot.economics import Prices
from bench.spot.trace import Instance, Trace

HOUR = 3600.0
COSTS = Costs(step=0.25)
PRICES = Prices(spot=0.3, on_demand=1.0)
TRACE = Trace(
    source="test",
    size=2,
    horizon=10 * HOUR,
    instances=(Instance(name="0", up=0), Instance(name="1", up=0, gone=4 * HOUR)),
)


def test_on_demand_machines_are_what_all_is_held_against() -> None:
    bill = economics.on_demand(TRACE, prices=PRICES, costs=COSTS)
    assert (bill.gpu_hours, bill.cost, bill.useful) == (20, 20, 144_000)
    assert bill.per_thousand == pytest.approx(20 / 144)
    assert bill.saving == pytest.approx(0)


def test_the_promise_survives_whole_where_no_second_is_lost() -> None:
    bill = economics.spot(TRACE, useful=economics.best(TRACE, costs=COSTS), prices=PRICES, costs=COSTS)
    assert bill.gpu_hours == 14
    assert bill.cost == pytest.approx(4.2)
    assert bill.saving == pytest.approx(PRICES.promised)
    assert bill.survives == pytest.approx(1)


def test_half_the_steps_for_the_same_money_are_twice_as_dear() -> None:
    half = economics.spot(TRACE, useful=economics.best(TRACE, costs=COSTS) / 2, prices=PRICES, costs=COSTS)
    assert half.saving == pytest.approx(1 - 0.3 * 2)
    assert half.survives == pytest.approx(0.4 / 0.7)


def test_spot_can_be_dearer_than_on_demand() -> None:
    tenth = economics.spot(TRACE, useful=economics.best(TRACE, costs=COSTS) / 10, prices=PRICES, costs=COSTS)
    assert tenth.saving == pytest.approx(-2)


def test_nothing_is_said_where_nothing_was_done_or_promised() -> None:
    idle = economics.spot(TRACE, useful=0, prices=PRICES, costs=COSTS)
    assert (idle.per_thousand, idle.saving, idle.survives) == (None, None, None)
    dear = economics.spot(TRACE, useful=1000, prices=Prices(spot=1, on_demand=1), costs=COSTS)
    assert dear.survives is None
