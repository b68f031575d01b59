"""Write the report: its sentences, the two pages, and files whole or not at all."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from probgap._core.files import whole_file
from probgap._core.pages import (
    NONE,
    PAPER,
    fixed,
    listed,
    load,
    make_environment,
    plural,
    signed,
)
from probgap.reproduction._figures import Picture, draw_all
from probgap.reproduction._scores import CLEAN, NAIVE, OURS, Score, order_methods
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
    html = _render_html(summary, pictures)
    markdown = _render_markdown(summary, pictures)
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
    return _render("report.html", summary, {"drawn": drawn}, autoescape=True)


def _render_markdown(summary: dict[str, Any], pictures: dict[str, Picture]) -> str:
    """Return the report as Markdown that links to its figures."""
    markup = load("markupsafe").Markup

    def escape(value: object) -> object:
        plain = isinstance(value, str) and not isinstance(value, markup)
        return str(value).translate(_MARKDOWN) if plain else value

    text = _render("report.md", summary, {"pictures": pictures}, finalize=escape)
    lines = [line.rstrip() for line in text.splitlines()]
    # Templates leave empty lines behind.
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return "\n".join(kept).strip() + "\n"


def _render(
    name: str, summary: dict[str, Any], more: dict[str, Any], **options: Any
) -> str:
    environment = make_environment("probgap.reproduction", **options)
    environment.filters.update(score=_score, p_value=_p_value, verdict=_verdict)
    environment.filters.update(gain=_gain)
    words = files("probgap.reproduction").joinpath("templates", "words.toml")
    sides = [block[side] for block in summary["blocks"] for side in ("run", "paper")]
    methods = {method for side in sides for method in side["methods"]}
    text: str = environment.get_template(name).render(
        **summary,
        **more,
        **tomllib.loads(words.read_text(encoding="utf-8")),
        dash=NONE,
        paper=PAPER,
        share_methods=order_methods(methods - {NAIVE, CLEAN}),
        headline=_headline(summary),
        double_shares=_double_shares(summary["verdicts"]),
        difference_words=_differences(summary["differences"]),
    )
    return text


def _score(value: Score | None) -> str:
    """Format an accuracy in percent with its standard deviation."""
    if value is None:
        return NONE
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


def _headline(summary: dict[str, Any]) -> list[str]:
    """Return what was run and how it came out, in sentences."""
    run, verdicts = summary["run"], summary["verdicts"]
    data_sets = len({b["data"] for b in summary["blocks"] if b["present"]})
    errors = len(run["errors"])
    sentences = [
        f"{plural(run['jobs'], 'job')}: {plural(run['settings'], 'labelling')} on "
        f"{plural(data_sets, 'data set')}, {plural(len(run['methods']), 'method')}, "
        f"{plural(run['splits'], 'split')}. "
        + ("None failed." if not errors else f"{errors} failed: see the foot."),
    ]
    if run["profiles"] != ["full"]:
        sentences.append(
            f"The profile of these rows is {listed(run['profiles'])}: fewer splits and "
            "smaller samples than the paper's. Read them as a check that things work, "
            "not as a reproduction."
        )
    missing = [b["label"] for b in summary["blocks"] if b["known"] and not b["present"]]
    if missing:
        sentences.append(f"Not run: {listed(missing)}.")
    sentences.append(
        _standing(verdicts)
        if verdicts["compared"]
        else f"No block has rows of {OURS}, SVM, clean and a method of the paper, so "
        "there is nothing to compare yet."
    )
    return sentences


def _standing(verdicts: dict[str, Any]) -> str:
    blocks = f"{verdicts['compared']} blocks"
    if verdicts["compared"] < verdicts["blocks"]:
        blocks += f" that could be compared (of {verdicts['blocks']})"
    text = (
        f"{OURS} is ahead of every method of the paper in this run in "
        f"{verdicts['ahead']} of the {blocks}, ahead of the best that the paper "
        f"prints in {verdicts['ahead_printed']}, and of both in {verdicts['ahead_both']}."
    )
    if verdicts["behind"]:
        text += f" It is not ahead in this run on {listed(verdicts['behind'])}."
    if verdicts["compared_plain"]:
        text += (
            " With the SVM of the other methods as its final classifier it is ahead in "
            f"{verdicts['ahead_plain']} of {verdicts['compared_plain']}."
        )
    return text


def _double_shares(verdicts: dict[str, Any]) -> list[str]:
    """Return where ours has at least twice the share that the paper prints for PGPU."""
    lines = []
    for block in verdicts["double"]:
        ours, own = block["ours"], block["paper_own"]
        if block["double"] is None:
            lines.append(f"{block['label']}: cannot be said from these rows.")
            continue
        lines.append(
            f"{block['label']}: {_verdict(block['double'])}, {fixed(ours['share'])} "
            f"against {fixed(own['share'])}. Pooled: {_verdict(block['double_pooled'])}, "
            f"{fixed(ours['pooled'])} against {fixed(own['pooled'])}."
        )
    return lines


def _differences(found: dict[str, Any]) -> list[str]:
    """Return how many cells differ from the print, in which direction, and who wins."""
    if not found["compared"]:
        return ["No cell of these rows has a printed counterpart."]
    share = 100.0 * found["marked"] / found["compared"]
    lower = found["marked"] - found["higher"]
    counted = (
        f"Of {plural(found['compared'], 'cell')} with a printed counterpart, "
        f"{found['marked']} ({share:.0f}%) differ by more than two standard deviations: "
        f"ours is higher in {found['higher']} and lower in {lower}."
    )
    sentences = [counted]
    sentences += [
        f"The {name} SVM differs from the printed one by "
        f"{signed(found[name]['difference'])} points on average, by "
        f"{fixed(found[name]['size'])} regardless of sign."
        for name in ("naive", "clean")
        if found[name]
    ]
    winners = found["winners"]
    if winners["blocks"]:
        sentences.append(
            "Among the methods of the paper, PGPU or PGPUcv has the best share in "
            f"{winners['own_here']} of {plural(winners['blocks'], 'block')} here, and in "
            f"{winners['own_printed']} of them in print; the best method is the same in "
            f"{winners['same']}."
        )
    return sentences
