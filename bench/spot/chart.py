"""The picture of a replay: world size over time above, useful steps below, a colour per side."""

from collections.abc import Mapping

from bench.spot import svg
from bench.spot.costs import Costs
from bench.spot.svg import Plot
from bench.spot.trace import Trace
from bench.spot.training import Point

WIDTH, HEIGHT = 960, 620
MACHINES = "#e8e8e8"
# Distinct for colour-blind readers too (Okabe and Ito).
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7")
HOUR = 3600.0


def draw(trace: Trace, sides: Mapping[str, tuple[Point, ...]], *, costs: Costs) -> str:
    """Return an SVG file; `sides` by title, in the order of their colours."""
    hours = trace.horizon / HOUR
    machines = svg.stairs([(at / HOUR, count) for at, count in trace.counts()], until=hours)
    worlds = Plot(left=70, top=60, width=WIDTH - 100, height=210, most_x=hours, most_y=trace.size)
    steps = Plot(left=70, top=340, width=WIDTH - 100, height=220, most_x=hours, most_y=trace.horizon / costs.step)
    parts = [worlds.area(machines, colour=MACHINES)]
    for colour, points in zip(COLOURS, sides.values(), strict=False):
        world = [(point.at / HOUR, float(point.world)) for point in points]
        parts.append(worlds.line(svg.stairs(world, until=hours), colour=colour))
        parts.append(steps.line([(point.at / HOUR, point.useful) for point in points], colour=colour))
    parts.append(steps.line([(0, 0), (hours, steps.most_y)], colour="#999", dashed=True))
    parts += worlds.axes(x_label="", y_label="training ranks (grey: machines)")
    parts += steps.axes(x_label="hours", y_label="useful steps (dashed: never interrupted)")
    return svg.picture([*parts, *_legend(list(sides))], width=WIDTH, height=HEIGHT)


def _legend(titles: list[str]) -> list[str]:
    parts = []
    for number, (colour, title) in enumerate(zip(COLOURS, titles, strict=False)):
        x = 70.0 + 290 * number
        parts.append(f'<rect x="{x:.1f}" y="14" width="14" height="14" fill="{colour}"/>')
        parts.append(svg.text(x + 20, 25, title, anchor="start"))
    return parts
