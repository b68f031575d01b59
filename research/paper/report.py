"""Write the report: a page in Markdown with its figures, and the same as one HTML file."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from probgap._core.output import NONE, duration, fixed, joined, plural, signed, whole
from research.paper.figures import draw_figures
from research.paper.summary import summarise

# What Markdown or the HTML inside it would take for markup.
_MARKDOWN = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " "}
)
_HTML = """<!DOCTYPE html>
<html lang="en-GB">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>probgap: the paper, reproduced</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 70rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
th, td {{ padding: .2rem .6rem; border-bottom: 1px solid #8888; text-align: left; }}
img {{ max-width: 100%; background: white; }}
</style>
{}
</html>
"""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where the report was written; ``html`` needs no other file."""

    html: Path
    markdown: Path
    figures: tuple[Path, ...]


def build_report(rows: Sequence[Mapping[str, Any]], out: Path) -> ReportFiles:
    """Write a report of a run beside the numbers that the paper prints.

    It depends on the rows alone, not on their order, and names what is missing where
    they are incomplete.
    """
    summary = summarise(rows)
    out.mkdir(parents=True, exist_ok=True)
    figures = draw_figures(summary, out / "figures")
    markdown, html = out / "report.md", out / "report.html"
    markdown.write_text(_render(summary, figures), encoding="utf-8")
    body = MarkdownIt("commonmark").enable("table").render(markdown.read_text("utf-8"))
    for name, path in figures.items():
        drawn = b64encode(path.read_bytes()).decode()
        body = body.replace(f"figures/{name}.svg", f"data:image/svg+xml;base64,{drawn}")
    html.write_text(_HTML.format(body), encoding="utf-8")
    return ReportFiles(html, markdown, tuple(figures.values()))


def _render(summary: dict[str, Any], figures: Mapping[str, Path]) -> str:
    """Return the report as Markdown that links to its figures."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_escape,
    )
    for write in (fixed, signed, whole, plural, joined, duration):
        environment.filters[write.__name__] = write
    environment.filters.update(score=_score, p_value=_p_value, of=_of)
    template = environment.get_template("template.md")
    text = template.render(summary, pictures=figures, dash=NONE)
    # Templates leave empty lines behind.
    return re.sub(r"\n\s*\n", "\n\n", text).strip() + "\n"


def _escape(value: object) -> object:
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return Markup(str(value).translate(_MARKDOWN)) if plain else value


def _score(cell: Mapping[str, Any], side: str = "") -> str:
    """Format an accuracy in percent with its standard deviation."""
    mean, sd = cell[f"{side}mean"], cell[f"{side}sd"]
    return fixed(mean) + ("" if sd is None else f" ± {fixed(sd)}")


def _of(counted: tuple[int, int]) -> str:
    """Format how many of how many."""
    return f"{counted[0]} of {counted[1]}"


def _p_value(value: float) -> str:
    """Format a p-value; a very small one as a bound."""
    return "<\u00a00.0001" if value < 0.0001 else fixed(value, 4)
