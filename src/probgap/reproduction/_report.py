"""Write the report: a page in Markdown and in HTML, and its figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from probgap._core.output import NONE, PAPER, fixed, load, make_environment, whole_file
from probgap.reproduction._figures import draw_all, for_file, for_page
from probgap.reproduction._summary import OURS, summarise

# What Markdown or the HTML inside it would take for markup.
_MARKDOWN = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " "}
)
_BOX = (
    '<div class="{}" tabindex="0" role="group" '
    'aria-label="Scrolls sideways on a narrow screen">'
)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where the report was written.

    Attributes
    ----------
    html, markdown : Path
        The two pages. The first needs no other file.
    figures : tuple of Path
        The pictures that the second links to.
    """

    html: Path
    markdown: Path
    figures: tuple[Path, ...]


def build_report(
    rows: Sequence[Mapping[str, Any]], out: Path, *, command: str | None = None
) -> ReportFiles:
    """Write a report of a run beside the numbers that the paper prints.

    It depends on the rows alone, not on their order, and names what is missing where
    they are incomplete.

    Parameters
    ----------
    rows : sequence of mappings
        One for each job, as :func:`probgap.reproduction.read_rows` returns them.
    out : Path
        The folder to write to; it is created if it does not exist.
    command : str, default=None
        The command line of the run, for the end of the page.

    Returns
    -------
    ReportFiles
        ``report.html``, ``report.md`` and the pictures under ``figures``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from probgap.reproduction import build_report
    >>> row = {"table": "1", "data": "triangles", "labelling": "inverse(0.1, 0.5)"}
    >>> row |= {"rate": "inverse", "alpha": 0.1, "beta": 0.5, "seed": 0}
    >>> scores = {"SVM": 0.92, "clean": 0.98, "probgap": 0.96}
    >>> rows = [row | {"method": m, "accuracy": a} for m, a in scores.items()]
    >>> with TemporaryDirectory() as folder:
    ...     files = build_report(rows, Path(folder))
    ...     files.html.name, files.markdown.name
    ('report.html', 'report.md')
    """
    summary = summarise(rows, command=command)
    pictures = draw_all(summary)
    markdown = _render_markdown(summary, pictures)
    html = _render_html(markdown, pictures)
    folder = Path(out)
    drawn = {folder / "figures" / f"{n}.svg": svg for n, svg in pictures.items()}
    figures = [_write(path, for_file(svg)) for path, svg in drawn.items()]
    return ReportFiles(
        html=_write(folder / "report.html", html),
        markdown=_write(folder / "report.md", markdown),
        figures=tuple(figures),
    )


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(text)
    return path


def _render_markdown(summary: dict[str, Any], pictures: dict[str, str]) -> str:
    """Return the report as Markdown that links to its figures."""
    markup = load("markupsafe").Markup

    def escape(value: object) -> object:
        plain = isinstance(value, str) and not isinstance(value, markup)
        return markup(str(value).translate(_MARKDOWN)) if plain else value

    options = {"autoescape": True, "finalize": escape}
    environment = make_environment("probgap.reproduction", **options)
    environment.filters.update(score=_score, p_value=_p_value)
    known = {"pictures": pictures, "paper": PAPER, "dash": NONE}
    text = environment.get_template("report.md").render(summary, **known)
    # Templates leave empty lines behind.
    return re.sub(r"\n\s*\n", "\n\n", text).strip() + "\n"


def _render_html(markdown: str, pictures: dict[str, str]) -> str:
    """Return the Markdown as one HTML page that needs no other file."""
    parser = load("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown)
    contents = _mark_headings(tokens)
    _draw_in_place(tokens, pictures)
    _dress_tables(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    environment = make_environment("probgap.reproduction", autoescape=True)
    known = {"body": load("markupsafe").Markup(body), "contents": contents}
    return str(environment.get_template("page.html").render(known))


def _mark_headings(tokens: list[Any]) -> dict[str, str]:
    """Add an id to each heading; return the sections by id."""
    sections = {}
    for token, text in pairwise(tokens):
        if token.type == "heading_open":
            token.attrs["id"] = re.sub(r"\W+", "-", text.content.lower()).strip("-")
            if token.tag == "h2":
                sections[token.attrs["id"]] = text.content
    return sections


def _draw_in_place(tokens: list[Any], pictures: dict[str, str]) -> None:
    """Replace each paragraph that links to a picture by the picture."""
    for place, token in enumerate(tokens):
        if token.children and token.children[0].type == "image":
            image = token.children[0]
            svg = for_page(pictures[Path(image.attrs["src"]).stem], image.content)
            _replace(tokens[place - 1], f"<figure>{_BOX.format('plot')}{svg}</div>")
            token.children = []
            _replace(tokens[place + 1], "</figure>\n")


def _dress_tables(tokens: list[Any]) -> None:
    """Turn the paragraph before a table into its caption; mark heads and our column."""
    column, ours = 0, None
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            _replace(tokens[place - 3], f"{_BOX.format('box')}<table><caption><span>")
            _replace(tokens[place - 1], "</span></caption>\n")
            _replace(token, "")
            ours = None
        elif token.type == "table_close":
            _replace(token, "</table></div>\n")
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            text = tokens[place + 1].content
            head = token.type == "th_open"
            ours = column if head and text == OURS else ours
            aligned = bool(token.attrs)
            token.attrs = {}
            if head or column == 0:
                token.tag = tokens[place + 2].tag = "th"
                token.attrs["scope"] = "col" if head else "row"
            if column == ours:
                token.attrs["class"] = "mine"
            elif not aligned and column:
                token.attrs["class"] = "text long"
            column += 1


def _replace(token: Any, html: str) -> None:
    token.type, token.content = "html_block", html


def _score(cell: Mapping[str, Any], side: str = "") -> str:
    """Format an accuracy in percent with its standard deviation."""
    mean, sd = cell[f"{side}mean"], cell[f"{side}sd"]
    return fixed(mean) + ("" if sd is None else f" ± {fixed(sd)}")


def _p_value(value: float) -> str:
    """Format a p-value; a very small one as a bound."""
    return "<\u00a00.0001" if value < 0.0001 else fixed(value, 4)
