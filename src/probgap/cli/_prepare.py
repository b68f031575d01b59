"""What a command is asked to do, and a table made ready for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probgap._core.errors import InvalidInputError
from probgap.cli._scores import label_values
from probgap.cli._terminal import one_line

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap.tables import ColumnPlan, LabelColumn, Table

# The steps of a fit, and how long each takes relative to the others.
READ, FIT, CHECK, PAGE = (
    "Reading the table",
    "Fitting the model",
    "Checking it",
    "Writing the page",
)
COSTS = {READ: 10.0, FIT: 45.0, CHECK: 40.0, PAGE: 5.0}


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

    ``inputs`` holds what a model learns from, with numbers parsed once. ``rows`` are the
    places in the table of rows that were drawn from it; None for all.
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


class MemoryEngine:
    """Reads a table whole and fits to all its rows; other engines override how."""

    scores_all = True  # so that scores.csv can be written

    def __init__(self, request: Request) -> None:
        self.request = request

    def read(self) -> None:
        """Read labels and columns, or refuse the table."""
        self._prepared = prepare(self.request)

    def fit(self) -> tuple[Any, Prepared]:
        """Return a fitted pipeline, and the rows that it was fitted to."""
        from sklearn.pipeline import Pipeline

        from probgap.pgpu import PGPUClassifier
        from probgap.tables import make_preprocessor

        prepared, labels = self._prepared, self._prepared.labels
        classifier = PGPUClassifier(**self.parameters(labels.positive))
        steps = [("columns", make_preprocessor(prepared.plan))]
        model = Pipeline([*steps, ("classifier", classifier)])
        observed = np.array(label_values(labels.positive))[labels.labelled.astype(int)]
        return model.fit(prepared.inputs, observed), prepared

    def parameters(self, positive: str) -> dict[str, Any]:
        """Return the parameters of the classifier."""
        return {
            "class_prior": self.request.class_prior,
            "pos_label": label_values(positive)[1],
            "random_state": self.request.seed,
            "n_jobs": self.request.jobs,
        }

    def about(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the account tells of table and run in the words of this engine."""
        return {}, {}

    def close(self) -> None:
        """End what was started."""


def prepare(request: Request) -> Prepared:
    """Read the table and find the use of its columns."""
    from probgap.tables import open_table, plan_columns, read_labels, read_table

    if Path(request.source).is_file():  # what is no file can be read only once
        with open_table(request.source) as reader:
            choose_columns(request, reader.columns)
    table = read_table(request.source)
    chosen = choose_columns(request, [str(name) for name in table.frame.columns])
    labels = read_labels(table.frame[request.label], request.positive)
    require_labels(labels.n_labelled, labels.labelled.size, request.label)
    plan = plan_columns(table.frame, **chosen)
    inputs = read_inputs(table.frame, plan)
    ids = read_ids(table.frame, request.id)
    return Prepared(table, inputs, request.label, labels, plan, ids)


def choose_columns(request: Request, names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``plan_columns``, or refuse a column that is not there."""
    asked = {"--label": request.label, "--id": request.id, "--truth": request.truth}
    for option, name in asked.items():
        if name is not None:
            require_column(option, name, names)
    for other, option in combinations(asked, 2):
        if asked[option] is not None and asked[option] == asked[other]:
            msg = (
                f"{option} must name another column than {other}. Got "
                f"{asked[option]!r} for both."
            )
            raise InvalidInputError(msg)
    drop, category = (
        _split_columns(option, given, names)
        for option, given in (
            ("--drop", request.drop),
            ("--category", request.category),
        )
    )
    return {
        "label": request.label,
        "id": request.id,
        "drop": drop if request.truth is None else [*drop, request.truth],
        "positive": request.positive,
        "category": category,
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
    """Refuse a column that the table does not have, and offer one that is like it."""
    if name in names:
        return
    import difflib

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
    rule = ""
    if n_labelled < 2:
        rule = "mark at least 2 positives (30 before the numbers mean much)"
    elif n_rows - n_labelled < 2:
        rule = "leave at least 2 rows unlabelled"
    if rule:
        msg = (
            f"The label column {column!r} must {rule}. Got {n_labelled} labelled of "
            f"{n_rows} rows."
        )
        raise InvalidInputError(msg)


def read_ids(frame: pd.DataFrame, name: str | None) -> NDArray[Any] | None:
    """Return the user's names of rows, if there is a column of them."""
    if name is None:
        return None
    return frame[name].astype("string").fillna("").to_numpy(dtype=object)


def read_inputs(frame: pd.DataFrame, plan: ColumnPlan) -> pd.DataFrame:
    """Return what a model learns from, with numbers parsed."""
    import pandas as pd

    from probgap.tables import to_numbers

    names = list(plan.names("number"))
    others = frame[list(plan.names("date", "category", "text"))]
    if not names:
        return others
    numbers = pd.DataFrame(to_numbers(frame[names]), frame.index, names)
    return pd.concat([numbers, others], axis=1)


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
