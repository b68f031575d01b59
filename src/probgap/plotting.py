"""Figures of a fit, as SVG: for notebooks, pages and files.

A figure has no fixed width: marks have positions in percent of it, text has a size in
pixels, and one drawing serves a wide screen, a phone and paper. Colours are those of the
report; a dark screen gets dark ones.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import load_library, refuse
from probgap._core.output import fixed, harmless, whole
from probgap._core.runtime import spread_rows

if TYPE_CHECKING:
    from probgap.boundary import Boundary
    from probgap.relabel import Relabelling

__all__ = ["Figure", "draw_boundary", "draw_gaps", "draw_relabelling"]

Point = tuple[float, float]

_WIDTH = 640  # of a figure by itself, in pixels
_ABOVE_BARS = 34  # pixels, for text
_BETWEEN = 14  # pixels between two charts of a figure
# Codes of a Relabelling, and what becomes of them in training.
_OUTCOMES = {1: "positive", -1: "undecided", 0: "negative"}
_AS = {"positive": "as positive", "negative": "as negative", "undecided": "left out"}
# More points are a blot; those drawn are spread over all samples.
_MOST_DRAWN = 2000
_GAP_TICKS = [(tick, fixed(tick, 1)) for tick in (-1.0, -0.5, 0.0, 0.5, 1.0)]
_GAP = "P(labelled | x) \N{MINUS SIGN} P(unlabelled | x)"


@dataclass
class Chart:
    """A plot area of some height in pixels, as wide as the element around it.

    ``x`` and ``y`` are the ranges of the axes; marks beyond them are drawn at the edge.
    ``label`` says what it shows, for those who do not see it.
    """

    x: Point
    y: Point
    height: int
    label: str = ""
    _marks: list[str] = field(default_factory=list, init=False)

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
            f'text-anchor="{anchor}">{escape(str(harmless(words)))}</text>'
        )

    def legend(self, entries: Iterable[tuple[str, str]]) -> None:
        """Name kinds of marks, in a line above the plot area."""
        at, shift = (self.x[0], self.y[1]), 0.0
        for words, kind in entries:
            self.text(at, "\N{BLACK CIRCLE}", kind, shift=(shift, -12), anchor="start")
            place = (shift + 16, -12)
            self.text(at, words, "note", shift=place, anchor="start")
            shift += 40 + 7 * len(words)

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

    def svg(self, place: str = 'role="img" width="100%"') -> str:
        """Return the chart; ``place`` is where it stands, as attributes."""
        label = f'aria-label="{escape(str(harmless(self.label)))}"'
        head = f'<svg class="chart" {place} {label} height="{self.height}">'
        return head + "".join(self._marks) + "</svg>"

    def _place(self, at: Point) -> Point:
        across, upwards = (
            min(max((value - low) / (high - low), 0.0), 1.0)
            for value, (low, high) in zip(at, (self.x, self.y), strict=True)
        )
        return round(100 * across, 2), round(100 - 100 * upwards, 2)


@dataclass(frozen=True, eq=False, repr=False)
class Figure:
    """A figure, and the numbers that it shows. In a notebook it shows itself.

    Attributes
    ----------
    charts, margins : list of Chart, tuple of int
        What it is made of, and the pixels around it: top, right, bottom and left.
    data : dict of list
        What is drawn, by column.
    label : str
        What it shows, in words.

    Examples
    --------
    >>> from probgap.plotting import draw_gaps
    >>> figure = draw_gaps([-0.9, -0.8, 0.7], [0, 0, 1], boundary=-0.5)
    >>> figure.label
    'Observed gaps of 2 unlabelled and 1 labelled rows.'
    >>> figure.svg()[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """

    charts: Sequence[Chart]
    data: Mapping[str, Sequence[Any]]
    label: str
    margins: tuple[int, int, int, int] = (28, 24, 50, 48)

    def inline(self) -> str:
        """Return the charts for a page with our styles, each as wide as it may be.

        Returns
        -------
        str
            SVG elements.
        """
        return "".join(chart.svg() for chart in self.charts)

    def svg(self) -> str:
        """Return the figure by itself.

        Returns
        -------
        str
            The text of an SVG file.
        """
        top, right, bottom, left = self.margins
        width, at, drawn = _WIDTH - left - right, top, ""
        for chart in self.charts:
            drawn += chart.svg(f'x="{left}" y="{at}" width="{width}"')
            at += chart.height + _BETWEEN
        height = at - _BETWEEN + bottom
        size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} '
            f'aria-label="{escape(self.label)}"><style>{_style()}</style>'
            '<rect width="100%" height="100%" style="fill: var(--ground)"/>'
            f"{drawn}</svg>"
        )

    def frame(self) -> Any:
        """Return what is drawn as a table.

        Returns
        -------
        DataFrame
            A row for each bar, dot or place.
        """
        pandas = load_library("pandas", extra="report", purpose="tables of figures")
        return pandas.DataFrame(self.data)

    def __repr__(self) -> str:
        return f"<Figure: {self.label}>"

    def _repr_html_(self) -> str:
        # An image keeps the styles of the notebook out, and ours in.
        data = base64.b64encode(self.svg().encode("utf-8")).decode()
        source = f"data:image/svg+xml;base64,{data}"
        return f'<img alt="{escape(self.label)}" style="max-width:100%" src="{source}">'


def draw_gaps(
    observed_gap: ArrayLike,
    labelled: ArrayLike,
    *,
    boundary: Boundary | float | None = None,
    n_bins: int = 40,
) -> Figure:
    """Draw histograms of the observed gap: unlabelled rows above, labelled ones below.

    A row to the left of the boundary looks negative, one to the right of 0 is more likely
    labelled than not and so positive; between the two, shaded, the gap alone decides
    nothing. Bars of unlabelled rows to the right of the boundary are where hidden
    positives are. A bar that dwarfs all others is cut, with its count.

    Parameters
    ----------
    observed_gap : array-like of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x), each in [-1, 1]: ``observed_gap_`` of a classifier.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    boundary : Boundary or float, default=None
        The boundary l: ``boundary_`` of a classifier. ``None`` draws none.
    n_bins : int, default=40
        Number of bars from -1 to 1.

    Returns
    -------
    Figure
        With ``gap_low``, ``gap_high``, ``unlabelled`` and ``labelled`` for each bar.

    Examples
    --------
    >>> from probgap.plotting import draw_gaps
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 0, 1]
    >>> draw_gaps(gap, labelled, boundary=-0.5, n_bins=4).frame()
       gap_low  gap_high  unlabelled  labelled
    0     -1.0      -0.5           2         0
    1     -0.5       0.0           1         0
    2      0.0       0.5           0         0
    3      0.5       1.0           1         1
    """
    gap = check_gap(observed_gap)
    mask = check_labelled(labelled, gap.size)
    return draw_histogram(count_gaps(gap, mask, n_bins=n_bins), _value_of(boundary))


def count_gaps(
    gap: NDArray[Any], labelled: NDArray[Any], *, weight: Any = None, n_bins: int = 40
) -> dict[str, list[Any]]:
    """Return numbers of unlabelled and labelled rows by observed gap."""
    if n_bins < 1:
        refuse(f"n_bins must be at least 1. Got {n_bins!r}.")
    edges = np.linspace(-1.0, 1.0, n_bins + 1)
    weight = np.ones(gap.size) if weight is None else weight
    counts = {"edges": edges.tolist()}
    for name, rows in (("unlabelled", ~labelled), ("labelled", labelled)):
        clipped = np.clip(gap[rows], -1.0, 1.0)
        n, _ = np.histogram(clipped, edges, weights=weight[rows])
        counts[name] = n.round().astype(int).tolist()
    return counts


def draw_histogram(counts: Mapping[str, Sequence[Any]], bound: float | None) -> Figure:
    """Draw numbers of rows by observed gap, as ``count_gaps`` returns them."""
    edges, charts = counts["edges"], []
    for kind, height, bar in (
        ("unlabelled", 210, "bar"),
        ("labelled", 100, "bar own-bar"),
    ):
        chart = _chart_bars(edges, counts[kind], height, bound, bar)
        name = f"{whole(sum(counts[kind]))} {kind} rows"
        chart.label = f"Histogram of the observed gap of {name}."
        corner = (1.0, chart.y[1])
        chart.text(corner, name, "name", shift=(0, 12), anchor="end")
        charts.append(chart)
    above, below = charts
    if bound is not None:
        words, shift, anchor = f"boundary {fixed(bound)}", (-4, -8), "start"
        if bound > 0.0:
            shift, anchor = (4, -8), "end"
        above.text((bound, above.y[1]), words, "mark", shift=shift, anchor=anchor)
    below.x_axis(_GAP_TICKS)
    data = {"gap_low": edges[:-1], "gap_high": edges[1:]}
    data |= {kind: counts[kind] for kind in ("unlabelled", "labelled")}
    sums = [whole(sum(counts[kind])) for kind in ("unlabelled", "labelled")]
    label = "Observed gaps of {} unlabelled and {} labelled rows.".format(*sums)
    return Figure(charts, data, label)


def draw_boundary(
    observed_gap: ArrayLike, labelled: ArrayLike, *, boundary: Boundary | float
) -> Figure:
    """Draw what the boundary decides, and what any other boundary would.

    For each place where the boundary could lie: the share of the unlabelled rows that it
    would call negative, and the share of the labelled positives that lie on its negative
    side and so speak against it. A good boundary leaves the second curve near 0 while the
    first is well above. Where the first is steep, a small move changes many decisions;
    the shaded band shows how far the boundary moves over resamples.

    Parameters
    ----------
    observed_gap, labelled : object
        As in :func:`draw_gaps`; some must be labelled, and some not.
    boundary : Boundary or float
        The boundary l; a :class:`~probgap.boundary.Boundary` has its spread.

    Returns
    -------
    Figure
        With ``boundary``, ``unlabelled_negative`` and ``labelled_negative``.

    Examples
    --------
    >>> from probgap.plotting import draw_boundary
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 1, 1]
    >>> table = draw_boundary(gap, labelled, boundary=-0.5).frame()
    >>> table[table["boundary"].isin([-0.85, 0.65])].to_numpy().round(2).tolist()
    [[-0.85, 0.33, 0.0], [0.65, 1.0, 0.5]]
    """
    gap, value = check_gap(observed_gap), _value_of(boundary)
    mask = check_labelled(labelled, gap.size, both=True)
    places = np.round(np.linspace(-1.0, 1.0, 201), 2)
    label = f"Share of rows on the negative side of each boundary; here {fixed(value)}."
    chart = Chart((-1.0, 1.0), (0.0, 1.0), 260, label)
    chart.y_axis((tick, f"{tick:.0%}") for tick in (0.0, 0.25, 0.5, 0.75, 1.0))
    spread = getattr(boundary, "spread", 0.0)
    chart.box((value - spread, 0.0), (value + spread, 1.0), "zone")
    data = {"boundary": places.tolist()}
    for name, rows, kind, mark in (
        ("unlabelled", ~mask, "other", "undecided"),
        ("labelled", mask, "curve", "positive"),
    ):
        below = np.sort(gap[rows])
        shares = np.searchsorted(below, places, side="right") / below.size
        data[f"{name}_negative"] = shares.tolist()
        for left, right in pairwise(zip(places.tolist(), shares.tolist(), strict=True)):
            chart.line(left, right, kind)
        here = float(np.searchsorted(below, value, side="right") / below.size)
        chart.dot((value, here), mark, 5)
        shift = (10, 16 if here > 0.5 else -8)
        chart.text((value, here), f"{here:.0%}", "end", shift=shift, anchor="start")
    chart.line((value, 0.0), (value, 1.0), "bound")
    chart.legend([("unlabelled", "undecided"), ("labelled", "positive")])
    words = f"boundary {fixed(value)}"
    chart.text((1.0, 1.0), words, "mark", shift=(0, -12), anchor="end")
    _name_gaps(chart)
    return Figure([chart], data, chart.label)


def draw_relabelling(
    observed_gap: ArrayLike,
    labelled: ArrayLike,
    relabelling: Relabelling,
    *,
    sample_weight: ArrayLike | None = None,
    boundary: Boundary | float | None = None,
) -> Figure:
    """Draw what each row counts for in training, at its observed gap.

    Upwards by as much as it counts as a positive, downwards as a negative, on the line if
    it is left out. A row with shares of both labels, as by default, is drawn twice. Of
    more than 2,000 rows, as many are drawn, spread over all.

    Parameters
    ----------
    observed_gap, labelled : object
        As in :func:`draw_gaps`.
    relabelling : Relabelling
        What :func:`~probgap.relabel.relabel` decided: ``relabelling_`` of a classifier.
    sample_weight : array-like of shape (n_samples,), default=None
        What each counts for: ``sample_weight_``. ``None`` takes 1 for all.
    boundary : Boundary or float, default=None
        The boundary l, to be drawn where it is known.

    Returns
    -------
    Figure
        With the gap of each row, whether it is ``labelled``, what it was ``relabelled``
        as, and what it counts for ``as_positive`` and ``as_negative``.

    Examples
    --------
    >>> from probgap.plotting import draw_relabelling
    >>> from probgap.relabel import relabel
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 0, 1]
    >>> relabelling = relabel(gap, labelled, lower=-0.5)
    >>> draw_relabelling(gap, labelled, relabelling).data["relabelled"]
    ['negative', 'negative', 'undecided', 'positive', 'positive']
    """
    gap = check_gap(observed_gap)
    mask = check_labelled(labelled, gap.size)
    weight = np.ones(gap.size) if sample_weight is None else np.asarray(sample_weight)
    sizes = {"relabelling": relabelling.labels.size, "sample_weight": weight.size}
    for name, size in sizes.items():
        if size != gap.size:
            refuse(
                f"{name} must have one entry for each of {gap.size} samples. Got {size}."
            )
    decided, bound = relabelling.decided, _value_of(boundary)
    share = np.where(decided, relabelling.positive_share, 0.0)
    weight = np.where(decided, weight, 0.0)
    data: dict[str, list[Any]] = {
        "observed_gap": gap.tolist(),
        "labelled": mask.tolist(),
        "relabelled": [_OUTCOMES[code] for code in relabelling.labels.tolist()],
        "as_positive": (share * weight).tolist(),
        "as_negative": ((1.0 - share) * weight).tolist(),
    }
    most = max(1e-9, *data["as_positive"], *data["as_negative"])
    label = "What each row counts for in training, by its observed gap."
    chart = Chart((-1.0, 1.0), (-1.05 * most, 1.05 * most), 300, label)
    heights = dict.fromkeys(sign * t for t in ticks(most, 3) for sign in (1.0, -1.0))
    chart.y_axis((height, brief(abs(height))) for height in heights)
    _draw_zone(chart, bound)
    for row in spread_rows(gap.size, _MOST_DRAWN).tolist():
        up, down = data["as_positive"][row], data["as_negative"][row]
        for height, kind in ((up, "positive"), (-down, "negative")):
            if height:
                chart.dot((gap[row], height), kind, 2.5)
        if up == down == 0.0:
            chart.dot((gap[row], 0.0), "undecided", 2.5)
    chart.legend(
        (f"{words} ({whole(data['relabelled'].count(kind))})", kind)
        for kind, words in _AS.items()
    )
    _name_gaps(chart)
    return Figure([chart], data, chart.label)


def _chart_bars(
    edges: Sequence[float],
    counts: Sequence[int],
    height: int,
    bound: float | None,
    kind: str,
) -> Chart:
    """Draw a histogram of gaps; bars that dwarf all others are cut, with their counts."""
    most = _comparable_height(counts)
    top = most * height / (height - _ABOVE_BARS)
    chart = Chart((edges[0], edges[-1]), (0.0, top), height)
    if bound is not None and bound < 0.0:
        chart.box((bound, 0.0), (0.0, top), "zone")
    tops = ticks(most, 2 if height < 150 else 4)
    chart.y_axis((tick, brief(tick)) for tick in tops if tick == round(tick))
    n_cut = 0
    for (left, right), count in zip(pairwise(edges), counts, strict=True):
        inset = 0.08 * (right - left)
        chart.box((left + inset, 0.0), (right - inset, min(count, most)), kind)
        if count > most:
            words = f"\N{UPWARDS ARROW} {whole(count)}"
            at, anchor = (right, "end") if left > 0.0 else (left, "start")
            shift = (0, -4 - 15 * n_cut)
            chart.text((at, most), words, "cut", shift=shift, anchor=anchor)
            n_cut += 1
    _draw_zone(chart, bound, shaded=False)
    chart.x_axis()
    return chart


def _comparable_height(heights: Sequence[float]) -> float:
    """Return the height of the axis, ignoring one or two bars that dwarf all others."""
    ordered = sorted(heights, reverse=True)
    for taller, shorter in pairwise(ordered[:3]):
        if taller > 3.0 * shorter > 0.0:
            return 1.15 * shorter
    return max(1.0, *ordered)


def _name_gaps(chart: Chart) -> None:
    chart.x_axis(_GAP_TICKS)
    middle = (0.0, chart.y[0])
    chart.text(middle, f"observed gap, {_GAP}", "note", shift=(0, 40))


def _draw_zone(chart: Chart, bound: float | None, *, shaded: bool = True) -> None:
    """Draw 0, the boundary and what lies between them."""
    low, high = chart.y
    if bound is not None and bound < 0.0 and shaded:
        chart.box((bound, low), (0.0, high), "zone")
    chart.line((0.0, low), (0.0, high), "zero")
    if bound is not None:
        chart.line((bound, low), (bound, high), "bound")


def _value_of(boundary: Boundary | float | None) -> Any:
    return getattr(boundary, "value", boundary)


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


@cache
def _style() -> str:
    """Return the colours and the styles of charts, for a figure by itself."""
    style = files("probgap._core").joinpath("style.css").read_text(encoding="utf-8")
    fonts = "svg { font-family: system-ui, sans-serif; } .chart { overflow: visible; }"
    return style.partition("/*")[0] + fonts
