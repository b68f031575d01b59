"""Which rows of a table are labelled positive."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.defaults import WORDS_FOR_NO
from probgap._core.errors import InvalidInputError, refuse
from probgap._core.output import plural
from probgap._core.types import Mask
from probgap.tables._cells import Series, listed, pc, pd, to_cells, to_levels

_ALIASES = {"1": "true", "true": "1", "0": "false", "false": "0"}
_MORE = "more values"
# Beside a cell that says so, these say that nobody checked; another may be an answer.
_UNCHECKED = WORDS_FOR_NO - {
    "no",
    "n",
    "not",
    "negative",
    "neg",
    "false",
    "f",
    "0",
    "-1",
}
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
    kinds : dict of str to int
        The values that mark labelled positives, and how often each occurs.
    unlabelled : dict of str to int
        The values taken as unlabelled and how often each occurs; "" is an empty cell.
    negatives : dict of str to int
        The value of rows that were checked and found negative, if one was named.
    """

    kinds: dict[str, int]
    unlabelled: dict[str, int]
    negatives: dict[str, int]

    @property
    def positive(self) -> str:
        """The value that marks labelled positives, or all of them: "card or identity"."""
        return " or ".join(self.kinds)

    @property
    def n_labelled(self) -> int:
        """How many rows are labelled."""
        return sum(self.kinds.values())

    @property
    def sentence(self) -> str:
        """How the values are read, in words."""
        parts = [f"{_counted(self.kinds)} as labelled positive"]
        if self.negatives:
            parts.append(f"{_counted(self.negatives)} as checked and negative")
        if self.unlabelled:
            parts.append(f"{listed(self.unlabelled, _MORE)} as unlabelled")
        words = f"Reading {', '.join(parts)}."
        said = [v for v in self.unlabelled if v.casefold() not in _UNCHECKED]
        if self.negatives or len(said) != 1 or len(self.unlabelled) == 1:
            return words
        return (
            f"{words} If {said[0]!r} means checked and found negative, fit with --negative "
            f"{shlex.quote(said[0])} (neg_label= in Python)."
        )

    @property
    def values(self) -> tuple[Any, Any]:
        """The two values that a model predicts: negative and positive."""
        word, no = self.positive.strip(), next(iter(self.negatives), None)
        if word.lower() in ("true", "false"):
            return word.lower() != "true", word.lower() == "true"
        with suppress(ValueError):
            if float(word) == 1.0:
                return (0 if no is None else int(float(no))), 1
        return no or _OPPOSITES.get(word, f"not {self.positive}"), self.positive

    def count(self, counts: dict[str, int]) -> int:
        """Return how many rows are labelled, by the counts of their values.

        Parameters
        ----------
        counts : dict of str to int
            How often each value occurs.

        Returns
        -------
        int
            Number of labelled rows.
        """
        keys = {kind.casefold() for kind in self.kinds}
        return sum(n for value, n in counts.items() if value.casefold() in keys)

    def find(self, column: Series) -> Mask:
        """Return which rows of the column, or of a part of it, are labelled.

        Parameters
        ----------
        column : Series
            The column, or a part of it.

        Returns
        -------
        ndarray of shape (n_rows,)
            Mask of the labelled rows.
        """
        return self.find_kinds(column) != ""

    def find_kinds(self, column: Series) -> NDArray[Any]:
        """Return the value that marks each labelled row, and "" of the others.

        Parameters
        ----------
        column : Series
            The column, or a part of it.

        Returns
        -------
        ndarray of shape (n_rows,)
            Values as text.
        """
        return _spelt_as(column, self.kinds)

    def find_negatives(self, column: Series) -> Mask:
        """Return which rows were checked and found negative.

        Parameters
        ----------
        column : Series
            The column, or a part of it.

        Returns
        -------
        ndarray of shape (n_rows,)
            Mask of these rows.
        """
        return _spelt_as(column, self.negatives) != ""


def _counted(values: dict[str, int]) -> str:
    """Return values with how often each occurs."""
    return ", ".join(f"{value!r} ({plural(n, 'row')})" for value, n in values.items())


def _spelt_as(column: Series, known: Iterable[str]) -> NDArray[Any]:
    """Return each cell as one of the known values spells it; "" if it is none of them."""
    values, codes = _encode(column)
    spelt = {value.casefold(): value for value in known}
    found = [spelt.get(value.casefold(), "") for value in values]
    return np.array(found, dtype=object)[codes]


def read_labels(
    column: Series,
    positive: str | Sequence[str] | None = None,
    negative: str | None = None,
) -> LabelColumn:
    """Find out which value of a column marks the labelled positives.

    Case does not matter, and 1, 1.0 and "1" are the same. Without ``positive``, the
    column must hold one value besides those that mean unlabelled: empty or missing, 0,
    -1, false, f, no, n, not, negative, neg, u, unlabelled, unknown, none, null, na,
    n/a, nan, missing, other, rest, unchecked, unverified, untested. That one value
    marks the positives. Between two others this function does not guess: it raises
    ``InvalidInputError``, as it does if no row or every row is labelled.

    Rows that somebody checked and found negative are told from those that nobody checked
    only if ``negative`` names their value: beside empty cells "no" is unlabelled without
    it, and ``sentence`` says so.

    Parameters
    ----------
    column : Series
        The label column.
    positive : str or sequence of str, default=None
        The value that marks a labelled positive, or several that do; every other is
        unlabelled.
    negative : str, default=None
        The value that marks a row that was checked and is not positive.

    Returns
    -------
    LabelColumn
        The values, how often they and others occur; its ``find`` gives the mask of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import read_labels
    >>> column = pd.Series(["card", None, "no", "identity"])
    >>> labels = read_labels(column, ["card", "identity"], "no")
    >>> print(labels.sentence)
    Reading 'card' (1 row), 'identity' (1 row) as labelled positive, 'no' (1 row) as checked and negative, empty cells as unlabelled.
    >>> labels.find(column).tolist()
    [True, False, False, True]
    """
    counts = count_levels(column)
    return read_label_counts(counts, positive, negative, name=column.name)


def count_levels(column: Series) -> dict[str, int]:
    """Count the values of a label column, or of a part of it; "" is an empty cell."""
    values, codes = _encode(column)
    counts = np.bincount(codes, minlength=len(values))
    return dict(zip(values, counts.tolist(), strict=True))


def _encode(column: Series) -> tuple[list[str], NDArray[np.intp]]:
    encoded = pc.dictionary_encode(pc.fill_null(to_levels(to_cells(column)), ""))
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def read_label_counts(
    counts: dict[str, int],
    positive: str | Sequence[str] | None = None,
    negative: str | None = None,
    *,
    name: object = None,
) -> LabelColumn:
    """Read labels from the counts of values."""
    name = f"The label column {name!r}" if name else "The label column"
    negatives: dict[str, int] = {}
    others = counts
    if negative is not None:
        key = _find_value(name, list(counts), negative, "negative", "--negative")
        negatives, others = _part(counts, key)
    given = [positive] if positive is None or isinstance(positive, str) else positive
    kinds: dict[str, int] = {}
    for each in dict.fromkeys(given):
        if each is not None and negative is not None and each.strip().casefold() == key:
            refuse(
                "negative (--negative) must not be a value of positive (--positive). "
                f"Got {negative!r} for both."
            )
        found, others = _part(others, _find_marker(name, list(others), each))
        kinds |= found
    if not others and not negatives:
        only = next(iter(counts))
        refuse(f"{name} holds {only!r} in every row; some rows must be unlabelled.")
    others = dict(sorted(others.items(), key=lambda item: (item[0] != "", -item[1])))
    return LabelColumn(kinds, others, negatives)


def _part(counts: dict[str, int], key: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the count of a value, in its most frequent spelling, and those of others."""
    same = {value: n for value, n in counts.items() if value.casefold() == key}
    usual = max(same, key=lambda value: (same[value], value))
    others = {value: n for value, n in counts.items() if value not in same}
    return {usual: sum(same.values())}, others


def require_labels(n_labelled: int, n_rows: int, column: str) -> None:
    """Refuse a label column from which nothing can be learnt."""
    if min(n_labelled, n_rows - n_labelled) < 2:
        refuse(
            f"The label column {column!r} marks {n_labelled} of {n_rows} rows; a fit needs "
            "at least 2 labelled rows (12 before the numbers mean much) and 2 unlabelled."
        )


def _find_value(
    name: str, values: list[str], given: str, parameter: str, option: str
) -> str:
    """Return a value that the user gave, in lower case, or refuse it."""
    keys = {value.casefold() for value in values}
    key = _encode(pd.Series([str(given)]))[0][0].casefold()
    if not key:
        rule = f"{parameter} ({option}) must be a value, not an empty cell."
        refuse(f"{rule} Got {given!r}.")
    for each in (key, _ALIASES.get(key, key)):
        if each in keys:
            return each
    return refuse(
        f"{name} never holds {given!r}, the value of {parameter} ({option}); it "
        f"holds {listed(values, _MORE)}."
    )


def _find_marker(name: str, values: list[str], positive: str | None) -> str:
    """Return the value, in lower case, that marks a positive."""
    if positive is not None:
        return _find_value(name, values, positive, "positive", "--positive")
    keys = {value.casefold(): value for value in values}
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
