"""Small figures as SVG, with positions in percent.

A figure that is scaled down to a phone scales its text with it. These are not scaled:
marks have positions in percent of the width, text has a size in pixels, and one drawing
serves a wide screen, a phone and paper. Colours are the page's own, by class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

Point = tuple[float, float]


class Chart:
    """A plot area; marks beyond its limits are drawn at its edge.

    Parameters
    ----------
    x, y : tuple of float
        The range of either axis; y points upwards.
    height : int
        Height in pixels. The width is that of the element around it.
    """

    def __init__(self, x: Point, y: Point, height: int) -> None:
        self.x, self.y, self.height = x, y, height
        self._marks: list[str] = []

    def line(self, start: Point, end: Point, kind: str) -> None:
        """Draw a straight line."""
        x1, y1, x2, y2 = *self._place(start), *self._place(end)
        self._marks.append(
            f'<line class="{kind}" x1="{x1}%" y1="{y1}%" x2="{x2}%" y2="{y2}%"/>'
        )

    def box(self, corner: Point, opposite: Point, kind: str) -> None:
        """Fill a rectangle, from its lower left to its upper right corner."""
        (left, bottom), (right, top) = self._place(corner), self._place(opposite)
        size = f'width="{right - left:.2f}%" height="{bottom - top:.2f}%"'
        self._marks.append(f'<rect class="{kind}" x="{left}%" y="{top}%" {size}/>')

    def dot(self, at: Point, kind: str, radius: float) -> None:
        """Draw a disc; its radius is in pixels."""
        x, y = self._place(at)
        self._marks.append(f'<circle class="{kind}" cx="{x}%" cy="{y}%" r="{radius}"/>')

    def text(
        self,
        at: Point,
        words: str,
        kind: str = "tick",
        *,
        shift: Point = (0, 0),
        anchor: str = "middle",
    ) -> None:
        """Write text, shifted from its position by some pixels."""
        x, y = self._place(at)
        self._marks.append(
            f'<text class="{kind}" x="{x}%" y="{y}%" dx="{shift[0]}" dy="{shift[1]}" '
            f'text-anchor="{anchor}">{escape(words)}</text>'
        )

    def x_axis(self, labels: Iterable[tuple[float, str]] = ()) -> None:
        """Draw the horizontal axis, with labels below it."""
        low = self.y[0]
        self.line((self.x[0], low), (self.x[1], low), "axis")
        for value, words in labels:
            self.text((value, low), words, shift=(0, 20))

    def y_axis(self, labels: Iterable[tuple[float, str]]) -> None:
        """Draw grid lines, with labels left of them."""
        for value, words in labels:
            self.line((self.x[0], value), (self.x[1], value), "grid")
            self.text((self.x[0], value), words, shift=(-8, 4), anchor="end")

    def svg(self, label: str) -> str:
        """Return the figure, with a label for screen readers."""
        head = (
            f'<svg class="chart" role="img" aria-label="{escape(label)}" '
            f'width="100%" height="{self.height}">'
        )
        return head + "".join(self._marks) + "</svg>"

    def _place(self, at: Point) -> Point:
        shares = (
            min(max((value - low) / (high - low), 0.0), 1.0)
            for value, (low, high) in zip(at, (self.x, self.y), strict=True)
        )
        across, upwards = shares
        return round(100 * across, 2), round(100 - 100 * upwards, 2)


def ticks(high: float, count: int = 5) -> list[float]:
    """Return round numbers from 0 to at most ``high``."""
    size = high / count
    unit = 10.0 ** math.floor(math.log10(size))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size * (1 - 1e-9))
    return [step * place for place in range(math.floor(high / step + 1e-9) + 1)]


def brief(value: float) -> str:
    """Format the number at a tick, large ones with k or M."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * unit or value >= unit > 1e3:
            return f"{value / unit:,.10g}{name}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.10g}"
