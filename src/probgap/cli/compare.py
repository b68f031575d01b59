"""``probgap compare``: methods side by side on a user's table."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_libraries

if TYPE_CHECKING:
    from probgap._core.types import Mask
    from probgap.cli._prepare import Prepared

READ, COMPARE = "Reading the table", "Comparing"
# Keys, and their headings and formats.
_WITHOUT_TRUTH = {
    "lee_liu": ("Lee-Liu", ".2f"),
    "recall": ("recall of labelled", ".1%"),
    "share_positive": ("called positive", ".1%"),
    "hidden": ("hidden called", ",.0f"),
    "agreement": ("agrees with ours", ".1%"),
}
_WITH_TRUTH = {
    "accuracy": ("accuracy", ".1%"),
    "balanced_accuracy": ("balanced", ".1%"),
    "f1": ("F1", ".3f"),
    "roc_auc": ("AUC", ".3f"),
    "hidden_found": ("hidden found", ",.0f"),
    "false_alarms": ("false alarms", ",.0f"),
    "lee_liu": ("Lee-Liu", ".2f"),
}
_TRUTH = (
    "A column with the true labels, if there is one: used to judge, never to learn."
)
_FOLDS = "Folds of cross-validation."


def compare(
    table: given.Table,
    *,
    label: given.Label,
    truth: Annotated[str | None, given.column(_TRUTH)] = None,
    positive: given.Positive = None,
    id_column: given.Id = None,
    drop: given.Drop = None,
    category: given.Category = None,
    folds: Annotated[int, typer.Option(min=2, max=20, metavar="N", help=_FOLDS)] = 5,
    seed: given.Seed = 0,
    jobs: given.Jobs = 1,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Compare the methods on held-out rows of a table.

    Without true labels, a method is judged by how many held-out labelled rows it finds
    (recall) and how few rows it calls positive to do so; the Lee-Liu score is recall
    squared over that share. With --truth: accuracy, balanced accuracy, F1, AUC, the hidden
    positives found and the false alarms.

    Example: probgap compare cases.csv --label flagged --truth audited
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        from probgap.cli._prepare import Request, prepare

        columns = Request(table, label, positive, id_column, drop, category, truth)
        costs, shown = {READ: 1.0, COMPARE: 60.0}, not (quiet or as_json)
        with terminal.Progress(costs, shown=shown) as progress:
            progress.begin(READ)
            prepared = prepare(columns)
            known = None if truth is None else _true_rows(prepared, truth)
            from probgap.diagnostics import compare_methods
            from probgap.tables import make_preprocessor

            progress.begin(COMPARE)
            with terminal.caught_warnings():
                rows = compare_methods(
                    prepared.inputs,
                    prepared.labels.labelled,
                    truth=known,
                    preprocessor=make_preprocessor(prepared.plan),
                    n_splits=folds,
                    random_state=seed,
                    n_jobs=jobs,
                    progress=progress.advance,
                )
        if as_json:
            terminal.print_json(rows)
        else:
            _show(rows, prepared.labels.sentence, with_truth=truth is not None)


def _true_rows(prepared: Prepared, column: str) -> Mask:
    """Return which rows are truly positive, marked by the label's value or another."""
    from probgap.tables import read_labels

    cells, labels = prepared.table.frame[column], prepared.labels
    for word in (labels.positive, None):
        with suppress(InvalidInputError):
            positive = read_labels(cells, word).labelled
            break
    else:
        values = cells.astype("string").fillna("").unique()
        shown = ", ".join(repr(value[:40]) for value in values[:4])
        more = f" and {len(values) - 4} more" if len(values) > 4 else ""
        terminal.refuse(
            "--truth must name a column with positives and negatives, spelt as in "
            f"--label or as yes and no. Got {column!r} with {shown}{more}."
        )
    if not (positive & labels.labelled).any():
        terminal.refuse(
            f"--truth must call labelled rows positive. Got {column!r}, which calls none "
            "of them positive."
        )
    return positive


def _show(rows: list[dict[str, Any]], sentence: str, *, with_truth: bool) -> None:
    from rich.text import Text

    console = terminal.make_console()
    console.print(sentence)
    console.print("Held-out rows, pooled over folds.\n", style="dim")
    columns = _WITH_TRUTH if with_truth else _WITHOUT_TRUTH
    headings = [heading for heading, _ in columns.values()]
    table = terminal.plain_table("method", *headings, right=headings)
    for row in rows:
        cells = [
            "-" if row[key] is None else format(row[key], spec)
            for key, (_, spec) in columns.items()
        ]
        if row["error"] is not None:
            cells = [f"failed: {row['error']}"]
        table.add_row(Text(row["method"]), *map(Text, cells))
    console.print(table)
