"""The figures of the page, each drawn from the part of the account it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from probgap._core.pages import fixed
from probgap.page._charts import Chart, brief, ticks
from probgap.page._read import Part, interval, number, numbers, part, parts
from probgap.page._words import percent, whole_number

_LINE = 0.62  # how high the line of a strip lies


@dataclass(frozen=True, slots=True)
class Strip:
    """A value on a line, with its interval."""

    value: float
    ends: tuple[float, float] | None
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
        if self.ends:
            low, high = self.ends
            chart.line((low, _LINE), (high, _LINE), "span")
            for end, side, anchor in ((low, -10, "end"), (high, 10, "start")):
                words = self.write(end)
                chart.text((end, _LINE), words, "end", shift=(side, 5), anchor=anchor)
        chart.dot((self.value, _LINE), "own", 7.0)
        chart.text((self.value, _LINE), self.write(self.value), "value", shift=(0, -16))
        return chart.svg(label)


def draw_count(found: Part) -> str | None:
    """Draw how many positives are hidden: the range, and the best estimate."""
    value = number(found, "hidden")
    if value is None:
        return None
    ends = interval(found, "hidden_interval")
    if ends is None:
        return None
    most = max(value, *ends, 1.0)
    top = ticks(0.0, 1.12 * most)[-1]
    axis = (0.0, max(top, 1.08 * most))
    labels = [(tick, brief(tick)) for tick in ticks(0.0, axis[1])]
    words = f"Hidden positives: {whole_number(ends[0])} to {whole_number(ends[1])}, "
    words += f"best estimate {whole_number(value)}"
    return Strip(value, ends, axis, labels, _count).svg(f"{words}.")


def draw_recall(held_out: Part, chance: float | None) -> str | None:
    """Draw the share of labelled positives that were found again."""
    value = number(held_out, "recall")
    if value is None:
        return None
    ends = interval(held_out, "recall_interval")
    labels = [(tick, percent(tick)) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    words = f"{percent(value)} of held-out labelled positives found again."
    beside = None if chance is None else (chance, f"by chance {percent(chance)}")
    strip = Strip(value, ends, (0.0, 1.0), labels, percent, beside)
    return strip.svg(words)


def draw_labelling(labelling: Part) -> str | None:
    """Draw how often rows are labelled, by how clear a positive each seems."""
    bins = [b for b in parts(labelling, "bins") if number(b, "frequency") is not None]
    places = [number(b, "gap") for b in bins]
    if len(bins) < 2 or None in places:
        return None
    chart = _shares_chart((-1.0, 1.0), bins, 250)
    _head(chart, "share of rows labelled")
    chart.x_axis([(-1.0, fixed(-1.0, 0)), (0.0, "0"), (1.0, "+1")])
    for at, words, anchor in (
        (-1.0, "surely negative", "start"),
        (0.0, "even odds", "middle"),
        (1.0, "surely positive", "end"),
    ):
        chart.text((at, chart.y[0]), words, "note", shift=(0, 38), anchor=anchor)
    for b in bins:
        _draw_share(chart, number(b, "gap") or 0.0, b, "frequency")
    fit = [(number(b, "gap") or 0.0, number(b, "fit")) for b in bins]
    line = [(x, y) for x, y in fit if y is not None]
    for start, end in pairwise(line):
        chart.line(start, end, "fit")
    ends = percent(number(bins[0], "frequency")), percent(number(bins[-1], "frequency"))
    words = f"Share of rows labelled, from {ends[0]} in the lowest group of rows to "
    return chart.svg(f"{words}{ends[1]} in the highest.")


def draw_reliability(decision: Part) -> str | None:
    """Draw predicted against observed shares of labels, on rows held out."""
    bins = [
        b
        for b in parts(decision, "reliability")
        if number(b, "predicted") is not None and number(b, "observed") is not None
    ]
    if len(bins) < 2:
        return None
    most = max(number(b, "predicted") or 0.0 for b in bins)
    chart = _shares_chart((0.0, 1.0), bins, 280, most)
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
        _draw_share(chart, number(b, "predicted") or 0.0, b, "observed")
    return chart.svg("Predicted against observed share of labelled rows.")


def draw_gaps(decision: Part, boundary: Part) -> tuple[str, str] | None:
    """Draw how rows spread over the observed gap: unlabelled above, labelled below."""
    histogram = part(decision, "histogram")
    edges = numbers(histogram, "edges")
    drawn = []
    for name, height in (("unlabelled", 210), ("labelled", 100)):
        counts = numbers(histogram, name)
        if not counts or len(edges) != len(counts) + 1:
            return None
        first = name == "unlabelled"
        chart = _bars(edges, counts, height, name, number(boundary, "value"), first)
        rows = whole_number(sum(counts))
        drawn.append(chart.svg(f"Histogram of the observed gap of {rows} {name} rows."))
    return drawn[0], drawn[1]


def _bars(
    edges: list[float],
    counts: list[float],
    height: int,
    name: str,
    bound: float | None,
    first: bool,
) -> Chart:
    most = max(*counts, 1.0)
    room = height / (height - 28)  # for the name, above the highest bar
    chart = Chart((edges[0], edges[-1]), (0.0, room * most), height)
    if bound is not None and bound < 0.0:
        chart.box((bound, 0.0), chart.y, "zone")
    tops = [tick for tick in ticks(0.0, most, 4 if first else 2) if tick == round(tick)]
    chart.y_axis([(tick, brief(tick)) for tick in tops])
    for (left, right), count in zip(pairwise(edges), counts, strict=True):
        if count:
            kind = "bar" if first else "bar own-bar"
            inset = 0.08 * (right - left)
            chart.box((left + inset, right - inset), (0.0, count), kind)
    chart.line((0.0, 0.0), (0.0, chart.y[1]), "zero")
    if bound is not None:
        chart.line((bound, 0.0), (bound, chart.y[1]), "bound")
    if bound is not None and first:
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
    return chart


def _shares_chart(
    x: tuple[float, float], bins: Sequence[Part], height: int, least: float = 0.0
) -> Chart:
    """Make a plane whose upright axis is a share, no taller than needed."""
    names = ("high", "frequency", "observed", "fit")
    most = max([least, 0.01, *(number(b, name) or 0.0 for b in bins for name in names)])
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
    """Say above the upright axis what it counts."""
    at = (chart.x[0], chart.y[1])
    chart.text(at, words, "note", shift=(-40, -14), anchor="start")


def _draw_share(chart: Chart, x: float, group: Part, name: str) -> None:
    value = number(group, name) or 0.0
    low, high = number(group, "low"), number(group, "high")
    if low is not None and high is not None:
        chart.line((x, low), (x, high), "whisker")
    chart.dot((x, value), "point", 4.0)
