"""Which column of a table is used as what, and why."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, refuse
from probgap._core.types import Mask
from probgap.tables._cells import (
    LARGEST,
    Frame,
    NestedCellsError,
    Series,
    check_columns,
    encode_levels,
    refuse_cell,
    shorten,
    to_cells,
    to_text,
)
from probgap.tables._kinds import OR_DROP, is_id_name, judge, min_frequency
from probgap.tables._labels import read_labels

LOOKED = "who was looked at"  # the use of a column that says it
# With so few labelled rows, a column that agrees with them may do so by chance.
_FEW_LABELLED = 3
_SOME_LABELLED = 10
_FEW_VALUES = 10
# Columns that may tell which rows belong together: the reasons for which they are left out;
# the fewest values, the most values in a row, where one cell of twenty is repeated, and the
# most rows of a value in a column that is not called an id.
_LIKE_IDS = ("id-like", "every value is too rare")
_FEW_LEVELS, _MOST_DISTINCT, _MOST_ROWS = 24, 0.95, 10


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """How one column is used.

    Attributes
    ----------
    name : str
        Name of the column.
    use : {"number", "date", "category", "text", "label", "id", "group", "who was looked at", \
            "left out"}
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
        """Return the names of the columns of some uses.

        Parameters
        ----------
        *uses : str
            Uses, such as "number" or "category".

        Returns
        -------
        tuple of str
            Names, in the table's order.
        """
        return tuple(column.name for column in self.columns if column.use in uses)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that a model learns from."""
        return self.names("number", "date", "category", "text")

    @property
    def min_frequency(self) -> int:
        """The fewest rows with which a level of a category gets its own column."""
        return min_frequency(self.n_rows)

    @property
    def repeated_ids(self) -> tuple[ColumnUse, ...]:
        """Columns that look like names, but of several rows each: of customers, of sites."""
        if self.names("group"):
            return ()
        found = []
        for column in self.columns:
            n_present = self.n_rows - column.n_missing
            likely = column.use == "left out" and column.why.startswith(_LIKE_IDS)
            likely |= column.use in ("number", "category") and is_id_name(column.name)
            rare = _MOST_ROWS * column.n_distinct >= n_present
            likely |= column.use == "category" and rare
            most = _MOST_DISTINCT * n_present
            if likely and _FEW_LEVELS < column.n_distinct <= most:
                found.append(column)
        return tuple(found)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the columns as plain data, fit for JSON.

        Returns
        -------
        list of dict
            The attributes of each :class:`ColumnUse`.
        """
        return [asdict(column) for column in self.columns]


def plan_columns(
    frame: Frame,
    *,
    label: str | None = None,
    id: str | None = None,
    group: str | None = None,
    drop: Iterable[str] = (),
    positive: str | None = None,
    category: Iterable[str] = (),
    keep: Iterable[str] = (),
    labelled_by: Iterable[str] = (),
    labelled: Mask | None = None,
) -> ColumnPlan:
    """Decide for every column whether a model learns from it, and as what.

    *Numbers* stay numbers, even if they have few values; so does text whose cells are all
    numbers, unless one begins with a superfluous zero (a code). A column is *dates* if all
    its cells are, as text or as numbers such as 20200131; whether 3/4/2020 begins with the
    day shows in the other cells, or else in points between. Text with *words* to read
    (four or more in a cell, most cells different) is text, any other a *category*.

    Left out, with the reason: columns the caller drops; constant and empty ones, and
    those with more than 98% of cells missing; times of day; dates with other cells among
    them; names of rows (text with nearly all values different, whole numbers that count
    the rows or that nearly all differ in a column called an id, index or key); codes
    such as accounts and phones (see below); lists or the like; a second column that tells the same as a first; and columns that mirror the
    label: whose values, few, or whose empty cells split the rows just as the label does.
    These were most likely filled in after the label.

    *Codes* are whole numbers of which 90% differ, that look like codes, and among which
    the labelled rows lie like all others. They look like codes if all have the same
    number of digits, seven or more; or if they lie evenly (their median is in the middle
    half of the range that holds 90% of them, which that of most amounts and counts is
    not) and 30 rows or more are labelled. The labelled rows lie like all others unless
    their rank-sum says otherwise (in standard deviations, its square exceeds the logarithm
    of their number; for numbers of seven digits it must exceed 2.58, too), or the test by
    Kolmogorov and Smirnov, at a level of 1%.

    A column that mixes numbers with a few words, or has an infinite number or one beyond
    1e100, is refused, and so is a table without a column to learn from.

    Parameters
    ----------
    frame : DataFrame
        The table.
    label : str, default=None
        The column that marks the labelled positives; ``None`` if it is not in the table.
    id : str, default=None
        A column that names the rows.
    group : str, default=None
        A column that names what several rows belong to, which are held out together.
    drop : iterable of str, default=()
        Columns to leave out.
    positive : str or sequence of str, default=None
        What marks a positive in the label column, as in :func:`read_labels`.
    category : iterable of str, default=()
        Columns to take for categories: codes that happen to be numbers.
    keep : iterable of str, default=()
        Columns to learn from even if they would be left out: as numbers if they are
        numbers, and else as categories.
    labelled_by : iterable of str, default=()
        Columns that say who was looked at. A model learns from those that are kept, too.
    labelled : ndarray of shape (n_rows,), default=None
        Which rows are labelled; ``None`` reads it from the label column.

    Returns
    -------
    ColumnPlan
        One :class:`ColumnUse` for each column.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import plan_columns
    >>> rows = [["ann", "31", "red", "yes"], ["bob", "45", "blue", ""]]
    >>> rows += [["cyd", "", "red", ""], ["dan", "27", "red", ""]]
    >>> frame = pd.DataFrame(rows, columns=["name", "age", "team", "won"])
    >>> for column in plan_columns(frame, label="won").columns:
    ...     print(column.name, "|", column.use, "|", column.why)
    name | left out | id-like: nearly all values differ
    age | number | numbers
    team | category | 2 values
    won | label | marks the known positives
    """
    drop, category, keep = tuple(drop), tuple(category), tuple(keep)
    looked = tuple(labelled_by)
    apart = tuple(name for name in (label, id) if name is not None)
    together = () if group is None else (group,)
    _check_names(frame, *apart, *together, *drop, *category, *keep, *looked)
    if labelled is None:
        labelled = _find_labelled(frame, label, positive)
    if taken := [name for name in keep if name in (*apart, *drop)]:
        refuse(
            f"A kept column must be neither label, id nor dropped. Got {taken[0]!r}."
        )
    if taken := [name for name in looked if name in (*apart, *drop)]:
        refuse(
            "labelled_by must hold columns that are neither label, id nor dropped. Got "
            f"{taken[0]!r}."
        )
    if label is not None and (label == id or label in drop):
        refuse(f"The label column must be neither id nor dropped. Got {label!r}.")
    if label is not None and label == group:
        refuse(f"The group column must be another one than the label. Got {label!r}.")
    fixed = dict.fromkeys(category, ("category", "taken for a category on request"))
    fixed |= dict.fromkeys(drop, ("left out", "dropped on request"))
    if group is not None and group not in keep:
        fixed |= {group: ("group", "rows of one value are held out together")}
    fixed |= {} if id is None else {id: ("id", "names the rows")}
    fixed |= {} if label is None else {label: ("label", "marks the known positives")}
    declared = LOOKED, "declared; its groups may have been labelled less or more often"
    fixed |= {name: declared for name in looked if name not in keep}
    seen: dict[bytes, str] = {}
    # Declared columns first: what tells the same as one of them is left out.
    found = {
        name: _use_of(frame[name], fixed.get(name), labelled, seen, keep=name in keep)
        for name in sorted(frame.columns, key=lambda name: name not in looked)
    }
    for name in set(looked).intersection(keep):
        why = f"{found[name].why}; declared to say who was looked at, too"
        found[name] = replace(found[name], why=why)
    uses = [found[name] for name in frame.columns]
    plan = ColumnPlan(tuple(uses), len(frame))
    if not set(plan.inputs).difference(looked):
        out = [f"{c.name!r} ({c.why})" for c in uses if c.use == "left out"]
        more = f" and {len(out) - 5} more" if len(out) > 5 else ""
        why = ", ".join(out[:5]) + more if out else "the table has no other column"
        others = [] if label is None else [repr(label)]
        others += ["those of labelled_by"] if looked else []
        besides = f" besides {' and '.join(others)}" if others else ""
        refuse(f"There is no column to learn from{besides}: {why}.")
    return plan


def _find_labelled(frame: Frame, label: str | None, positive: str | None) -> Mask:
    """Return which rows are labelled; none, if that cannot be told."""
    # Reported where the labels are read; without them no column mirrors the label.
    with suppress(InvalidInputError):
        if label is not None:
            return read_labels(frame[label], positive).find(frame[label])
    return np.zeros(len(frame), dtype=bool)


def _check_names(frame: Frame, *wanted: str) -> None:
    names = list(frame.columns)
    if len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        refuse(f"The columns must have distinct strings as names. Got {names[:10]}.")
    check_columns(wanted, names, "The table")


def _use_of(
    column: Series,
    fixed: tuple[str, str] | None,
    labelled: Mask,
    seen: dict[bytes, str],
    *,
    keep: bool,
) -> ColumnUse:
    """Return the use of a column: ``fixed`` by the caller, or decided by its cells."""
    name, day_first = str(column.name), False
    try:
        cells = to_cells(column)
    except NestedCellsError:
        if keep:
            refuse(f"Column {name!r} cannot be kept: its cells hold lists or the like.")
        if fixed and fixed[0] == LOOKED:
            refuse(f"labelled_by must hold columns of single values. Got {name!r}.")
        use, why = fixed or ("left out", "nested: lists or the like")
        return ColumnUse(name, use, why, 0, 0, "")
    if fixed:
        use, why = fixed
        codes = encode_levels(cells)[1]
        if use == LOOKED:
            codes, values = judge(column, cells, labelled)[3:]
            seen.setdefault(_fingerprint(values), name)
            if mirrors := _mirror(codes, labelled):
                refuse(f"labelled_by must not hold {name!r}, which {mirrors}.")
    else:
        use, why, day_first, codes, values = judge(column, cells, labelled)
        if use != "left out":
            twin = seen.setdefault(_fingerprint(values), name)
            same = f"tells the same as {twin!r}" if twin != name else ""
            if redundant := _mirror(codes, labelled) or same:
                use, why = "left out", redundant
        if keep and use == "left out":
            use = "number" if values.dtype == np.float64 else "category"
            why = f"kept on request ({why})"
        if use == "number" and (huge := np.abs(values) > LARGEST).any():
            row = int(np.argmax(huge))
            finite = not np.isinf(values[row])
            kind = "number from -1e100 to 1e100" if finite else "finite number"
            refuse_cell(column, row, f"a {kind}", OR_DROP)
    present = np.flatnonzero(codes >= 0)
    counts = len(codes) - len(present), int(codes.max(initial=-1)) + 1
    example = ""
    if present.size:
        example = shorten(to_text(cells.slice(int(present[0]), 1))[0].as_py(), 40)
    return ColumnUse(name, use, why, *counts, example, day_first)


def _fingerprint(values: NDArray[Any]) -> bytes:
    return hashlib.sha256(values.tobytes()).digest()


def _mirror(codes: NDArray[np.int64], labelled: Mask) -> str:
    """Return how a column mirrors the label, "" if it does not."""
    if labelled.sum() < _FEW_LABELLED:
        return ""
    if np.array_equal(codes >= 0, labelled):
        return "mirrors the label: filled in exactly where a row is labelled"
    if codes.max() < _FEW_VALUES:
        inside, outside = np.unique(codes[labelled]), np.unique(codes[~labelled])
        enough = len(inside) + len(outside) <= 2 or labelled.sum() >= _SOME_LABELLED
        if enough and not np.intersect1d(inside, outside).size:
            return "mirrors the label: its values tell labelled rows from the others"
    return ""
