"""Write the report: two pages and their figures, each file whole or not at all."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from probgap._core.output import whole_file
from probgap._core.pages import NONE, PAPER, fixed, load, make_environment, signed
from probgap.reproduction._figures import Picture, draw_all
from probgap.reproduction._scores import CLEAN, NAIVE, Score, order_methods
from probgap.reproduction._summary import summarise

# What Markdown or the HTML inside it would take for markup.
_MARKDOWN = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "\\|", "*": "\\*", "`": "'"}
    | {"[": "\\[", "]": "\\]", "_": "\\_", "\n": " ", "\r": " "}
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
    """Write a report of a run beside what the paper prints.

    It is made from the rows alone, names what is missing where they are incomplete, and
    is the same whatever order they come in.

    Parameters
    ----------
    rows : sequence of mappings
        One for each job, as :func:`probgap.reproduction.read_rows` returns them.
    out : Path
        The folder to write to; it is created if it does not exist.
    command : str, default=None
        The command line of the run, for the foot of the page.

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
    content = _add_words(summary)
    html = _render_html(content, pictures)
    markdown = _render_markdown(content, pictures)
    folder = Path(out)
    figures = [
        _write(folder / "figures" / f"{name}.svg", picture.file)
        for name, picture in pictures.items()
    ]
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


def _render_html(summary: dict[str, Any], pictures: dict[str, Picture]) -> str:
    """Return the report as one HTML page that needs no other file."""
    markup = load("markupsafe").Markup
    drawn = {name: markup(picture.page) for name, picture in pictures.items()}
    environment = _environment(autoescape=True)
    page: str = environment.get_template("report.html").render(summary, drawn=drawn)
    return page


def _render_markdown(summary: dict[str, Any], pictures: dict[str, Picture]) -> str:
    """Return the report as Markdown that links to its figures."""
    markup = load("markupsafe").Markup

    def escape(value: object) -> object:
        plain = isinstance(value, str) and not isinstance(value, markup)
        return str(value).translate(_MARKDOWN) if plain else value

    template = _environment(finalize=escape).get_template("report.md")
    lines = [
        line.rstrip()
        for line in template.render(summary, pictures=pictures).splitlines()
    ]
    # Templates leave empty lines behind.
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return "\n".join(kept).strip() + "\n"


def _add_words(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the summary with the sentences that both pages show."""
    words = files("probgap.reproduction").joinpath("templates", "words.toml")
    sides = [block[side] for block in summary["blocks"] for side in ("run", "paper")]
    methods = {method for side in sides for method in side["methods"]}
    environment = _environment()
    paragraphs = {
        name: environment.get_template(f"{name}.txt").render(summary).split("\n")
        for name in ("headline", "double_shares", "difference_words")
    }
    return {
        **summary,
        **tomllib.loads(words.read_text(encoding="utf-8")),
        **{
            name: [line for line in lines if line] for name, lines in paragraphs.items()
        },
        "dash": NONE,
        "paper": PAPER,
        "share_methods": order_methods(methods - {NAIVE, CLEAN}),
    }


def _environment(**options: Any) -> Any:
    environment = make_environment("probgap.reproduction", **options)
    filters = {"score": _score, "p_value": _p_value, "verdict": _verdict, "gain": _gain}
    environment.filters.update(filters)
    return environment


def _score(value: Score) -> str:
    """Format an accuracy in percent with its standard deviation."""
    return fixed(value.mean) + ("" if value.sd is None else f" ± {fixed(value.sd)}")


def _p_value(value: float | None) -> str:
    """Format a p-value; a very small one as a bound."""
    small = value is not None and value < 0.0001
    return "<\u00a00.0001" if small else fixed(value, 4)


def _verdict(value: bool | None) -> str:
    """Format a yes or a no, with a sign that does not need colour."""
    return NONE if value is None else "✓ yes" if value else "✗ no"


def _gain(shares: dict[str, Any] | None, measure: str | None) -> str:
    """Format what a method gains, as a share or in points."""
    value = shares[measure] if shares and measure else None
    if measure == "share" or value is None:
        return fixed(value)
    return f"{signed(value)} pts"
