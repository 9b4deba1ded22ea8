"""The little of SVG that charts need."""

from xml.etree import ElementTree as ET

import pytest

from bench.spot import svg
from bench.spot.svg import Plot

PLOT = Plot(left=10, top=20, width=100, height=50, most_x=10, most_y=5)


def test_values_become_pixels_from_the_lower_left() -> None:
    assert PLOT.at(0, 0) == "10.0,70.0"
    assert PLOT.at(10, 5) == "110.0,20.0"
    assert PLOT.at(5, 1) == "60.0,60.0"


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (24, [0, 5, 10, 15, 20]),
        (8, [0, 2, 4, 6, 8]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (345_600, [0, 100_000, 2e5, 3e5]),
    ],
)
def test_ticks_are_round(most: float, expected: list[float]) -> None:
    assert svg.ticks(most) == pytest.approx(expected)


def test_large_numbers_are_written_out() -> None:
    plot = Plot(left=0, top=0, width=1, height=1, most_x=1, most_y=2_000_000)
    assert any(">2,000,000<" in part for part in plot.axes(x_label="", y_label=""))


def test_stairs_hold_each_value_until_the_next() -> None:
    assert svg.stairs([(0, 1), (4, 3)], until=9) == [(0, 1), (4, 1), (4, 3), (9, 3)]
    assert svg.stairs([], until=9) == []


def test_a_picture_is_well_formed_whatever_the_words() -> None:
    parts = [
        PLOT.area([(0, 1), (10, 2)], colour="#eee"),
        PLOT.line([(0, 0), (10, 5)], colour="#000", dashed=True),
        *PLOT.axes(x_label="a < b & c", y_label='"d"'),
    ]
    root = ET.fromstring(svg.picture(parts, width=120, height=90))  # noqa: S314 - our own
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b & c" in words
    assert "10" in words
