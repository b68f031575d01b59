"""The page of a report with its figures, from its tree alone, and that of an audit."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from scipy.stats import binomtest

from probgap._core import output
from probgap._core.errors import load_library
from probgap._core.output import fixed, is_open, percent, whole
from probgap.plotting import Chart, Figure, Point, brief, draw_histogram, ticks
from probgap.reporting._rows import MOST_ROWS, hash_source, page_data
from probgap.reporting._verdicts import (
    all_checks,
    ask,
    chance_of,
    describe_looked,
    overall,
)

_IN_WORDS = ("table", "looked", "question")  # parts that the page has in other words
_N_CHECKED = 50  # rows for a person to check
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)
_FILTERS = "clip duration fixed joined moment p_words percent plural signed whole"
_GROUP, _BAR = 48, 0.62  # pixels of a group, and how deep its bar lies
_LINE = 0.62  # how high the line of an interval lies
# Where an axis of shares may end; a quarter of each is a whole number of percent.
_TOPS = (0.04, 0.12, 0.2, 0.4, 0.6, 0.8, 1.0)


def render_report(tree: dict[str, Any], rows: Any = None, cells: Any = None) -> str:
    """Return the page of a report; with ``cells`` its reader can search and sort rows."""
    environment = _page_environment()
    markup = environment.filters["svg"]
    script, data = "", ""
    if cells is not None:
        script = environment.loader.get_source(environment, "rows.js")[0]
        data = markup(page_data(rows, cells, tree))
    found, ranked, file = tree["found"], tree["ranked"], tree["table"]
    checks = all_checks(tree)
    verdict = overall(checks, tree)
    strong = any(item["level"] == "strong" for item in tree["warnings"])
    words: str = found["headline"]
    if (strong or verdict["state"] == "against") and not words.startswith("No"):
        words = f"Perhaps {words[0].lower()}{words[1:]}"
    text: str = environment.get_template("report.html").render(
        **{name: part for name, part in tree.items() if name not in _IN_WORDS},
        looked=describe_looked(tree.get("looked")),
        question=ask(tree),
        file=file,
        headline=words,
        no_upper_end=is_open(found["hidden_interval"][1], found["unlabelled"]),
        checks=checks,
        overall=verdict,
        figures=draw_figures(tree),
        sample=_sample_to_check(found),
        value_columns=_value_columns(ranked),
        uses=Counter(column["use"] for column in file["columns"]),
        data=data,
        script=markup(script),
        script_source=hash_source(script),
        most_rows=MOST_ROWS,
    )
    return text


def render_audit(
    found: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    table: str = "",
    folder: str = "",
) -> str:
    """Return the page of an audit: of the part ``estimate`` of audit.json.

    ``notes`` say what was understood of the answers; ``table`` and ``folder`` name the
    table and its results, for the commands to go on with.
    """
    environment = _page_environment()
    template = environment.get_template("audit.html")
    return str(template.render(found=found, notes=notes, table=table, folder=folder))


def _sample_to_check(found: dict[str, Any]) -> dict[str, Any]:
    """Return how many rows to check by hand, and what the answers would tell.

    One row in ``step`` is drawn, all of them where they are few. ``positive`` is how many
    of these the best estimate expects, at least one, and ``range`` the count if so.
    """
    n_rows = found["unlabelled"]
    step = max(1, n_rows // _N_CHECKED)
    n = n_rows if step == 1 else _N_CHECKED
    expected = round(n * found["hidden"] / max(1, n_rows))
    positive = min(max(expected, 1), n)
    words = ""
    if step > 1:
        share = binomtest(positive, n).proportion_ci(found["level"], method="wilson")
        words = output.count_range(share.low * n_rows, share.high * n_rows, n_rows)
    return {
        "n": n,
        "step": step,
        "positive": positive,
        "expected": positive == expected,
        "range": words,
    }


def _value_columns(rows: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return the columns to show beside ranked rows, and whether each is numeric."""
    names = list(dict.fromkeys(name for row in rows for name in row["values"]))
    cells = {
        name: [row["values"].get(name, "").strip() for row in rows] for name in names
    }
    return [
        (name, all(_NUMERAL.fullmatch(cell) for cell in cells[name] if cell))
        for name in names
    ]


def _page_environment() -> Any:
    """Return the templates and filters of our pages."""
    return _make_environment(load_library("jinja2", extra="report", purpose="a report"))


@cache
def _make_environment(jinja2: Any) -> Any:
    """Return the environment, made once: compiling templates takes longest."""
    # The latter has the styles that others share.
    places = ("probgap.reporting", "templates"), ("probgap._core", "")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(*place) for place in places]),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=output.harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in _FILTERS.split():
        environment.filters[name] = getattr(output, name)
    environment.filters["svg"] = jinja2.filters.Markup
    return environment


def draw_figures(tree: dict[str, Any]) -> dict[str, Figure | None]:
    """Return the figures of a report, by name; None where a check lacks its numbers."""
    bound = tree["boundary"]["value"]
    return {
        "count": _draw_count(tree["found"]),
        "recall": _draw_recall(tree),
        "looked": _draw_looked(tree.get("looked")),
        "labelling": _draw_labelling(tree["belief"]["labelling"]),
        "reliability": _draw_reliability(tree["decision"]["reliability"]),
        "gaps": draw_histogram(tree["decision"]["histogram"], bound),
    }


def _draw_count(found: dict[str, Any]) -> Figure:
    """Draw how many positives are hidden: the interval, and the best estimate."""
    value, ends = found["hidden"], found["hidden_interval"]
    most = max(value, *ends, 1.0)
    label = f"{found['headline']}; best estimate {whole(value)}."
    highest = max(ticks(1.12 * most)[-1], 1.08 * most)
    chart = Chart((0.0, highest), (0.0, 1.0), 92, label)
    chart.x_axis((tick, brief(tick)) for tick in ticks(chart.x[1]))
    # An upper end that says nothing.
    last = "all" if is_open(ends[1], found["unlabelled"]) else None
    return _draw_interval(chart, value, ends, _count, last)


def _draw_recall(tree: dict[str, Any]) -> Figure | None:
    """Draw the share of labelled positives that were found again."""
    held_out, chance = tree["belief"]["held_out"], chance_of(tree)
    if held_out is None:
        return None
    recall = held_out["recall"]
    label = f"{percent(recall)} of held-out labelled positives found again."
    chart = Chart((0.0, 1.0), (0.0, 1.0), 92, label)
    chart.x_axis((tick, percent(tick)) for tick in _quarters(1.0))
    chart.line((chance, 0.0), (chance, 0.2), "chance")
    chart.text((chance, 0.2), f"by chance {percent(chance)}", shift=(0, -6))
    return _draw_interval(chart, recall, held_out["recall_interval"], percent)


def _draw_looked(looked: dict[str, Any] | None) -> Figure | None:
    """Draw how often positives of each group were labelled, as bars with intervals."""
    charts, shown = [], []
    for column in describe_looked(looked):
        groups = column["groups"]
        label = (
            f"How often positives of each {column['name']} were labelled, relatively."
        )
        chart = Chart((0.0, 1.0), (0.0, len(groups)), _GROUP * len(groups), label)
        chart.x_axis((tick, percent(tick)) for tick in _quarters(1.0))
        for top, group in zip(range(len(groups), 0, -1), groups, strict=True):
            ends = [percent(group[end]) for end in ("rate", "rate_low", "rate_high")]
            words = f"{ends[0]} ({ends[1]} to {ends[2]})"
            words = ends[0] if ends[1] == ends[2] else words
            level = output.clip(group["level"], 24)
            chart.text((0.0, top), level, "end", shift=(0, 18), anchor="start")
            chart.text((1.0, top), words, shift=(0, 18), anchor="end")
            middle, high = top - _BAR, group["rate_high"]
            chart.box((0.0, middle - 0.12), (group["rate"], middle + 0.12), "bar")
            chart.line((group["rate_low"], middle), (high, middle), "fit")
            chart.dot((group["rate"], middle), "own", 4)
        charts.append(chart)
        shown += groups
    if not shown:
        return None
    data = {name: [group[name] for group in shown] for name in shown[0]}
    return Figure(charts, data, charts[0].label, margins=(20, 24, 40, 24))


def _draw_labelling(curve: dict[str, Any] | None) -> Figure | None:
    """Draw how often rows are labelled, by how clear a positive each seems."""
    bins = [] if curve is None else curve["bins"]
    if len(bins) < 2:
        return None
    top = _top(max(max(each["high"], each["fit"]) for each in bins))
    chart = _chart_shares((-1.0, 1.0), top, 250, "share of rows labelled")
    chart.x_axis([(-1.0, fixed(-1.0, 0)), (0.0, "0"), (1.0, "+1")])
    for at, words, anchor in (
        (-1.0, "surely negative", "start"),
        (0.0, "even odds", "middle"),
        (1.0, "surely positive", "end"),
    ):
        chart.text((at, 0.0), words, "note", shift=(0, 38), anchor=anchor)
    for left, right in pairwise(bins):
        chart.line((left["gap"], left["fit"]), (right["gap"], right["fit"]), "fit")
    first, last = (percent(bins[at]["frequency"]) for at in (0, -1))
    chart.label = (
        f"Share of rows labelled, from {first} in the lowest group of rows to {last} in "
        "the highest."
    )
    return _draw_shares(chart, bins, "gap", "frequency")


def _draw_reliability(bins: list[dict[str, Any]]) -> Figure | None:
    """Draw observed against predicted shares of labels, on rows held out."""
    if len(bins) < 2:
        return None
    top = _top(max(max(each["high"], each["predicted"]) for each in bins))
    chart = _chart_shares((0.0, top), top, 280, "share labelled, as observed")
    chart.line((0.0, 0.0), (top, top), "even")
    chart.x_axis((tick, percent(tick)) for tick in _quarters(top))
    for at, words, shift in (
        (0.0, "share labelled, as predicted", 40),
        (top, "predicted = observed", -10),
    ):
        chart.text((top, at), words, "note", shift=(0, shift), anchor="end")
    chart.label = "Predicted against observed share of labelled rows."
    return _draw_shares(chart, bins, "predicted", "observed")


def _chart_shares(x: Point, top: float, height: int, name: str) -> Chart:
    """Return a chart whose vertical axis is a share, with the name above it."""
    chart = Chart(x, (0.0, top), height)
    chart.y_axis((tick, percent(tick)) for tick in _quarters(top))
    chart.text((x[0], top), name, "note", shift=(-40, -14), anchor="start")
    return chart


def _draw_shares(
    chart: Chart, bins: list[dict[str, Any]], across: str, upwards: str
) -> Figure:
    """Draw a dot with its interval for each bin."""
    for each in bins:
        x, value = each[across], each[upwards]
        chart.line((x, each["low"]), (x, each["high"]), "whisker")
        chart.dot((x, value), "point", 4)
    data = {name: [each[name] for each in bins] for name in bins[0]}
    return Figure([chart], data, chart.label)


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
) -> Figure:
    """Draw an estimate and its interval."""
    low, high = ends
    chart.line((low, _LINE), (high, _LINE), "span")
    for end, name, side, anchor in (
        (low, write(low), -10, "end"),
        (high, last or write(high), 10, "start"),
    ):
        chart.text((end, _LINE), name, "end", shift=(side, 5), anchor=anchor)
    chart.dot((value, _LINE), "own", 7)
    chart.text((value, _LINE), write(value), "value", shift=(0, -16))
    data = {"estimate": [value], "low": [low], "high": [high]}
    return Figure([chart], data, chart.label, margins=(20, 64, 34, 64))
