"""Pages from plain data: HTML and Markdown, by templates that escape what they print."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from probgap.report import _prose as prose
from probgap.report._figures import Picture
from probgap.report._optional import load
from probgap.report._rows import CLEAN, NAIVE, order_methods
from probgap.report._text import FILTERS, NONE

# What Markdown or the HTML inside it would take for markup.
_MARKDOWN = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "\\|", "*": "\\*", "`": "'"}
    | {"[": "\\[", "]": "\\]", "_": "\\_", "\n": " ", "\r": " "}
)


def render_html(summary: dict[str, Any], pictures: dict[str, Picture]) -> str:
    """Write the report as one HTML page that needs nothing else."""
    environment = make_environment(autoescape=True)
    markup = load("markupsafe").Markup
    drawn = {name: markup(p.page) for name, p in pictures.items()}
    return _render(environment, "report.html", summary, drawn=drawn)


def render_markdown(summary: dict[str, Any], pictures: dict[str, Picture]) -> str:
    """Write the report as Markdown that links to its figures."""
    environment = make_environment(autoescape=False, finalize=escape_markdown)
    text = _render(environment, "report.md", summary, pictures=pictures)
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [
        line for i, line in enumerate(lines) if line or (i and lines[i - 1])
    ]  # templates leave empty lines behind
    return "\n".join(kept).strip() + "\n"


def escape_markdown(value: object) -> object:
    """Escape what a template prints, unless it is text of our own."""
    markup = load("markupsafe").Markup
    if isinstance(value, markup) or not isinstance(value, str):
        return value
    return value.translate(_MARKDOWN)


def make_environment(**options: Any) -> Any:
    """Make an environment that knows our templates and how we write numbers."""
    jinja2 = load("jinja2")
    folder = files("probgap.report").joinpath("templates")
    loader = jinja2.FunctionLoader(
        lambda name: folder.joinpath(name).read_text(encoding="utf-8")
    )
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    environment.filters.update(FILTERS)
    return environment


def _render(environment: Any, name: str, summary: dict[str, Any], **more: Any) -> str:
    text: str = environment.get_template(name).render(
        **summary,
        **more,
        dash=NONE,
        share_methods=_share_methods(summary),
        paper=prose.PAPER,
        share_rule=prose.SHARE_RULE,
        tuning=prose.TUNING,
        mark_rule=prose.MARK_RULE,
        causes=prose.CAUSES,
        headline=prose.headline(summary),
        double_shares=prose.double_shares(summary["verdicts"]),
        difference_words=prose.differences(summary["differences"]),
        caution=prose.caution(summary["statistics"]),
    )
    return text


def _share_methods(summary: dict[str, Any]) -> list[str]:
    """List the methods that have a share, in print or in the run."""
    sides = [block[side] for block in summary["blocks"] for side in ("run", "paper")]
    names = {method for side in sides for method in side["methods"]}
    return order_methods(names - {NAIVE, CLEAN})
