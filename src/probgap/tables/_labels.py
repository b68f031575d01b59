"""Which rows of a table are labelled positive."""

import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.defaults import WORDS_FOR_NO
from probgap._core.errors import InvalidInputError, refuse
from probgap._core.types import Mask
from probgap.tables._cells import Series, listed, pc, pd, to_cells, to_levels

_ALIASES = {"1": "true", "true": "1", "0": "false", "false": "0"}
_MORE = "more values"
# The word for "not positive" beside a word for positive, so that predictions read like
# the label column.
_OPPOSITES = {
    style(positive): style(negative)
    for style in (str.lower, str.capitalize, str.upper)
    for positive, negative in (("yes", "no"), ("y", "n"), ("t", "f"))
}


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """How the values of a label column are read.

    Attributes
    ----------
    positive : str
        The value that marks labelled positives.
    unlabelled : dict of str to int
        The values taken as unlabelled and how often each occurs; "" is an empty cell.
    n_labelled : int
        How many rows are labelled.
    """

    positive: str
    unlabelled: dict[str, int]
    n_labelled: int

    @property
    def sentence(self) -> str:
        """How the values are read, in words."""
        return (
            f"Reading {self.positive!r} as labelled positive ({self.n_labelled:,} "
            f"row{'s' if self.n_labelled != 1 else ''}), "
            f"{listed(self.unlabelled, _MORE)} as unlabelled."
        )

    @property
    def values(self) -> tuple[Any, Any]:
        """The two values that a model predicts: negative and positive."""
        word = self.positive.strip()
        if word.lower() in ("true", "false"):
            return word.lower() != "true", word.lower() == "true"
        with suppress(ValueError):
            if float(word) == 1.0:
                return 0, 1
        return _OPPOSITES.get(word, f"not {self.positive}"), self.positive

    def count(self, counts: dict[str, int]) -> int:
        """Return how many rows are labelled, by the counts of their values."""
        marker = self.positive.casefold()
        return sum(n for value, n in counts.items() if value.casefold() == marker)

    def find(self, column: Series) -> Mask:
        """Return which rows of the column, or of a part of it, are labelled."""
        values, codes = _encode(column)
        marker = self.positive.casefold()
        same = np.array([value.casefold() == marker for value in values], dtype=bool)
        return same[codes]


def read_labels(column: Series, positive: str | None = None) -> LabelColumn:
    """Find out which value of a column marks the labelled positives.

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
        The value, how often it and others occur; its ``find`` gives the mask of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import read_labels
    >>> column = pd.Series(["fraud", None, "no", "fraud"])
    >>> labels = read_labels(column)
    >>> labels.sentence
    "Reading 'fraud' as labelled positive (2 rows), empty cells, 'no' as unlabelled."
    >>> labels.find(column).tolist()
    [True, False, False, True]
    """
    return read_label_counts(count_levels(column), positive, name=column.name)


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
    """Read labels from the counts of values."""
    name = f"The label column {name!r}" if name else "The label column"
    key = _find_marker(name, list(counts), positive)
    marked = {v: n for v, n in counts.items() if v.casefold() == key}
    others = {v: n for v, n in counts.items() if v.casefold() != key}
    if not others:
        only = next(iter(counts))
        refuse(f"{name} holds {only!r} in every row; some rows must be unlabelled.")
    marker = max(marked, key=lambda value: (marked[value], value))
    others = dict(sorted(others.items(), key=lambda item: (item[0] != "", -item[1])))
    return LabelColumn(marker, others, sum(marked.values()))


def require_labels(n_labelled: int, n_rows: int, column: str) -> None:
    """Refuse a label column from which nothing can be learnt."""
    if min(n_labelled, n_rows - n_labelled) < 2:
        refuse(
            f"The label column {column!r} marks {n_labelled} of {n_rows} rows; a fit needs "
            "at least 2 labelled rows (12 before the numbers mean much) and 2 unlabelled."
        )


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
