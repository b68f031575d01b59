"""The figures of the page as SVG, each drawn from the part of the account it shows.

A figure that is scaled down to a phone scales its text with it. These are not scaled:
marks have positions in percent of the width, text has a size in pixels, and one drawing
serves a wide screen, a phone and paper. Colours are the page's own, by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from probgap._core.output import comparable_height, fixed
from probgap.page._checks import chance_of
from probgap.page._text import percent, whole

if TYPE_CHECKING:
    from probgap.diagnostics import Account

Point = tuple[float, float]

_LINE = 0.62  # how high the line of an interval lies
# Where an axis of shares may end; a quarter of each is a whole number of percent.
_TOPS = (0.04, 0.12, 0.2, 0.4, 0.6, 0.8, 1.0)
_ROOM = 34  # pixels above the bars, for text


class Chart:
    """A plot area of some height in pixels, as wide as the element around it.

    ``x`` and ``y`` are the ranges of the axes; marks beyond them are drawn at the edge.
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
        across, upwards = (
            min(max((value - low) / (high - low), 0.0), 1.0)
            for value, (low, high) in zip(at, (self.x, self.y), strict=True)
        )
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


def draw_count(account: Account) -> str:
    """Draw how many positives are hidden: the range, and the best estimate."""
    value, ends = account.found.hidden, account.found.hidden_interval
    most = max(value, *ends, 1.0)
    chart = Chart((0.0, max(ticks(1.12 * most)[-1], 1.08 * most)), (0.0, 1.0), 92)
    chart.x_axis((tick, brief(tick)) for tick in ticks(chart.x[1]))
    last = "all" if account.found.is_open else None  # an upper end that says nothing
    _draw_interval(chart, value, ends, _count, last)
    return chart.svg(f"{account.found.headline}; best estimate {whole(value)}.")


def draw_recall(account: Account) -> str | None:
    """Draw the share of labelled positives that were found again."""
    held_out, chance = account.held_out, chance_of(account)
    if held_out is None:
        return None
    chart = Chart((0.0, 1.0), (0.0, 1.0), 92)
    chart.x_axis((tick, percent(tick)) for tick in _quarters(1.0))
    chart.line((chance, 0.0), (chance, 0.2), "chance")
    chart.text((chance, 0.2), f"by chance {percent(chance)}", shift=(0, -6))
    _draw_interval(chart, held_out.recall, held_out.recall_interval, percent)
    recall = percent(held_out.recall)
    return chart.svg(f"{recall} of held-out labelled positives found again.")


def draw_labelling(account: Account) -> str | None:
    """Draw how often rows are labelled, by how clear a positive each seems."""
    bins = () if account.labelling is None else account.labelling.bins
    if len(bins) < 2:
        return None
    top = _top(max(max(b.high, b.fit) for b in bins))
    chart = _chart_shares((-1.0, 1.0), top, 250, "share of rows labelled")
    chart.x_axis([(-1.0, fixed(-1.0, 0)), (0.0, "0"), (1.0, "+1")])
    for at, words, anchor in (
        (-1.0, "surely negative", "start"),
        (0.0, "even odds", "middle"),
        (1.0, "surely positive", "end"),
    ):
        chart.text((at, 0.0), words, "note", shift=(0, 38), anchor=anchor)
    for b in bins:
        _draw_share(chart, b.gap, b.frequency, (b.low, b.high))
    for left, right in pairwise(bins):
        chart.line((left.gap, left.fit), (right.gap, right.fit), "fit")
    first, last = percent(bins[0].frequency), percent(bins[-1].frequency)
    return chart.svg(
        f"Share of rows labelled, from {first} in the lowest group of rows to {last} in "
        "the highest."
    )


def draw_reliability(account: Account) -> str | None:
    """Draw observed against predicted shares of labels, on rows held out."""
    bins = () if account.held_out is None else account.held_out.bins
    if len(bins) < 2:
        return None
    top = _top(max(max(b.high, b.predicted) for b in bins))
    chart = _chart_shares((0.0, top), top, 280, "share labelled, as observed")
    chart.line((0.0, 0.0), (top, top), "even")
    chart.x_axis((tick, percent(tick)) for tick in _quarters(top))
    for at, words, shift in (
        (0.0, "share labelled, as predicted", 40),
        (top, "predicted = observed", -10),
    ):
        chart.text((top, at), words, "note", shift=(0, shift), anchor="end")
    for b in bins:
        _draw_share(chart, b.predicted, b.observed, (b.low, b.high))
    return chart.svg("Predicted against observed share of labelled rows.")


def draw_gaps(account: Account) -> str:
    """Draw histograms of the observed gap: unlabelled rows above, labelled ones below."""
    bound, histogram = account.boundary.value, account.histogram
    above = _chart_bars(histogram.edges, histogram.unlabelled, 210, bound)
    words = f"boundary {fixed(bound)}"
    shift, anchor = ((4, -8), "end") if bound > 0.0 else ((-4, -8), "start")
    above.text((bound, above.y[1]), words, "mark", shift=shift, anchor=anchor)
    below = _chart_bars(histogram.edges, histogram.labelled, 100, bound, " own-bar")
    below.x_axis((tick, fixed(tick, 1)) for tick in (-1.0, -0.5, 0.0, 0.5, 1.0))
    drawn = []
    for chart, counts, kind in (
        (above, histogram.unlabelled, "unlabelled"),
        (below, histogram.labelled, "labelled"),
    ):
        name, corner = f"{whole(sum(counts))} {kind} rows", (1.0, chart.y[1])
        chart.text(corner, name, "name", shift=(0, 12), anchor="end")
        drawn.append(chart.svg(f"Histogram of the observed gap of {name}."))
    return "".join(drawn)


def _chart_bars(
    edges: Sequence[float],
    counts: Sequence[int],
    height: int,
    bound: float,
    own: str = "",
) -> Chart:
    """Draw a histogram of gaps; bars that dwarf all others are cut, with their counts."""
    most = comparable_height(counts)
    chart = Chart(
        (edges[0], edges[-1]), (0.0, most * height / (height - _ROOM)), height
    )
    if bound < 0.0:
        chart.box((bound, 0.0), (0.0, chart.y[1]), "zone")
    tops = ticks(most, 2 if own else 4)
    chart.y_axis((tick, brief(tick)) for tick in tops if tick == round(tick))
    n_cut = 0
    for (left, right), count in zip(pairwise(edges), counts, strict=True):
        inset = 0.08 * (right - left)
        corner = (right - inset, min(count, most))
        chart.box((left + inset, 0.0), corner, f"bar{own}")
        if count > most:
            words = f"\N{UPWARDS ARROW} {whole(count)}"
            at, anchor = (right, "end") if left > 0.0 else (left, "start")
            shift = (0, -4 - 15 * n_cut)
            chart.text((at, most), words, "cut", shift=shift, anchor=anchor)
            n_cut += 1
    chart.line((0.0, 0.0), (0.0, chart.y[1]), "zero")
    chart.line((bound, 0.0), (bound, chart.y[1]), "bound")
    chart.x_axis()
    return chart


def _chart_shares(x: Point, top: float, height: int, name: str) -> Chart:
    """Return a chart whose vertical axis is a share, with the name above it."""
    chart = Chart(x, (0.0, top), height)
    chart.y_axis((tick, percent(tick)) for tick in _quarters(top))
    chart.text((x[0], top), name, "note", shift=(-40, -14), anchor="start")
    return chart


def _top(most: float) -> float:
    return next((top for top in _TOPS if most <= top), 1.0)


def _quarters(top: float) -> list[float]:
    return [top * quarter / 4 for quarter in range(5)]


def _count(value: float) -> str:
    """Format a count in full, unless it is too long for a phone."""
    return whole(value) if value < 1e6 else brief(float(f"{value:.3g}"))


def _draw_interval(
    chart: Chart,
    value: float,
    ends: Point,
    write: Callable[[float], str],
    last: str | None = None,
) -> None:
    low, high = ends
    chart.line((low, _LINE), (high, _LINE), "span")
    names = write(low), last or write(high)
    for end, name, side, anchor in zip(
        ends, names, (-10, 10), ("end", "start"), strict=True
    ):
        chart.text((end, _LINE), name, "end", shift=(side, 5), anchor=anchor)
    chart.dot((value, _LINE), "own", 7)
    chart.text((value, _LINE), write(value), "value", shift=(0, -16))


def _draw_share(chart: Chart, x: float, value: float, ends: Point) -> None:
    chart.line((x, ends[0]), (x, ends[1]), "whisker")
    chart.dot((x, value), "point", 4)
