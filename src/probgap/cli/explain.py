"""``probgap explain``: what drives the scores of all rows, or of one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_libraries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from probgap.cli._prepare import Prepared

_MOST_COLUMNS = 20
_N_NEAREST = 5
_BAR = 20
_FOLDER = "A folder that fit wrote."
_ROW = "One row: its id, or its number (from 1) if the table has no id column."
_TABLE = "The table of the fit, if it is no longer where it was."
# The parts of run.json that explain reads, and the types in them.
_NUMBER = int | float
_DRIVER = {"column": str, "importance": _NUMBER, "spread": _NUMBER}
_SHAPES: dict[str, Any] = {
    "table": dict.fromkeys(("path", "sha256", "label", "positive"), str)
    | {"id": str | None, "columns": [{"name": str, "use": str}]},
    "drivers": {"scored_by": str, "score": _NUMBER, "columns": [_DRIVER]},
}


def explain(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=_FOLDER)],
    *,
    row: Annotated[str | None, typer.Option(metavar="ID", help=_ROW)] = None,
    table: Annotated[str | None, typer.Option(metavar="TABLE", help=_TABLE)] = None,
    seed: given.Seed = 0,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Show which columns drive the scores, and why one row has the score it has.

    For all rows: how much worse the model tells held-out labelled rows from unlabelled
    ones when a column is shuffled (permutation importance). For one row (--row): how much
    each column moves its log-odds from the average row's, by Shapley values estimated
    from random orders of the columns, and which labelled positives are most like it.

    Example: probgap explain results --row C-1043
    """
    with terminal.plain_errors(debug=debug):
        if row is None:
            explained = _read_run(folder, "drivers")
        else:
            prepared = _read_table(_read_run(folder, "table"), table)
            explained = _explain_row(folder, prepared, _position(prepared, row), seed)
        if as_json:
            terminal.print_json(explained)
        elif row is None:
            _show_drivers(explained)
        else:
            _show_row(explained, n_columns=10 if quiet else _MOST_COLUMNS)


def _read_run(folder: Path, part: str) -> Any:
    """Return a part of run.json, or refuse a file that fit did not write."""
    path = folder / "run.json"
    if not path.is_file():
        terminal.refuse(
            f"DIR must be a folder that probgap fit wrote. Got {folder}: no run.json in it."
        )
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        run = None
    match run:
        case {"format": int(number)} if number > 1:
            terminal.refuse(
                f"{path} has format {number}, and this version reads format 1; use a "
                "newer probgap."
            )
        case {"format": 1, "drivers": None} if part == "drivers":
            terminal.refuse("There were too few labelled rows to explain the scores.")
        case {"format": 1, "table": {"files": _}} if part == "table":
            terminal.refuse(
                "--row requires a fit in memory; this one was made with --engine dask."
            )
        case {"format": 1} if _has_shape(run.get(part), _SHAPES[part]):
            pass
        case _:
            terminal.refuse(f"{path} is damaged or was altered; fit again.")
    return run[part]


def _has_shape(value: Any, shape: Any) -> bool:
    """Return whether plain data has the parts that a shape names."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            key in value and _has_shape(value[key], part) for key, part in shape.items()
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(v, shape[0]) for v in value)
    return isinstance(value, shape)


def _read_table(described: Mapping[str, Any], source: str | None) -> Prepared:
    """Read the table of a fit again, with its columns used as in the fit."""
    check_libraries()
    from probgap.cli._prepare import Request, prepare

    source = source or described["path"]
    found = ""
    if source == "-":
        found = "none, and it came from standard input"
    elif not Path(source).is_file():
        found = f"{source!r}, which is not a file"
    else:
        with Path(source).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != described["sha256"]:
            found = f"a file with other contents: {source}"
    if found:
        terminal.refuse(
            f"--table must name the table that the model was fitted to. Got {found}."
        )
    use = {column["name"]: column["use"] for column in described["columns"]}
    return prepare(
        Request(
            source=source,
            label=described["label"],
            positive=described["positive"],
            id=described["id"],
            drop=[name for name in use if use[name] == "left out"],
            category=[name for name in use if use[name] == "category"],
        )
    )


def _position(prepared: Prepared, row: str) -> int:
    """Return the place of a row that is named by its id or its number."""
    named = prepared.request.id is not None
    names = prepared.ids if named else prepared.numbers.astype(str)
    found = (names == row).nonzero()[0]
    if found.size != 1 and not named:
        terminal.refuse(f"--row must be a number from 1 to {names.size}. Got {row!r}.")
    if found.size != 1:
        which = f"{found.size} rows" if found.size else "no row"
        terminal.refuse(
            f"--row must be the id of one row. Got {row!r}, the id of {which}."
        )
    return int(found[0])


def _explain_row(
    folder: Path, prepared: Prepared, at: int, seed: int
) -> dict[str, Any]:
    from probgap.cli._analysis import cell_text
    from probgap.cli.predict import score_rows
    from probgap.inspection import nearest_labelled, row_contributions
    from probgap.io import load

    model = load(folder / "model.skops")
    classifier = model[-1]
    # As in scores.csv: by models that had not seen the row.
    held_out = (classifier.observed_gap_[[at]], classifier.posterior_[[at]])
    scores = score_rows(classifier, *held_out).iloc[0]
    frame, labelled = prepared.inputs, prepared.labels.labelled
    one, cells = frame.iloc[[at]], prepared.table.frame.iloc[at]
    parts = row_contributions(model, one, frame, random_state=seed)
    others = labelled.copy()
    others[at] = False
    nearest = nearest_labelled(model, frame, others, one, n=_N_NEAREST)
    contributions = [
        {"column": name, "value": cell_text(cells[name]), "log_odds": float(value)}
        for name, value in zip(parts.columns, parts.values, strict=True)
    ]
    return {
        "row": at + 1,
        "id": prepared.ids[at],
        "labelled": bool(labelled[at]),
        "probability": float(scores["probability"]),
        "gap": float(scores["gap"]),
        "average_log_odds": float(parts.baseline),
        "log_odds": float(parts.prediction),
        "contributions": sorted(contributions, key=lambda c: -abs(c["log_odds"])),
        "nearest_labelled": [
            {"row": other + 1, "id": prepared.ids[other], "distance": float(distance)}
            for other, distance in zip(
                nearest.index.tolist(), nearest.distance, strict=True
            )
        ],
    }


def _show_drivers(drivers: Mapping[str, Any]) -> None:
    console = terminal.make_console()
    console.print(f"{drivers['scored_by']}: {drivers['score']:.3f}")
    console.print("Drop in this score when a column is shuffled:\n", style="dim")
    shown = drivers["columns"][:_MOST_COLUMNS]
    _print_bars([(c["column"], c["importance"], f"± {c['spread']:.3f}") for c in shown])
    left = len(drivers["columns"]) - len(shown)
    if left > 0:
        console.print(f"\n{left} more columns: see report.html or --json.", style="dim")


def _show_row(explained: Mapping[str, Any], *, n_columns: int) -> None:
    console = terminal.make_console()
    name = explained["id"] or f"row {explained['row']}"
    state = "labelled positive" if explained["labelled"] else "unlabelled"
    console.print(
        f"{name} ({state}): probability {explained['probability']:.3f}, "
        f"gap {explained['gap']:.2f}"
    )
    console.print(
        "The final model gives it log-odds of "
        f"{explained['log_odds']:.2f}; the average row has "
        f"{explained['average_log_odds']:.2f}. Each column's part of the difference:\n",
        style="dim",
    )
    parts = explained["contributions"]
    _print_bars([(c["column"], c["log_odds"], c["value"]) for c in parts[:n_columns]])
    if len(parts) > n_columns:
        rest = sum(c["log_odds"] for c in parts[n_columns:])
        console.print(f"all other columns together {rest:+.3f}", style="dim")
    console.print("\nLabelled positives most like it", style="dim")
    for other in explained["nearest_labelled"]:
        label = other["id"] or f"row {other['row']}"
        console.print(f"  {label}  (distance {other['distance']:.2f})")


def _print_bars(entries: list[tuple[str, float, str]]) -> None:
    """Print names, numbers with a bar each, and a remark."""
    from rich.text import Text

    largest = max((abs(value) for _, value, _ in entries), default=0.0) or 1.0
    sign = "█" if terminal.can_print("█") else "#"
    table = terminal.plain_table()
    for name, value, remark in entries:
        bar = sign * round(_BAR * abs(value) / largest)
        table.add_row(
            Text(terminal.one_line(name, 40)),
            f"{value:+.3f}",
            Text(bar, "red" if value < 0 else "blue"),
            Text(terminal.one_line(remark, 40)),
        )
    terminal.make_console().print(table)
