"""Which rows of a table are labelled positive."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from probgap._core.defaults import WORDS_FOR_NO
from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask
from probgap.tables._base import Series, listed, pc, pd, refuse
from probgap.tables._cells import to_cells, to_levels

_ALIASES = {"1": "true", "true": "1", "0": "false", "false": "0"}
_MORE = "more values"


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """A label column, read.

    Attributes
    ----------
    labelled : ndarray of shape (n_rows,)
        True where a row is a labelled positive.
    positive : str
        The value that marks them.
    unlabelled : dict of str to int
        The values taken as unlabelled and how often each occurs; "" is an empty cell.
    n_labelled : int
        How many rows are labelled.
    sentence : str
        How the values were read, in words.
    """

    labelled: Mask
    positive: str
    unlabelled: dict[str, int]
    n_labelled: int
    sentence: str

    def find(self, column: Series) -> Mask:
        """Return which rows of the column, or of a part of it, are labelled."""
        values, codes = _encode(column)
        marker = self.positive.casefold()
        same = np.array([value.casefold() == marker for value in values], dtype=bool)
        return same[codes]


def read_labels(column: Series, positive: str | None = None) -> LabelColumn:
    """Find the labelled positives in a column.

    Case does not matter, and 1, 1.0 and "1" are the same. Without ``positive``, the
    column must hold one value besides those that mean unlabelled: empty or missing, 0,
    -1, false, f, no, n, not, negative, neg, u, unlabelled, unknown, none, null, na,
    n/a, nan, missing, other, rest, unchecked, unverified, untested. That one value
    marks the positives. Between two others this function does not guess: it raises
    ``InvalidInputError``, as it does if no row or every row is labelled.

    Parameters
    ----------
    column : Series
        The label column.
    positive : str, default=None
        The value that marks a labelled positive; every other is unlabelled.

    Returns
    -------
    LabelColumn
        The mask of labelled rows, and how the values were read.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import read_labels
    >>> labels = read_labels(pd.Series(["fraud", None, "no", "fraud"]))
    >>> labels.labelled.tolist()
    [True, False, False, True]
    >>> labels.sentence
    "Reading 'fraud' as labelled positive (2 rows), empty cells, 'no' as unlabelled."
    """
    found = read_label_counts(count_levels(column), positive, name=column.name)
    return replace(found, labelled=found.find(column))


def count_levels(column: Series) -> dict[str, int]:
    """Count the values of a label column, or of a part of it; "" is an empty cell."""
    values, codes = _encode(column)
    counts = np.bincount(codes, minlength=len(values))
    return dict(zip(values, counts.tolist(), strict=True))


def _encode(column: Series) -> tuple[list[str], NDArray[np.intp]]:
    encoded = pc.dictionary_encode(pc.fill_null(to_levels(to_cells(column)), ""))
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def read_label_counts(
    counts: dict[str, int], positive: str | None = None, *, name: object = None
) -> LabelColumn:
    """Read labels from the counts of values: a LabelColumn without a mask of rows."""
    name = f"The label column {name!r}" if name else "The label column"
    key = _find_marker(name, list(counts), positive)
    marked = {v: n for v, n in counts.items() if v.casefold() == key}
    others = {v: n for v, n in counts.items() if v.casefold() != key}
    if not others:
        only = next(iter(counts))
        refuse(f"{name} holds {only!r} in every row; some rows must be unlabelled.")
    marker = max(marked, key=lambda value: (marked[value], value))
    others = dict(sorted(others.items(), key=lambda item: (item[0] != "", -item[1])))
    n_labelled = sum(marked.values())
    sentence = (
        f"Reading {marker!r} as labelled positive ({n_labelled:,} "
        f"row{'s' if n_labelled != 1 else ''}), {listed(others, _MORE)} as unlabelled."
    )
    return LabelColumn(np.zeros(0, bool), marker, others, n_labelled, sentence)


def _find_marker(name: str, values: list[str], positive: str | None) -> str:
    """Return the value, in lower case, that marks a positive."""
    keys = {value.casefold(): value for value in values}
    if positive is not None:
        key = _encode(pd.Series([str(positive)]))[0][0].casefold()
        if not key:
            rule = "positive (--positive) must be a value, not an empty cell."
            refuse(f"{rule} Got {positive!r}.")
        for each in (key, _ALIASES.get(key, key)):
            if each in keys:
                return each
        refuse(
            f"{name} never holds {positive!r}, the value of positive (--positive); it "
            f"holds {listed(values, _MORE)}."
        )
    markers = {key: value for key, value in keys.items() if key not in WORDS_FOR_NO}
    if len(markers) == 1:
        return next(iter(markers))
    advice = "marks the known positives, with --positive (positive= in Python)."
    if markers:
        why = (
            "holds several values besides those for unlabelled: "
            f"{listed(markers.values(), _MORE)}; say which one {advice}"
        )
    elif any(values):
        said = [value for value in values if value]
        ask = f"say if one of them {advice}"
        if len(said) == 1 < len(values):
            ask = (
                f"if {said[0]!r} marks the known positives, add --positive "
                f"{shlex.quote(said[0])} (positive= in Python)."
            )
        why = (
            f"marks no row as positive: it holds only {listed(values, _MORE)}, read as "
            f"unlabelled; {ask}"
        )
    else:
        why = "marks no row as positive: all its cells are empty."
    msg = f"{name} {why}"
    raise InvalidInputError(msg)
