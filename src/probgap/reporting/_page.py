"""The pages: of a report, from its tree alone, and of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from probgap._core.output import is_open
from probgap.reporting import _text
from probgap.reporting._figures import draw_figures
from probgap.reporting._rows import MOST_ROWS, AllRows, hash_source, page_data
from probgap.reporting._verdicts import all_checks, called_on_compared, overall, overlap

_PAPER = (
    "F. He, T. Liu, G. I. Webb, D. Tao. Instance-Dependent PU Learning by Bayesian "
    "Optimal Relabeling. arXiv:1808.02180v2, 2020."
)


def render_report(tree: dict[str, Any], rows: AllRows | None = None) -> str:
    """Return the page of a report; with ``rows`` its reader can search and sort them."""
    environment = _text.page_environment()
    markup = environment.filters["svg"]
    script = environment.loader.get_source(environment, "rows.js")[0] if rows else ""
    found, ranked, file = tree["found"], tree["ranked"], tree["table"]
    checks = all_checks(tree)
    verdict = overall(checks, tree)
    strong = any(item["level"] == "strong" for item in tree["warnings"])
    doubtful = strong or verdict["state"] == "against"
    text: str = environment.get_template("report.html").render(
        **{name: part for name, part in tree.items() if name != "table"},
        file=file,
        headline=_text.headline(found, doubtful=doubtful),
        no_upper_end=is_open(found["hidden_interval"][1], found["unlabelled"]),
        checks=checks,
        overall=verdict,
        overlap=overlap,
        called_on_compared=called_on_compared(tree),
        figures=draw_figures(tree),
        sample=_text.sample_to_check(found),
        value_columns=_text.value_columns(ranked),
        uses=Counter(column["use"] for column in file["columns"]),
        paper=_PAPER,
        data=markup(page_data(rows, tree)) if rows else "",
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
    """Return the page of an audit as one HTML file that needs nothing else.

    Parameters
    ----------
    found : mapping
        The part ``estimate`` of audit.json.
    notes : sequence of str, default=()
        What was understood of the answers.
    table, folder : str, default=""
        Name of the table, and the folder of its results, for the commands to go on with.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from probgap.reporting import render_audit
    >>> found = {"headline": "3 positives found", "valid": False, "n_asked": 9}
    >>> found |= {"n_yes": 3, "n_no": 5, "n_unknown": 1, "kind": "find"}
    >>> "3 positives found" in render_audit(found)
    True
    """
    environment = _text.page_environment()
    template = environment.get_template("audit.html")
    return str(template.render(found=found, notes=notes, table=table, folder=folder))
