"""The published format: how many machines there are at each tick."""

from pathlib import Path

import pytest

from bench.spot import published_trace
from bench.spot.trace import Instance, Trace, TraceError

SAMPLE = Path(__file__).with_name("small.json")


def read(text: bytes, *, size: int = 8, longest: float = 1e9) -> Trace:
    return published_trace.read(text, name="small.json", size=size, notice=120, longest=longest)


def test_each_tick_has_as_many_machines_as_it_says() -> None:
    found = read(SAMPLE.read_bytes())
    assert found.horizon == 3600
    assert found.counts() == [(0, 2), (600, 3), (1680, 3), (1800, 1), (2280, 1), (2400, 0), (3000, 2)]


def test_the_oldest_goes_first_and_is_told_before() -> None:
    first = read(SAMPLE.read_bytes()).instances[0]
    assert first == Instance(name="0", up=0, noticed=1680, gone=1800)


def test_no_more_than_are_wanted_and_no_longer_than_is_asked_for() -> None:
    found = read(SAMPLE.read_bytes(), size=2, longest=2000)
    assert found.counts() == [(0, 2), (1680, 2), (1800, 1)]
    assert found.horizon == 2000


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"data": [1]}',
        b'{"metadata": {"gap_seconds": 0}, "data": [1]}',
        b'{"metadata": {"gap_seconds": 600}, "data": []}',
        b'{"metadata": {"gap_seconds": 600}, "data": [-1]}',
        b'{"metadata": {"gap_seconds": 600}, "data": ["a"]}',
    ],
)
def test_what_is_no_trace_is_told_with_what_is_allowed(text: bytes) -> None:
    with pytest.raises(TraceError, match=r"small\.json is not a spot trace: .*Allowed is"):
        read(text)
