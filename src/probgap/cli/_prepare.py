"""What a user asks of a command, the table prepared for it, and scores of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probgap import tables
from probgap._core.errors import InvalidInputError
from probgap._core.runtime import free_memory
from probgap._core.types import Mask
from probgap.cli._output import FILES
from probgap.cli._terminal import command_line, listed, one_line, refuse
from probgap.tables import ColumnPlan, LabelColumn

# A table takes at least as many times the size of its files.
_TIMES_IN_MEMORY = 3
# The word for "not positive" beside a word for positive, so that predictions read like
# the label column.
_OPPOSITES = {
    style(positive): style(negative)
    for style in (str.lower, str.capitalize, str.upper)
    for positive, negative in (("yes", "no"), ("y", "n"), ("t", "f"))
}


@dataclass(frozen=True)
class Request:
    """What a user asks ``fit`` or ``compare`` to do."""

    source: str
    label: str
    positive: str | None = None
    id: str | None = None
    drop: Sequence[str] | None = None
    category: Sequence[str] | None = None
    truth: str | None = None  # a column to judge by, never to learn from
    seed: int = 0
    jobs: int = 1
    command: str = field(default_factory=command_line)
    class_prior: tuple[float, float] | None = None
    keep: Sequence[str] | None = None
    fast: bool = False  # leave out the checks that fit something else


@dataclass(frozen=True)
class Prepared:
    """A table, its labels, and how each column is used.

    Rows that were drawn from several files are indexed by their place in all rows.
    """

    request: Request
    table: tables.Table
    labels: LabelColumn
    plan: ColumnPlan
    files: tuple[str, ...] | None = None

    @cached_property
    def inputs(self) -> pd.DataFrame:
        """What a model learns from, with numbers parsed once."""
        return read_inputs(self.table.frame, self.plan)

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The user's names of the rows; None where no column holds them."""
        frame, column = self.table.frame, self.request.id
        if column is None:
            return np.full(len(frame), None)
        return frame[column].astype("string").fillna("").to_numpy(dtype=object)

    def find_row(self, row: str) -> int:
        """Return the place of a row that is named by its id or its number."""
        named = self.request.id is not None
        names = self.ids if named else self.numbers.astype(str)
        found = (names == row).nonzero()[0]
        if found.size != 1 and not named:
            refuse(f"--row must be a number from 1 to {names.size}. Got {row!r}.")
        if found.size != 1:
            which = f"{found.size} rows" if found.size else "no row"
            refuse(f"--row must be the id of one row. Got {row!r}, the id of {which}.")
        return int(found[0])

    @cached_property
    def truth(self) -> Mask | None:
        """Which rows are truly positive, marked by the label's value or another."""
        if (column := self.request.truth) is None:
            return None
        cells = self.table.frame[column]
        if len(levels := tables.count_levels(cells)) > 2:
            named = [repr(value[:40]) if value else "empty cells" for value in levels]
            refuse(
                "--truth must have one value for positives and one for negatives, and no "
                f"rows of unknown truth. Got {column!r} with {listed(named, 4)}."
            )
        for word in (self.labels.positive, None):
            with suppress(InvalidInputError):
                positive = tables.read_labels(cells, word).labelled
                break
        else:
            values = cells.astype("string").fillna("").unique()
            shown = listed([repr(value[:40]) for value in values], 4)
            refuse(
                "--truth must name a column with positives and negatives, spelt as in "
                f"--label or as yes and no. Got {column!r} with {shown}."
            )
        if not (positive & self.labels.labelled).any():
            refuse(
                f"--truth must call labelled rows positive. Got {column!r}, which calls "
                "none of them positive."
            )
        return positive

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Numbers of the rows in the whole table, counted from 1."""
        return self.table.frame.index.to_numpy() + 1


class MemoryEngine:
    """Reads a table whole and fits to all its rows; other engines override how."""

    name: str | None = None  # in run.json
    files: tuple[str, ...] = FILES

    def __init__(self, request: Request) -> None:
        self.request = request

    def read(self) -> None:
        """Read labels and columns, or refuse the table."""
        self._prepared = prepare(self.request)

    def fit(self) -> tuple[Any, Prepared]:
        """Return a fitted pipeline, and the rows that it was fitted to."""
        from sklearn.pipeline import Pipeline

        from probgap.pgpu import PGPUClassifier

        prepared, labels = self._prepared, self._prepared.labels
        classifier = PGPUClassifier(**self.parameters(labels))
        columns = tables.make_preprocessor(prepared.plan)
        model = Pipeline([("columns", columns), ("classifier", classifier)])
        observed = observed_labels(labels.positive, labels.labelled)
        return model.fit(prepared.inputs, observed), prepared

    def parameters(self, labels: LabelColumn) -> dict[str, Any]:
        """Return the parameters of the classifier."""
        return {
            "class_prior": self.request.class_prior,
            "pos_label": label_values(labels.positive)[1],
            "random_state": self.request.seed,
            "n_jobs": self.request.jobs,
        }

    def close(self) -> None:
        """Stop the worker processes, if there are any."""


def prepare(request: Request) -> Prepared:
    """Read the table and decide how its columns are used."""
    files = tables.find_tables(request.source)
    if Path(files[0]).is_file():  # anything else can be read only once
        with tables.open_table(files[0]) as reader:
            choose_columns(request, reader.columns)
        _require_memory(request.source, files)
    table = tables.read_table(request.source)
    chosen = choose_columns(request, list(table.frame.columns))
    labels = tables.read_labels(table.frame[request.label], request.positive)
    require_labels(labels.n_labelled, len(table.frame), request.label)
    plan = tables.plan_columns(table.frame, **chosen)
    return Prepared(request, table, labels, plan, table.files or None)


def _require_memory(source: str, files: Sequence[str]) -> None:
    """Refuse a table that cannot fit into memory, before the time is spent."""
    needed = _TIMES_IN_MEMORY * sum(Path(file).stat().st_size for file in files)
    free = free_memory()
    if free is not None and needed > free:
        parquet = all(Path(file).suffix == ".parquet" for file in files)
        first = "" if parquet else "save it as Parquet files and "
        refuse(
            f"{source} takes about {needed / 1e9:.1f} GB in memory, where {free / 1e9:.1f} "
            f"GB are free; {first}use probgap fit --engine dask, or fewer rows or columns."
        )


def choose_columns(request: Request, names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``plan_columns``, or refuse a column that is not there."""
    taken: dict[str, str] = {}
    for option in ("label", "id", "truth"):
        name = getattr(request, option)
        if name is not None:
            require_column(f"--{option}", name, names)
            if name in taken:
                refuse(
                    f"--{option} must name another column than --{taken[name]}. Got "
                    f"{name!r} for both."
                )
            taken[name] = option
    drop = _split_columns("--drop", request.drop, names)
    return {
        "label": request.label,
        "id": request.id,
        "drop": drop if request.truth is None else [*drop, request.truth],
        "positive": request.positive,
        "category": _split_columns("--category", request.category, names),
        "keep": _split_columns("--keep", request.keep, names),
    }


def _split_columns(
    option: str, given: Sequence[str] | None, names: Sequence[str]
) -> list[str]:
    """Read repeated, comma-separated column names; a name may itself hold a comma."""
    chosen: list[str] = []
    for entry in given or []:
        parts = [entry] if entry in names else map(str.strip, entry.split(","))
        chosen += [part for part in parts if part]
    for name in chosen:
        require_column(option, name, names)
    return chosen


def require_column(option: str, name: str, names: Sequence[str]) -> None:
    """Refuse a column that the table does not have, and suggest a similar one."""
    if name in names:
        return
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if len(names) == 1 and name in re.split(r"[,;|]", names[0]):
        hint = (
            " The table was read as one column: a file named .tsv is cut at tabs alone."
        )
    has = listed([one_line(column) for column in names], 8)
    rule = f"{option} must name a column of the table, which has {has}."
    refuse(f"{rule} Got {name!r}.{hint}")


def require_labels(n_labelled: int, n_rows: int, column: str) -> None:
    """Refuse a label column from which nothing can be learnt."""
    if min(n_labelled, n_rows - n_labelled) < 2:
        refuse(
            f"The label column {column!r} marks {n_labelled} of {n_rows} rows; a fit needs "
            "at least 2 labelled rows (30 before the numbers mean much) and 2 unlabelled."
        )


def label_values(positive: str) -> tuple[Any, Any]:
    """Return the two values that the model predicts: negative, positive."""
    word = positive.strip()
    if word.lower() in ("true", "false"):
        return word.lower() != "true", word.lower() == "true"
    with suppress(ValueError):
        if float(word) == 1.0:
            return 0, 1
    return _OPPOSITES.get(word, f"not {positive}"), positive


def observed_labels(positive: str, labelled: Mask) -> NDArray[Any]:
    """Return the labels to fit to."""
    return np.array(label_values(positive))[labelled.astype(int)]


def read_inputs(frame: pd.DataFrame, plan: ColumnPlan) -> pd.DataFrame:
    """Return what a model learns from, with numbers parsed."""
    names = list(plan.names("number"))
    others = frame[list(plan.names("date", "category", "text"))]
    numbers = pd.DataFrame(tables.to_numbers(frame[names]), frame.index, names)
    return pd.concat([numbers, others], axis=1)
