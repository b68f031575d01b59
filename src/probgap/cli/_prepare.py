"""What a user asks of a command, and the table prepared for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probgap import tables
from probgap._core.types import Mask
from probgap.cli._output import FILES
from probgap.cli._terminal import one_line, refuse
from probgap.tables import ColumnPlan, LabelColumn

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
    command: str = ""
    class_prior: tuple[float, float] | None = None


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
    if Path(request.source).is_file():  # anything else can be read only once
        with tables.open_table(request.source) as reader:
            choose_columns(request, reader.columns)
    table = tables.read_table(request.source)
    chosen = choose_columns(request, list(table.frame.columns))
    labels = tables.read_labels(table.frame[request.label], request.positive)
    require_labels(labels.n_labelled, len(table.frame), request.label)
    return Prepared(request, table, labels, tables.plan_columns(table.frame, **chosen))


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
    shown = ", ".join(one_line(column) for column in names[:8])
    shown += f" and {len(names) - 8} more" if len(names) > 8 else ""
    rule = f"{option} must name a column of the table, which has {shown}."
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
