"""The figures of the page, each drawn from the part of the account it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from probgap._core.pages import fixed
from probgap.page._charts import Chart, brief, ticks
from probgap.page._checks import chance_of
from probgap.page._words import percent, whole_number

if TYPE_CHECKING:
    from probgap.diagnostics import Account

_LINE = 0.62  # how high the line of a strip lies


@dataclass(frozen=True, slots=True)
class Strip:
    """A value on a line, with its interval."""

    value: float
    ends: tuple[float, float]
    axis: tuple[float, float]
    labels: list[tuple[float, str]]
    write: Callable[[float], str]
    beside: tuple[float, str] | None = None

    def svg(self, label: str) -> str:
        """Draw it."""
        chart = Chart(self.axis, (0.0, 1.0), 92)
        chart.x_axis(self.labels)
        if self.beside:
            at, words = self.beside
            chart.line((at, 0.0), (at, 0.2), "chance")
            chart.text((at, 0.2), words, shift=(0, -6))
        low, high = self.ends
        chart.line((low, _LINE), (high, _LINE), "span")
        for end, side, anchor in ((low, -10, "end"), (high, 10, "start")):
            words = self.write(end)
            chart.text((end, _LINE), words, "end", shift=(side, 5), anchor=anchor)
        chart.dot((self.value, _LINE), "own", 7.0)
        chart.text((self.value, _LINE), self.write(self.value), "value", shift=(0, -16))
        return chart.svg(label)


def draw_count(account: Account) -> str:
    """Draw how many positives are hidden: the range, and the best estimate."""
    value, ends = account.found.hidden, account.found.hidden_interval
    most = max(value, *ends, 1.0)
    top = ticks(0.0, 1.12 * most)[-1]
    axis = (0.0, max(top, 1.08 * most))
    labels = [(tick, brief(tick)) for tick in ticks(0.0, axis[1])]
    words = f"Hidden positives: {whole_number(ends[0])} to {whole_number(ends[1])}, "
    words += f"best estimate {whole_number(value)}"
    return Strip(value, ends, axis, labels, _count).svg(f"{words}.")


def draw_recall(account: Account) -> str | None:
    """Draw the share of labelled positives that were found again."""
    held_out, chance = account.held_out, chance_of(account)
    if held_out is None:
        return None
    labels = [(tick, percent(tick)) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    words = f"{percent(held_out.recall)} of held-out labelled positives found again."
    beside = (chance, f"by chance {percent(chance)}")
    ends = held_out.recall_interval
    strip = Strip(held_out.recall, ends, (0.0, 1.0), labels, percent, beside)
    return strip.svg(words)


def draw_labelling(account: Account) -> str | None:
    """Draw how often rows are labelled, by how clear a positive each seems."""
    bins = () if account.labelling is None else account.labelling.bins
    if len(bins) < 2:
        return None
    chart = _shares_chart((-1.0, 1.0), max(max(b.high, b.fit) for b in bins), 250)
    _head(chart, "share of rows labelled")
    chart.x_axis([(-1.0, fixed(-1.0, 0)), (0.0, "0"), (1.0, "+1")])
    for at, words, anchor in (
        (-1.0, "surely negative", "start"),
        (0.0, "even odds", "middle"),
        (1.0, "surely positive", "end"),
    ):
        chart.text((at, chart.y[0]), words, "note", shift=(0, 38), anchor=anchor)
    for b in bins:
        _draw_share(chart, b.gap, b.frequency, (b.low, b.high))
    for left, right in pairwise(bins):
        chart.line((left.gap, left.fit), (right.gap, right.fit), "fit")
    ends = percent(bins[0].frequency), percent(bins[-1].frequency)
    words = f"Share of rows labelled, from {ends[0]} in the lowest group of rows to "
    return chart.svg(f"{words}{ends[1]} in the highest.")


def draw_reliability(account: Account) -> str | None:
    """Draw predicted against observed shares of labels, on rows held out."""
    bins = () if account.held_out is None else account.held_out.bins
    if len(bins) < 2:
        return None
    most = max(max(b.high, b.predicted) for b in bins)
    chart = _shares_chart((0.0, 1.0), most, 280)
    top = chart.y[1]
    chart.x = (0.0, top)
    chart.line((0.0, 0.0), (top, top), "even")
    chart.x_axis([(tick, percent(tick)) for tick in ticks(0.0, top, 4)])
    _head(chart, "share labelled, as observed")
    words = "share labelled, as predicted"
    chart.text((top, 0.0), words, "note", shift=(0, 40), anchor="end")
    corner = (top, top)
    chart.text(corner, "predicted = observed", "note", shift=(0, -10), anchor="end")
    for b in bins:
        _draw_share(chart, b.predicted, b.observed, (b.low, b.high))
    return chart.svg("Predicted against observed share of labelled rows.")


def draw_gaps(account: Account) -> tuple[str, str]:
    """Draw how rows spread over the observed gap: unlabelled above, labelled below."""
    bound, histogram = account.boundary.value, account.histogram
    above = _bars(histogram.edges, histogram.unlabelled, 210, "unlabelled", bound)
    below = _bars(histogram.edges, histogram.labelled, 100, "labelled", bound)
    return above, below


def _bars(
    edges: Sequence[float], counts: Sequence[int], height: int, name: str, bound: float
) -> str:
    first = name == "unlabelled"
    most = max(*counts, 1.0)
    room = height / (height - 28)  # for the name, above the highest bar
    chart = Chart((edges[0], edges[-1]), (0.0, room * most), height)
    if bound < 0.0:
        chart.box((bound, 0.0), chart.y, "zone")
    tops = [tick for tick in ticks(0.0, most, 4 if first else 2) if tick == round(tick)]
    chart.y_axis([(tick, brief(tick)) for tick in tops])
    for (left, right), count in zip(pairwise(edges), counts, strict=True):
        if count:
            kind = "bar" if first else "bar own-bar"
            inset = 0.08 * (right - left)
            chart.box((left + inset, right - inset), (0.0, count), kind)
    chart.line((0.0, 0.0), (0.0, chart.y[1]), "zero")
    chart.line((bound, 0.0), (bound, chart.y[1]), "bound")
    if first:
        left = chart.share(bound) > 0.5
        chart.text(
            (bound, chart.y[1]),
            f"boundary {fixed(bound)}",
            "mark",
            shift=(4 if left else -4, -8),
            anchor="end" if left else "start",
        )
    chart.x_axis([] if first else [(t, fixed(t, 1)) for t in ticks(*chart.x, 4)])
    words = f"{whole_number(sum(counts))} {name} rows"
    chart.text((edges[-1], chart.y[1]), words, "name", shift=(0, 12), anchor="end")
    return chart.svg(f"Histogram of the observed gap of {words}.")


def _shares_chart(x: tuple[float, float], most: float, height: int) -> Chart:
    """Make a plane whose upright axis is a share, no taller than needed."""
    most = max(most, 0.01)
    steps = ticks(0.0, min(most, 1.0), 4)
    size = steps[1] - steps[0] if len(steps) > 1 else min(most, 1.0)
    top = steps[-1] if most <= steps[-1] * (1 + 1e-9) else min(steps[-1] + size, 1.0)
    chart = Chart(x, (0.0, top), height)
    chart.y_axis([(t, percent(t)) for t in ticks(0.0, top, 4)])
    return chart


def _count(value: float) -> str:
    """Write a count in full, unless it is longer than a phone is wide."""
    return whole_number(value) if abs(value) < 1e6 else brief(float(f"{value:.3g}"))


def _head(chart: Chart, words: str) -> None:
    """Write above the upright axis what it counts."""
    at = (chart.x[0], chart.y[1])
    chart.text(at, words, "note", shift=(-40, -14), anchor="start")


def _draw_share(
    chart: Chart, x: float, value: float, ends: tuple[float, float]
) -> None:
    chart.line((x, ends[0]), (x, ends[1]), "whisker")
    chart.dot((x, value), "point", 4.0)
