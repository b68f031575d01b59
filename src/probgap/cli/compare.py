"""``probgap compare``: methods side by side on a user's table."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError, refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_libraries

if TYPE_CHECKING:
    from probgap._core.types import Mask

_COSTS = {"Reading the table": 1.0, "Comparing": 60.0}
# Keys, and their headings and formats.
_WITHOUT_TRUTH = {
    "labelled_auc": ("AUC", ".3f"),
    "labelled_average_precision": ("avg. precision", ".3f"),
    "lee_liu": ("Lee-Liu", ".2f"),
    "recall": ("recall of labelled", ".1%"),
    "share_positive": ("called positive", ".1%"),
    "hidden": ("hidden called", ",.0f"),
    "agreement": ("agrees with ours", ".1%"),
    "seconds": ("CPU s", ".2f"),
}
_WITH_TRUTH = {
    "hidden_auc": ("AUC of hidden", ".3f"),
    "hidden_average_precision": ("avg. precision", ".3f"),
    "accuracy": ("accuracy", ".1%"),
    "balanced_accuracy": ("balanced", ".1%"),
    "f1": ("F1", ".3f"),
    "roc_auc": ("AUC of all", ".3f"),
    "hidden_found": ("hidden found", ",.0f"),
    "false_alarms": ("false alarms", ",.0f"),
    "lee_liu": ("Lee-Liu", ".2f"),
    "seconds": ("CPU s", ".2f"),
}
_TRUTH = (
    "A column with the true labels, if there is one: used to judge, never to learn."
)
_FOLDS = "Folds of cross-validation."
_ONLY = "A method to compare, by its name in the table; can be given several times."
_ALL = (
    "Also PGPUcv of the paper, and PGlin and PUSB on our scores: several times slower."
)


def compare(
    table: given.Table,
    *,
    label: given.Label,
    truth: Annotated[str | None, given.column(_TRUTH)] = None,
    positive: given.Positive = None,
    id_column: given.Id = None,
    group: given.Group = None,
    drop: given.Drop = None,
    keep: given.Keep = None,
    category: given.Category = None,
    folds: Annotated[int, typer.Option(min=2, max=20, metavar="N", help=_FOLDS)] = 3,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="METHOD", help=_ONLY)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help=_ALL)] = False,
    seed: given.Seed = 0,
    jobs: given.Jobs = 1,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Compare the methods on held-out rows of a table.

    Beside probgap and the methods of the paper: boosted trees and a forest that take
    unlabelled rows for negative, PU bagging, spies, nnPU, uPU, PUSB, PGlin and SAR-EM.

    Without true labels, a method is judged by how high it ranks held-out labelled rows
    among the unlabelled (AUC, average precision), how many of them it finds (recall), and
    how few rows it calls positive to do so; the Lee-Liu score is recall squared over that
    share. With --truth: how high hidden positives are ranked among the unlabelled rows;
    accuracy, balanced accuracy, F1, AUC of all rows, the hidden positives found and the
    false alarms.

    Example: probgap compare cases.csv --label flagged --truth audited
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        from probgap.cli._table import Options, read_rows

        asked = Options(
            table, label, positive, id_column, group, drop, category, keep, truth
        )
        with terminal.Progress(_COSTS, shown=not (quiet or as_json)) as progress:
            progress.begin("Reading the table")
            frame = read_rows(asked).frame
            from probgap import diagnostics, tables

            labels = tables.read_labels(frame[label], positive)
            tables.require_labels(labels.n_labelled, len(frame), label)
            labelled = labels.find(frame[label])
            chosen: Any = asked.choose_columns(list(frame.columns))
            plan = tables.plan_columns(frame, labelled=labelled, label=label, **chosen)
            known = list(diagnostics.METHODS)
            if unknown := [name for name in only or () if name not in known]:
                names = ", ".join(known)
                refuse(f"--only must be one of {names}. Got {unknown[0]!r}.")

            progress.begin("Comparing")
            skipped = () if every else diagnostics.SLOW
            usual = [name for name in known if name not in skipped]
            options: dict[str, Any] = {
                "methods": list(dict.fromkeys(only or usual)),
                "preprocessor": tables.make_preprocessor(plan),
                "n_splits": folds,
                "random_state": seed,
                "n_jobs": jobs,
                "progress": progress.advance,
            }
            if truth is not None:
                options["truth"] = _read_truth(frame[truth], labelled, labels.kinds)
            if group is not None:
                options["groups"] = frame[group].to_numpy(dtype=object)
            inputs = tables.read_inputs(frame, plan)
            with terminal.caught_warnings():
                rows = diagnostics.compare_methods(inputs, labelled, **options)
        if as_json:
            terminal.print_json(rows)
        else:
            columns_shown = _WITHOUT_TRUTH if truth is None else _WITH_TRUTH
            _show(rows, columns_shown, labels.sentence)


def _read_truth(cells: Any, labelled: Mask, kinds: Iterable[str]) -> Mask:
    """Read which rows are truly positive, marked by a value of the label or another."""
    from probgap import tables

    if len(levels := tables.count_levels(cells)) > 2:
        named = [repr(value[:40]) if value else "empty cells" for value in levels]
        refuse(
            "--truth must have one value for positives and one for negatives, and no "
            f"rows of unknown truth. Got {cells.name!r} with {terminal.first_few(named, 4)}."
        )
    for word in (*kinds, None):
        with suppress(InvalidInputError):
            truth = tables.read_labels(cells, word).find(cells)
            break
    else:
        shown = terminal.first_few([repr(value[:40]) for value in levels], 4)
        refuse(
            "--truth must name a column with positives and negatives, spelt as in "
            f"--label or as yes and no. Got {cells.name!r} with {shown}."
        )
    if not (truth & labelled).any():
        refuse(
            f"--truth must call labelled rows positive. Got {cells.name!r}, which calls "
            "none of them positive."
        )
    return truth


def _show(
    rows: list[dict[str, Any]],
    columns: dict[str, tuple[str, str]],
    sentence: str,
) -> None:
    console = terminal.make_console()
    console.print(sentence)
    console.print("Held-out rows, pooled over folds.\n", style="dim")
    headings = [heading for heading, _ in columns.values()]
    lines = []
    for row in rows:
        cells = [
            "-" if row[key] is None else format(row[key], spec)
            for key, (_, spec) in columns.items()
        ]
        if row["error"] is not None:
            cells = [f"failed: {row['error']}"]
        lines.append([row["method"], *cells])
    console.print(terminal.plain_table(["method", *headings], lines, right=headings))
