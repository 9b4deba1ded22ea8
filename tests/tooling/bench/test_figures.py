"""Figures: verdict and ratio, and how a table shows them."""

import pytest
from rich.console import Console

from bench.figures import Figure, Target
from bench.tables import number, table


def figure(ours: tuple[float, ...], peer: tuple[float, ...] = (), target: Target | None = None) -> Figure:
    return Figure(topic="t", group="12→2", name="edit to Role right", unit="ms", ours=ours, peer=peer, target=target)


@pytest.mark.parametrize(
    ("ours", "target", "verdict"),
    [
        ((10.0, 20.0, 90.0), Target(limit=20), True),
        ((10.0, 21.0, 90.0), Target(limit=20), False),
        ((10.0, 40.0, 90.0), Target(limit=40, floor=True), True),
        ((10.0, 39.0, 90.0), Target(limit=40, floor=True), False),
        ((), Target(limit=20), None),
        ((10.0,), None, None),
    ],
)
def test_the_median_is_judged(ours: tuple[float, ...], target: Target | None, verdict: bool | None) -> None:
    assert figure(ours, target=target).verdict is verdict


@pytest.mark.parametrize(
    ("ours", "peer", "ratio"),
    [((10.0,), (40.0,), 0.25), ((0.0,), (2.0,), 0.0), ((1.0,), (0.0,), None), ((1.0,), (), None)],
)
def test_a_ratio_needs_both(ours: tuple[float, ...], peer: tuple[float, ...], ratio: float | None) -> None:
    assert figure(ours, peer).ratio == ratio


def shown(*figures: Figure) -> list[str]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table(figures))
    lines = capture.get().strip().splitlines()
    return [" ".join(line.split()) for line in lines]


def test_a_table_is_markdown_with_the_peer_beside_us() -> None:
    heading, rule, row = shown(figure((10.0, 11.0, 12.0), (40.0,), Target(limit=20)))
    assert heading == "| what | measured | peer | ours | ratio | target | verdict |"
    assert set(rule) == set("|-")
    assert row == "| 12→2 | edit to Role right, ms | 40 | 11 (10 to 12) | 0.28 | ≤ 20 | met |"


def test_without_a_peer_it_has_no_column() -> None:
    heading, _, row = shown(figure((10.0,), target=Target(limit=40, floor=True)))
    assert heading == "| what | measured | ours | target | verdict |"
    assert row == "| 12→2 | edit to Role right, ms | 10 | ≥ 40 | MISSED |"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (3.0, "3"), (0.123, "0.12"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
