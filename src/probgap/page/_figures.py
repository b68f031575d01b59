"""The figures of the page, each drawn from the part of the account it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from probgap._core.output import comparable_height, fixed
from probgap.page._charts import Chart, Point, brief, ticks
from probgap.page._checks import chance_of
from probgap.page._words import percent, whole_number

if TYPE_CHECKING:
    from probgap.diagnostics import Account

_LINE = 0.62  # how high the line of an interval lies
# Where an axis of shares may end; a quarter of each is a whole number of percent.
_TOPS = (0.04, 0.12, 0.2, 0.4, 0.6, 0.8, 1.0)
_ROOM = 34  # pixels above the bars, for text


def draw_count(account: Account) -> str:
    """Draw how many positives are hidden: the range, and the best estimate."""
    value, ends = account.found.hidden, account.found.hidden_interval
    most = max(value, *ends, 1.0)
    chart = Chart((0.0, max(ticks(1.12 * most)[-1], 1.08 * most)), (0.0, 1.0), 92)
    chart.x_axis((tick, brief(tick)) for tick in ticks(chart.x[1]))
    _draw_interval(chart, value, ends, _count)
    low, high = map(whole_number, ends)
    words = f"Hidden positives: {low} to {high}, best estimate {whole_number(value)}."
    return chart.svg(words)


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
    words = f"{percent(held_out.recall)} of held-out labelled positives found again."
    return chart.svg(words)


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
        name, corner = f"{whole_number(sum(counts))} {kind} rows", (1.0, chart.y[1])
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
            words = f"\N{UPWARDS ARROW} {whole_number(count)}"
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
    return whole_number(value) if value < 1e6 else brief(float(f"{value:.3g}"))


def _draw_interval(
    chart: Chart, value: float, ends: Point, write: Callable[[float], str]
) -> None:
    low, high = ends
    chart.line((low, _LINE), (high, _LINE), "span")
    for end, side, anchor in ((low, -10, "end"), (high, 10, "start")):
        chart.text((end, _LINE), write(end), "end", shift=(side, 5), anchor=anchor)
    chart.dot((value, _LINE), "own", 7)
    chart.text((value, _LINE), write(value), "value", shift=(0, -16))


def _draw_share(chart: Chart, x: float, value: float, ends: Point) -> None:
    chart.line((x, ends[0]), (x, ends[1]), "whisker")
    chart.dot((x, value), "point", 4)
