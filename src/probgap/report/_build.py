"""Write the report's files, each whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probgap._core.output import whole_file
from probgap.report._figures import draw_all
from probgap.report._render import render_html, render_markdown
from probgap.report._summary import summarise


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

    It is made from the rows alone, says what is missing where they are not all there,
    and is the same whatever order they come in.

    Parameters
    ----------
    rows : sequence of mappings
        One for each job, as :func:`probgap.results.read_rows` gives them.
    out : Path
        The folder to write to; it is made if it is not there.
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
    >>> from probgap.report import build_report
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
    folder = Path(out)
    html = render_html(summary, pictures)
    markdown = render_markdown(summary, pictures)
    figures = [
        _write(folder / "figures" / f"{picture.name}.svg", picture.file)
        for picture in pictures.values()
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
