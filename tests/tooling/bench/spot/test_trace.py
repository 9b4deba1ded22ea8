"""A trace of machines, and texts that are none."""

import pytest

from bench.spot.trace import Instance, Kind, Trace, TraceError


def trace(*instances: Instance, size: int = 2, horizon: float = 100.0) -> Trace:
    return Trace(source="test", size=size, horizon=horizon, instances=instances)


FIRST = Instance(name="0", up=0, noticed=30, gone=40)
SECOND = Instance(name="1", up=0, gone=60)
THIRD = Instance(name="2", up=60)


def test_moves_come_in_order_and_a_machine_goes_before_another_comes() -> None:
    moves = [(move.at, move.kind, move.name) for move in trace(THIRD, SECOND, FIRST).moves()]
    assert moves == [
        (0, Kind.UP, "0"),
        (0, Kind.UP, "1"),
        (30, Kind.NOTICE, "0"),
        (40, Kind.GONE, "0"),
        (60, Kind.GONE, "1"),
        (60, Kind.UP, "2"),
    ]


def test_machines_are_counted_and_paid_for_while_they_are_there() -> None:
    found = trace(FIRST, SECOND, THIRD)
    assert found.counts() == [(0, 2), (30, 2), (40, 1), (60, 1)]
    assert found.machine_seconds == 40 + 60 + 40
    assert found.interruptions == 2


@pytest.mark.parametrize(
    "wrong",
    [
        Instance(name="0", up=-1),
        Instance(name="0", up=0, noticed=50, gone=40),
        Instance(name="0", up=10, noticed=5, gone=40),
        Instance(name="0", up=50, gone=40),
        Instance(name="0", up=0, gone=101),
        Instance(name="0", up=101),
    ],
)
def test_times_out_of_order_are_refused(wrong: Instance) -> None:
    with pytest.raises(TraceError, match="needs 0 <= up"):
        trace(wrong)


def test_more_machines_than_are_wanted_are_refused() -> None:
    with pytest.raises(TraceError, match="more than the wanted"):
        trace(FIRST, SECOND, size=1)


@pytest.mark.parametrize(("size", "horizon"), [(0, 1.0), (1, 0.0)])
def test_a_trace_of_nothing_is_refused(size: int, horizon: float) -> None:
    with pytest.raises(TraceError, match="impossible: give at least 1 machine"):
        trace(size=size, horizon=horizon)
