"""``probgap compare``: the methods side by side on one's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli._completion import complete_column
from probgap.cli._errors import plain_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from probgap.cli._prepare import Prepared

READ, COMPARE = "Reading the table", "Comparing"


def compare(
    table: given.Table,
    *,
    label: given.Label,
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column with the true labels, if there is one: used to judge, never "
            "to learn.",
            autocompletion=complete_column,
            show_default=False,
        ),
    ] = None,
    positive: given.Positive = None,
    id_column: given.Id = None,
    drop: given.Drop = None,
    category: given.Category = None,
    folds: Annotated[
        int, typer.Option(min=2, max=20, metavar="N", help="Folds of cross-validation.")
    ] = 5,
    seed: given.Seed = 0,
    jobs: given.Jobs = 1,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Set the methods side by side on held-out rows of a table.

    Without truth only what labels show can be judged: how many held-out labelled rows a
    method finds (recall) and how few rows it calls positive to do so; the Lee-Liu score
    is recall squared over that share. With --truth: accuracy, balanced accuracy, F1, AUC,
    the hidden positives found and the false alarms.

    Example: probgap compare cases.csv --label flagged --truth audited
    """
    with plain_errors(debug=debug):
        from probgap.cli._analysis import heard_warnings
        from probgap.cli._prepare import Request, make_model, prepare
        from probgap.cli._progress import Progress
        from probgap.cli.fit import check_tool_libraries
        from probgap.diagnostics import compare_methods

        check_tool_libraries()
        shown = not (quiet or as_json)
        with Progress({READ: 1.0, COMPARE: 60.0}, shown=shown) as progress:
            progress.begin(READ)
            request = Request(
                source=table,
                label=label,
                positive=positive,
                id=id_column,
                drop=drop,
                category=category,
                truth=truth,
            )
            prepared = prepare(request)
            known = _truth(prepared, truth)
            progress.begin(COMPARE)
            with heard_warnings():
                rows = compare_methods(
                    prepared.inputs,
                    prepared.labels.labelled,
                    truth=known,
                    preprocessor=make_model(prepared, seed)[0],
                    n_splits=folds,
                    random_state=seed,
                    n_jobs=jobs,
                    progress=progress.advance,
                )
        if as_json:
            from probgap.cli._streams import print_json

            print_json(rows)
        else:
            _show(rows, prepared.labels.sentence, with_truth=truth is not None)


def _truth(prepared: Prepared, column: str | None) -> NDArray[np.bool_] | None:
    if column is None:
        return None
    from probgap._core.errors import InvalidInputError

    labelled, positive = prepared.labels.labelled, _true_rows(prepared, column)
    wrong = int((labelled & ~positive).sum())
    if wrong == int(labelled.sum()):
        msg = (
            f"--truth must call labelled rows positive. Got {column!r}, in which not one "
            "of them is."
        )
        raise InvalidInputError(msg)
    return positive


def _true_rows(prepared: Prepared, column: str) -> NDArray[np.bool_]:
    """Read the truth by the word that marks a labelled positive, or by its own."""
    from probgap._core.errors import InvalidInputError
    from probgap.tables import read_labels

    cells = prepared.table.frame[column]
    for word in (prepared.labels.positive, None):
        try:
            return read_labels(cells, word).labelled
        except InvalidInputError:
            continue
    values = cells.astype("string").fillna("").unique()
    shown = ", ".join(repr(value[:40]) for value in values[:4])
    more = f" and {len(values) - 4} more" if len(values) > 4 else ""
    msg = (
        f"--truth must name a column with positives and negatives, spelt as in --label "
        f"or as yes and no. Got {column!r} with {shown}{more}."
    )
    raise InvalidInputError(msg)


def _show(
    rows: Sequence[Mapping[str, Any]], sentence: str, *, with_truth: bool
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print(sentence, markup=False)
    console.print("Held-out rows, pooled over folds.\n", style="dim")
    columns = _WITH_TRUTH if with_truth else _WITHOUT
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    for row in rows:
        if row["error"] is not None:
            table.add_row(Text(row["method"]), Text(f"failed: {row['error']}"))
            continue
        cells = [
            "-" if row[key] is None else format(row[key], spec)
            for _, key, spec in columns
        ]
        table.add_row(Text(row["method"]), *cells)
    console.print(table)


# Heading, key, format.
_WITHOUT = (
    ("Lee-Liu", "lee_liu", ".2f"),
    ("recall of labelled", "recall", ".1%"),
    ("called positive", "share_positive", ".1%"),
    ("hidden called", "hidden", ",.0f"),
    ("agrees with ours", "agreement", ".1%"),
)
_WITH_TRUTH = (
    ("accuracy", "accuracy", ".1%"),
    ("balanced", "balanced_accuracy", ".1%"),
    ("F1", "f1", ".3f"),
    ("AUC", "roc_auc", ".3f"),
    ("hidden found", "hidden_found", ",.0f"),
    ("false alarms", "false_alarms", ",.0f"),
    ("Lee-Liu", "lee_liu", ".2f"),
)
