"""What a command is asked to do, and a table made ready for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from probgap._core.errors import InvalidInputError
from probgap.cli._options import split_columns
from probgap.cli._scores import label_values

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap.tables import ColumnPlan, LabelColumn, Table


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
    """A table whose columns have found their use.

    ``inputs`` holds what a model learns from, with numbers read: the checks of a fit
    would read them again and again. ``rows`` are the places in the table of rows that
    were drawn from it; None for all.
    """

    table: Table
    inputs: pd.DataFrame
    label: str
    labels: LabelColumn
    plan: ColumnPlan
    ids: NDArray[Any] | None
    rows: NDArray[np.intp] | None = None

    def number(self, at: int) -> int:
        """Return the number of a row in the table, counted from 1."""
        return (at if self.rows is None else int(self.rows[at])) + 1


def read_ids(frame: pd.DataFrame, name: str | None) -> NDArray[Any] | None:
    """Return the user's names of rows, if there is a column of them."""
    if name is None:
        return None
    return frame[name].astype("string").fillna("").to_numpy(dtype=object)


def prepare(request: Request) -> Prepared:
    """Read the table and find the use of its columns."""
    from probgap.tables import plan_columns, read_labels, read_table

    table = read_table(request.source)
    names = [str(name) for name in table.frame.columns]
    asked = {"--label": request.label, "--id": request.id, "--truth": request.truth}
    for option, name in asked.items():
        if name is not None:
            require_column(option, name, names)
    for option, others in (("--id", ("--label",)), ("--truth", ("--label", "--id"))):
        for other in others:
            if asked[option] is not None and asked[option] == asked[other]:
                msg = (
                    f"{option} must name another column than {other}. Got "
                    f"{asked[option]!r} for both."
                )
                raise InvalidInputError(msg)
    drop = split_columns(list(request.drop or []), names)
    category = split_columns(list(request.category or []), names)
    for option, chosen in (("--drop", drop), ("--category", category)):
        for name in chosen:
            require_column(option, name, names)
    if request.truth is not None:
        drop.append(request.truth)
    labels = read_labels(table.frame[request.label], request.positive)
    require_labels(labels.n_labelled, labels.labelled.size, request.label)
    plan = plan_columns(
        table.frame,
        label=request.label,
        id=request.id,
        drop=drop,
        positive=request.positive,
        category=category,
    )
    inputs = read_inputs(table.frame, plan)
    ids = read_ids(table.frame, request.id)
    return Prepared(table, inputs, request.label, labels, plan, ids)


def read_inputs(frame: pd.DataFrame, plan: ColumnPlan) -> pd.DataFrame:
    """Give what a model learns from, with numbers read."""
    import pandas as pd

    from probgap.tables import to_numbers

    names = list(plan.names("number"))
    others = frame[list(plan.names("date", "category", "text"))]
    if not names:
        return others
    numbers = pd.DataFrame(to_numbers(frame[names]), frame.index, names)
    return pd.concat([numbers, others], axis=1)


def require_column(option: str, name: str, names: Sequence[str]) -> None:
    """Refuse a column that the table does not have, and offer one that is like it."""
    if name in names:
        return
    import difflib

    from probgap.cli._summary import one_line

    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(one_line(column) for column in names[:8])
    shown += ", ..." if len(names) > 8 else ""
    msg = (
        f"{option} must name a column of the table. Got {name!r}; it has {shown}.{hint}"
    )
    raise InvalidInputError(msg)


def require_labels(n_labelled: int, n_rows: int, column: str) -> None:
    """Refuse a label column from which nothing can be learnt."""
    if n_labelled < 2:
        msg = (
            f"The label column {column!r} must mark at least 2 positives (30 before the "
            f"numbers mean much). Got {n_labelled} of {n_rows} rows."
        )
        raise InvalidInputError(msg)
    if n_rows - n_labelled < 2:
        msg = (
            f"The label column {column!r} must leave at least 2 rows unlabelled. Got "
            f"{n_labelled} labelled of {n_rows} rows."
        )
        raise InvalidInputError(msg)


def read_class_prior(text: str | None) -> tuple[float, float] | None:
    """Read a share, or a range of two with a comma."""
    if text is None:
        return None
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError:
        shares = ()
    if len(shares) not in (1, 2) or not all(0.0 < share < 1.0 for share in shares):
        msg = (
            "--class-prior must be a share between 0 and 1, or a range such as 0.1,0.3. "
            f"Got {text!r}."
        )
        raise InvalidInputError(msg)
    return shares[0], shares[-1]


def make_model(
    prepared: Prepared,
    seed: int,
    jobs: int = 1,
    class_prior: tuple[float, float] | None = None,
) -> Any:
    """Give the pipeline that ``fit`` fits, and the labels that it fits it to."""
    from sklearn.pipeline import Pipeline

    from probgap.pgpu import PGPUClassifier
    from probgap.tables import make_preprocessor

    _, positive = label_values(prepared.labels.positive)
    classifier = PGPUClassifier(
        class_prior=class_prior, pos_label=positive, random_state=seed, n_jobs=jobs
    )
    return Pipeline(
        [("columns", make_preprocessor(prepared.plan)), ("classifier", classifier)]
    )


def observed_labels(labels: LabelColumn) -> NDArray[Any]:
    """Spell the observed labels by the values that the model predicts."""
    values = label_values(labels.positive)
    return np.array(values)[labels.labelled.astype(int)]
