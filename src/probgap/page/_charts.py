"""Small figures as SVG whose places are percentages.

A picture that is scaled to a phone scales its letters with it. These are not scaled:
marks keep their place in percent of the width, letters their size in pixels, and one
drawing serves a wide screen, a phone and paper. Colours are the page's own, by class.
"""

from __future__ import annotations

import math
from html import escape

from probgap._core.pages import MINUS


class Chart:
    """A plane to put marks on; marks beyond its edge stay at its edge.

    Parameters
    ----------
    x, y : tuple of float
        The range of either axis; y points upwards.
    height : int
        Height in pixels. The width is that of the place on the page.
    """

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], height: int
    ) -> None:
        self.x, self.y, self.height = x, y, height
        self._marks: list[str] = []

    def line(
        self, start: tuple[float, float], end: tuple[float, float], kind: str
    ) -> None:
        """Draw a straight line."""
        x1, y1, x2, y2 = *self._place(*start), *self._place(*end)
        self._marks.append(
            f'<line class="{kind}" x1="{x1}%" y1="{y1}%" x2="{x2}%" y2="{y2}%"/>'
        )

    def box(self, x: tuple[float, float], y: tuple[float, float], kind: str) -> None:
        """Fill a rectangle."""
        (left, bottom), (right, top) = self._place(x[0], y[0]), self._place(x[1], y[1])
        size = f'width="{_short(right - left)}%" height="{_short(bottom - top)}%"'
        self._marks.append(f'<rect class="{kind}" x="{left}%" y="{top}%" {size}/>')

    def dot(self, at: tuple[float, float], kind: str, radius: float = 5.0) -> None:
        """Draw a disc; its radius is in pixels."""
        x, y = self._place(*at)
        self._marks.append(f'<circle class="{kind}" cx="{x}%" cy="{y}%" r="{radius}"/>')

    def text(
        self,
        at: tuple[float, float],
        words: str,
        kind: str = "tick",
        *,
        shift: tuple[float, float] = (0.0, 0.0),
        anchor: str = "middle",
    ) -> None:
        """Write words, moved by so many pixels from their place."""
        x, y = self._place(*at)
        self._marks.append(
            f'<text class="{kind}" x="{x}%" y="{y}%" dx="{shift[0]}" dy="{shift[1]}" '
            f'text-anchor="{anchor}">{escape(words)}</text>'
        )

    def x_axis(self, labels: list[tuple[float, str]]) -> None:
        """Draw a line at the foot, with words below it."""
        low = self.y[0]
        self.line((self.x[0], low), (self.x[1], low), "axis")
        for value, words in labels:
            self.text((value, low), words, shift=(0, 20))

    def y_axis(self, labels: list[tuple[float, str]]) -> None:
        """Draw faint lines across, with words left of them."""
        for value, words in labels:
            self.line((self.x[0], value), (self.x[1], value), "grid")
            self.text((self.x[0], value), words, shift=(-8, 4), anchor="end")

    def svg(self, label: str) -> str:
        """Return the figure, with words for those who do not see it."""
        head = (
            f'<svg class="chart" role="img" aria-label="{escape(label)}" '
            f'width="100%" height="{self.height}">'
        )
        return head + "".join(self._marks) + "</svg>"

    def share(self, x: float) -> float:
        """Return the place of a value between the left edge, 0, and the right, 1."""
        return _share(x, self.x)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        return _short(100 * _share(x, self.x)), _short(100 - 100 * _share(y, self.y))


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from one end to the other."""
    size = (high - low) / max(count, 1)
    if not (size > 0.0 and math.isfinite(size)):
        return [low]
    unit = 10.0 ** math.floor(math.log10(size))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * place for place in range(first, last + 1)]


def brief(value: float) -> str:
    """Write the number at a tick."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit > 1e3):
            return f"{value / unit:,.10g}{name}".replace("-", MINUS)
    text = f"{value:,.0f}" if abs(value) >= 10 else f"{value:.10g}"
    return text.replace("-", MINUS)


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def _short(value: float) -> float:
    return round(value, 2)
