"""``probgap explain``: what drives the scores, of all rows or of one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError
from probgap.cli import _options as given
from probgap.cli._errors import plain_errors
from probgap.cli._streams import can_print, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from probgap.cli._prepare import Prepared

_MOST_COLUMNS = 20
_N_NEAREST = 5
_BAR = 20
# What explain reads of run.json: types, mappings by key, lists, (alternatives).
_RUN = {
    "table": {
        "path": str,
        "sha256": str,
        "label": str,
        "positive": str,
        "id": str | None,
        "columns": [{"name": str, "use": str}],
    },
    "drivers": (
        NoneType,
        {
            "scored_by": str,
            "score": int | float,
            "columns": [
                {"column": str, "importance": int | float, "spread": int | float}
            ],
        },
    ),
}


def explain(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that fit wrote.")
    ],
    *,
    row: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="One row: its id, or its number (from 1) if the table has no id column.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="The table of the fit, if it is no longer where it was.",
            show_default=False,
        ),
    ] = None,
    seed: given.Seed = 0,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Say which columns drive the scores, and why one row has the score it has.

    Of all rows: how much worse the model tells held-out labelled rows from unlabelled
    ones when a column is shuffled (permutation importance). Of one row (--row): how much
    each column moves its log-odds from the average row's, by Shapley values estimated
    from random orders of the columns, and which labelled positives are most like it.

    Example: probgap explain results --row C-1043
    """
    with plain_errors(debug=debug):
        run = _read_run(folder)
        if row is None:
            _show_drivers(run, as_json=as_json)
            return
        case = _find_row(folder, run, row, table)
        explained = _explain_row(case, seed)
        if as_json:
            print_json(explained)
        else:
            _show_row(explained, quiet=quiet)


@dataclass(frozen=True)
class _Case:
    """One row, the table that it is of, and the model that scored it."""

    model: Any
    prepared: Prepared
    at: int
    name: str


def _read_run(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.is_file():
        msg = f"DIR must be a folder that probgap fit wrote. Got {folder}, without run.json."
        raise InvalidInputError(msg)
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        run = None
    number = run.get("format") if isinstance(run, dict) else None
    if isinstance(number, int) and number > 1:
        msg = f"{path} must be of format 1. Got {number}; use a newer probgap."
        raise InvalidInputError(msg)
    if number != 1 or not _fits(run, _RUN):
        msg = (
            f"{path} must be as probgap fit wrote it. Got a file that was damaged or "
            "altered; fit again."
        )
        raise InvalidInputError(msg)
    found: dict[str, Any] = run
    return found


def _fits(value: Any, shape: Any) -> bool:
    """Say whether plain data has the parts that a shape names."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            key in value and _fits(value[key], part) for key, part in shape.items()
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(each, shape[0]) for each in value)
    if isinstance(shape, tuple):
        return any(_fits(value, each) for each in shape)
    return isinstance(value, shape)


def _show_drivers(run: Mapping[str, Any], *, as_json: bool) -> None:
    drivers = run["drivers"]
    if drivers is None:
        msg = "The fit must have rows to hold out for an explanation. Got too few labelled."
        raise InvalidInputError(msg)
    if as_json:
        print_json(drivers)
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{drivers['scored_by']}: {drivers['score']:.3f}", markup=False)
    console.print("It falls by so much when a column is shuffled:\n", style="dim")
    shown = drivers["columns"][:_MOST_COLUMNS]
    _print_bars([(c["column"], c["importance"], f"± {c['spread']:.3f}") for c in shown])
    left = len(drivers["columns"]) - len(shown)
    if left > 0:
        console.print(f"\n{left} more columns: see report.html or --json.", style="dim")


def _find_row(
    folder: Path, run: Mapping[str, Any], row: str, source: str | None
) -> _Case:
    from probgap.cli._prepare import Request, prepare
    from probgap.cli.fit import check_tool_libraries
    from probgap.io import load

    check_tool_libraries()
    described = run["table"]
    source = source or described["path"]
    if source == "-" or not Path(source).is_file():
        where = (
            "it came from standard input"
            if source == "-"
            else f"there is no file {source!r}"
        )
        msg = f"--table must name the table that the model was fitted to; {where}. Got none."
        raise InvalidInputError(msg)
    if _sha256(Path(source)) != described["sha256"]:
        msg = (
            "--table must name the table that the model was fitted to. Got a file with "
            f"other contents: {source}."
        )
        raise InvalidInputError(msg)
    prepared = prepare(
        Request(
            source=source,
            label=described["label"],
            positive=described["positive"],
            id=described["id"],
            drop=[c["name"] for c in described["columns"] if c["use"] == "left out"],
            category=[
                c["name"] for c in described["columns"] if c["use"] == "category"
            ],
        )
    )
    return _Case(load(folder / "model.skops"), prepared, _position(prepared, row), row)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _position(prepared: Prepared, row: str) -> int:
    n_rows = len(prepared.table.frame)
    if prepared.ids is not None:
        found = [i for i, name in enumerate(prepared.ids) if name == row]
        if len(found) == 1:
            return found[0]
        msg = (
            f"--row must name one row by its id. Got {row!r}, which "
            f"{'none has' if not found else f'{len(found)} rows have'}."
        )
        raise InvalidInputError(msg)
    if row.isdecimal() and 1 <= int(row) <= n_rows:
        return int(row) - 1
    msg = f"--row must be a number from 1 to {n_rows}. Got {row!r}."
    raise InvalidInputError(msg)


def _explain_row(case: _Case, seed: int) -> dict[str, Any]:
    from probgap.cli._account import cell_text, name_of
    from probgap.cli._scores import shorten
    from probgap.inspection import nearest_labelled, row_contributions

    frame, labelled = case.prepared.inputs, case.prepared.labels.labelled
    one, shown = frame.iloc[[case.at]], case.prepared.table.frame.iloc[case.at]
    contributions = row_contributions(case.model, one, frame, random_state=seed)
    others = labelled.copy()
    others[case.at] = False
    nearest = nearest_labelled(case.model, frame, others, one, n=_N_NEAREST)
    # As in scores.csv: by models that had not seen the row.
    classifier = case.model[-1]
    gap, chance = classifier.observed_gap_[case.at], classifier.posterior_[case.at]
    order = sorted(
        range(len(contributions.columns)),
        key=lambda i: -abs(contributions.values[i]),
    )
    return {
        "row": case.at + 1,
        "id": name_of(case.prepared.ids, case.at + 1),
        "labelled": bool(labelled[case.at]),
        "probability": float(shorten(chance)),
        "gap": float(shorten(gap)),
        "average_log_odds": float(contributions.baseline),
        "log_odds": float(contributions.prediction),
        "contributions": [
            {
                "column": contributions.columns[i],
                "value": cell_text(shown[contributions.columns[i]]),
                "log_odds": float(contributions.values[i]),
            }
            for i in order
        ],
        "nearest_labelled": [
            {
                "row": int(at) + 1,
                "id": name_of(case.prepared.ids, int(at) + 1),
                "distance": float(distance),
            }
            for at, distance in zip(nearest.index, nearest.distance, strict=True)
        ],
    }


def _show_row(explained: Mapping[str, Any], *, quiet: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    name = explained["id"] or f"row {explained['row']}"
    state = "labelled positive" if explained["labelled"] else "unlabelled"
    console.print(
        f"{name} ({state}): probability {explained['probability']:.3f}, "
        f"gap {explained['gap']:.2f}",
        markup=False,
    )
    console.print(
        "By the model of all rows its log-odds are "
        f"{explained['log_odds']:.2f}, the average row's "
        f"{explained['average_log_odds']:.2f}. Each column's part of the difference:\n",
        style="dim",
        markup=False,
    )
    shown = explained["contributions"][: 10 if quiet else _MOST_COLUMNS]
    _print_bars([(c["column"], c["log_odds"], c["value"]) for c in shown])
    rest = sum(c["log_odds"] for c in explained["contributions"][len(shown) :])
    if len(explained["contributions"]) > len(shown):
        console.print(f"all other columns together {rest:+.3f}", style="dim")
    console.print("\nLabelled positives most like it", style="dim")
    for other in explained["nearest_labelled"]:
        label = other["id"] or f"row {other['row']}"
        console.print(f"  {label}  (distance {other['distance']:.2f})", markup=False)


def _print_bars(entries: list[tuple[str, float, str]]) -> None:
    """Print names, numbers with a bar each, and a remark."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    largest = max((abs(value) for _, value, _ in entries), default=0.0) or 1.0
    sign = "█" if can_print("█") else "#"
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, value, remark in entries:
        bar = sign * round(_BAR * abs(value) / largest)
        colour = "red" if value < 0 else "blue"
        table.add_row(
            Text(_line(name)),
            f"{value:+.3f}",
            Text(bar, style=colour),
            Text(_line(remark)),
        )
    Console(highlight=False, soft_wrap=True).print(table)


def _line(text: str, longest: int = 40) -> str:
    from probgap.cli._summary import one_line

    return one_line(text, longest)
