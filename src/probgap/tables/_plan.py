"""Which column of a table is used as what, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask
from probgap.tables._cells import NestedCellsError
from probgap.tables._kinds import Kind, check_finite, describe, find_kind
from probgap.tables._labels import read_labels
from probgap.tables._lazy import Frame, Series
from probgap.tables._read import check_columns

# With so few labelled rows, a column that agrees with them may do so by chance.
_FEW_LABELLED = 3
_SOME_LABELLED = 10
_FEW_VALUES = 10


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """How one column is used.

    Attributes
    ----------
    name : str
        Name of the column.
    use : {"number", "date", "category", "text", "label", "id", "left out"}
        What it is taken as.
    why : str
        The reason, in words.
    n_missing, n_distinct : int
        Cells without a value, and values that differ.
    example : str
        A cell of the column, cut where it is long.
    day_first : bool, default=False
        Whether dates such as 3/4/2020 begin with the day.
    """

    name: str
    use: str
    why: str
    n_missing: int
    n_distinct: int
    example: str
    day_first: bool = False


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How the columns of a table are used.

    Attributes
    ----------
    columns : tuple of ColumnUse
        One for each column, in the table's order.
    n_rows : int
        Rows of the table.
    """

    columns: tuple[ColumnUse, ...]
    n_rows: int

    def names(self, *uses: str) -> tuple[str, ...]:
        """Return the names of the columns of some uses, in the table's order."""
        return tuple(column.name for column in self.columns if column.use in uses)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that a model learns from."""
        return self.names("number", "date", "category", "text")

    @property
    def min_frequency(self) -> int:
        """In how many rows a level of a category must be found to count by itself."""
        return _min_frequency(self.n_rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the columns as plain dicts, fit for JSON."""
        return [asdict(column) for column in self.columns]


def plan_columns(
    frame: Frame,
    *,
    label: str,
    id: str | None = None,
    drop: Iterable[str] = (),
    positive: str | None = None,
    category: Iterable[str] = (),
) -> ColumnPlan:
    """Decide for every column whether a model learns from it, and as what.

    *Numbers* stay numbers, even if they have few values. Text whose cells are all
    numbers is numbers, unless one begins with a superfluous zero (a code). A column whose
    cells are all *dates*, as text or as numbers such as 20200131, is dates; whether
    3/4/2020 begins with the day or the month shows in the other cells, and where it does
    not, with the day if points stand between. A column of text with *words* to read (four
    or more in a cell, most cells different) is text, any other is a *category*.

    Left out, with the reason: columns the caller drops; constant and empty ones, and
    those with more than 98% of cells missing; times of day without a date; dates with
    cells among them that are none; names of rows: text with nearly all values different, whole numbers that count the rows (1, 2, 3, ...), and
    whole numbers that nearly all differ *and* whose column is called an id, index or
    key (a number is never left out for being all different); columns of lists or the
    like; a second column that tells the same as a first; and columns that mirror the
    label: whose values, few, or whose empty cells split the rows just as the label
    does. Such a column was most likely filled in after the label and would make a
    model look better than it is.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str
        The column that marks the labelled positives.
    id : str, default=None
        A column that names the rows.
    drop : iterable of str, default=()
        Columns to leave out.
    positive : str, default=None
        The value of the label column that marks a positive, as in
        :func:`read_labels`.
    category : iterable of str, default=()
        Columns to take for categories, whatever they look like: codes that happen to
        be numbers.

    Returns
    -------
    ColumnPlan
        One :class:`ColumnUse` for each column.

    Raises
    ------
    InvalidInputError
        If a named column is not there, if a column mixes numbers with a few words or
        has an infinite number, or if no column is left to learn from.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import plan_columns
    >>> frame = pd.DataFrame(
    ...     {
    ...         "name": ["ann", "bob", "cyd", "dan"],
    ...         "age": ["31", "45", "", "27"],
    ...         "team": ["red", "blue", "red", "red"],
    ...         "won": ["yes", "", "", ""],
    ...     }
    ... )
    >>> for column in plan_columns(frame, label="won").columns:
    ...     print(column.name, "|", column.use, "|", column.why)
    name | left out | id-like: nearly all values differ
    age | number | numbers
    team | category | 2 values
    won | label | marks the known positives
    """
    names = list(frame.columns)
    if len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        msg = f"The columns must have names of their own, as text. Got {names[:10]}."
        raise InvalidInputError(msg)
    drop, category = tuple(drop), tuple(category)
    check_columns((label, *(() if id is None else (id,)), *drop, *category), names)
    if label == id or label in drop:
        msg = f"The label column must be neither id nor dropped. Got {label!r}."
        raise InvalidInputError(msg)
    labelled = _labelled(frame[label], positive)
    uses: list[ColumnUse] = []
    seen: dict[bytes, str] = {}
    for at, name in enumerate(names):
        column = frame.iloc[:, at]
        if name == label:
            uses.append(_keep(column, "label", "marks the known positives"))
        elif name == id:
            uses.append(_keep(column, "id", "names the rows"))
        elif name in drop:
            uses.append(_keep(column, "left out", "dropped on request"))
        elif name in category:
            uses.append(_keep(column, "category", "taken for a category on request"))
        else:
            uses.append(_use_of(column, labelled, seen))
    plan = ColumnPlan(tuple(uses), len(frame))
    if not plan.inputs:
        raise InvalidInputError(_nothing_left(plan, label))
    return plan


def _min_frequency(n_rows: int) -> int:
    return max(2, min(10, n_rows // 100))


def _labelled(column: Series, positive: str | None) -> Mask | None:
    try:
        return read_labels(column, positive).labelled
    except InvalidInputError:
        # Whoever reads the labels will hear of it; without them nothing is mirrored.
        return None


def _keep(column: Series, use: str, why: str) -> ColumnUse:
    """Describe a column that is not to be judged."""
    try:
        n_missing, n_distinct, example = describe(column)
    except NestedCellsError:
        n_missing, n_distinct, example = 0, 0, ""
    return ColumnUse(str(column.name), use, why, n_missing, n_distinct, example)


def _use_of(column: Series, labelled: Mask | None, seen: dict[bytes, str]) -> ColumnUse:
    name = str(column.name)
    try:
        kind = find_kind(column, min_frequency=_min_frequency(len(column)))
    except NestedCellsError:
        return ColumnUse(name, "left out", "nested: lists or the like", 0, 0, "")
    use, why = kind.use, kind.why
    if use != "left out":
        mirror = _mirror(kind, labelled)
        if mirror:
            use, why = "left out", mirror
        elif kind.key in seen:
            use, why = "left out", f"tells the same as {seen[kind.key]!r}"
        else:
            seen[kind.key] = name
            if use == "number":
                check_finite(column)
    counts = (kind.n_missing, kind.n_distinct, kind.example)
    return ColumnUse(name, use, why, *counts, kind.day_first)


def _mirror(kind: Kind, labelled: Mask | None) -> str:
    """Return in which way a column mirrors the label, or nothing."""
    if labelled is None or labelled.sum() < _FEW_LABELLED:
        return ""
    present = kind.codes >= 0
    if np.array_equal(present, labelled):
        return "mirrors the label: filled in exactly where a row is labelled"
    if kind.n_distinct > _FEW_VALUES:
        return ""
    inside, outside = np.unique(kind.codes[labelled]), np.unique(kind.codes[~labelled])
    few = len(inside) + len(outside) <= 2
    if np.intersect1d(inside, outside).size or not (
        few or labelled.sum() >= _SOME_LABELLED
    ):
        return ""
    return "mirrors the label: its values tell labelled rows from the others"


def _nothing_left(plan: ColumnPlan, label: str) -> str:
    others = [column for column in plan.columns if column.use == "left out"]
    listed = ", ".join(f"{c.name!r} ({c.why})" for c in others[:5])
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    got = f"Got {listed}{more}." if others else "Got no other column."
    return f"The table must have a column to learn from besides {label!r}. {got}"
