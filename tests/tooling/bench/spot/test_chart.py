"""The picture shows every side, and the machines behind."""

from xml.etree import ElementTree as ET

from bench.spot import chart
from bench.spot.costs import Costs
from bench.spot.trace import Instance, Trace
from bench.spot.training import Point

SVG = "{http://www.w3.org/2000/svg}"
TRACE = Trace(
    source="test",
    size=2,
    horizon=7200,
    instances=(Instance(name="0", up=0), Instance(name="1", up=0, gone=3600)),
)


def test_each_side_has_a_line_in_both_plots_and_a_name() -> None:
    points = (Point(at=0, world=0, useful=0), Point(at=60, world=2, useful=0), Point(at=7200, world=2, useful=28_560))
    drawn = chart.draw(TRACE, {"static job": points, "elastic & ours": points}, costs=Costs())
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    strokes = [line.get("stroke") for line in root.iter(f"{SVG}polyline")]
    assert all(strokes.count(colour) == 2 for colour in chart.COLOURS[:2])
    words = {text.text for text in root.iter(f"{SVG}text")}
    assert {"static job", "elastic & ours", "hours"} <= words
    [machines] = root.iter(f"{SVG}polygon")
    assert machines.get("fill") == chart.MACHINES


def test_the_same_replay_gives_the_same_file() -> None:
    points = (Point(at=0, world=0, useful=0), Point(at=7200, world=0, useful=0))
    drawn = [chart.draw(TRACE, {"a": points}, costs=Costs()) for _ in range(2)]
    assert drawn[0] == drawn[1]
