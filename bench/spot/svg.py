"""The parts of SVG that a chart needs: lines, areas and text in a plot with two axes (https://www.w3.org/TR/SVG2/)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

FONT = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A rectangle of the picture in pixels, and the values at its right and upper edges. Both axes start at 0."""

    left: float
    top: float
    width: float
    height: float
    most_x: float
    most_y: float

    def at(self, x: float, y: float) -> str:
        """Return the position of a value as `X,Y` in pixels."""
        across = self.left + self.width * x / self.most_x
        down = self.top + self.height * (1 - y / self.most_y)
        return f"{across:.1f},{down:.1f}"

    def line(self, points: Points, *, colour: str, dashed: bool = False) -> str:
        """Return a line through the points."""
        path = " ".join(self.at(x, y) for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>'

    def area(self, points: Points, *, colour: str) -> str:
        """Return the area below a line."""
        closed = [(points[0][0], 0.0), *points, (points[-1][0], 0.0)]
        return f'<polygon points="{" ".join(self.at(x, y) for x, y in closed)}" fill="{colour}"/>'

    def axes(self, *, x_label: str, y_label: str) -> list[str]:
        """Return both axes with a few round numbers and labels."""
        made = [self.line([(0, self.most_y), (0, 0), (self.most_x, 0)], colour="#333")]
        for value in ticks(self.most_x):
            x, y = self._pixels(value, 0)
            made.append(text(x, y + 16, f"{value:,.10g}", anchor="middle"))
        for value in ticks(self.most_y):
            x, y = self._pixels(0, value)
            made.append(text(x - 6, y + 4, f"{value:,.10g}", anchor="end"))
        made.append(text(self.left + self.width, self.top + self.height + 32, x_label, anchor="end"))
        made.append(text(self.left, self.top - 8, y_label, anchor="start"))
        return made

    def _pixels(self, x: float, y: float) -> tuple[float, float]:
        across, down = self.at(x, y).split(",")
        return float(across), float(down)


def ticks(most: float, *, about: int = 6) -> list[float]:
    """Return about `about` round numbers from 0 to `most`, at 1, 2 or 5 times a power of ten."""
    raw = most / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [step * count for count in range(math.floor(most / step + 1e-9) + 1)]


def stairs(points: Points, *, until: float) -> list[tuple[float, float]]:
    """Return a stepped line: each point holds until the next, the last until `until`."""
    line: list[tuple[float, float]] = []
    for x, y in points:
        line += [(x, line[-1][1])] if line else []
        line.append((x, y))
    return [*line, (until, line[-1][1])] if line else []


def text(x: float, y: float, words: str, *, anchor: str) -> str:
    """Return text at a position in pixels; `anchor` is start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT}>{escape(words)}</text>'


def picture(parts: Sequence[str], *, width: int, height: int) -> str:
    """Return the whole file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *parts, "</svg>", ""])
