"""The pages: of a report, from its tree alone, and of an audit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from scipy.stats import binomtest

from probgap._core import output
from probgap._core.errors import load_library
from probgap.reporting._figures import draw_figures
from probgap.reporting._rows import MOST_ROWS, hash_source, page_data
from probgap.reporting._verdicts import all_checks, called_on_compared, overall, overlap

_MOST_VALUES = 6
_N_CHECKED = 50  # rows for a person to check
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)
_FILTERS: tuple[str, ...] = (
    "clip",
    "count",
    "duration",
    "fixed",
    "moment",
    "p_words",
    "percent",
)
_FILTERS += ("plural", "signed", "whole")
_PAPER = (
    "F. He, T. Liu, G. I. Webb, D. Tao. Instance-Dependent PU Learning by Bayesian "
    "Optimal Relabeling. arXiv:1808.02180v2, 2020."
)


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
        **{name: part for name, part in tree.items() if name != "table"},
        file=file,
        headline=words,
        no_upper_end=output.is_open(found["hidden_interval"][1], found["unlabelled"]),
        checks=checks,
        overall=verdict,
        overlap=overlap,
        called_on_compared=called_on_compared(tree),
        figures=draw_figures(tree),
        sample=_sample_to_check(found),
        value_columns=_value_columns(ranked),
        uses=Counter(column["use"] for column in file["columns"]),
        paper=_PAPER,
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
        for name in names[:_MOST_VALUES]
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
    environment.filters |= {name: getattr(output, name) for name in _FILTERS}
    environment.filters["svg"] = jinja2.filters.Markup
    return environment
