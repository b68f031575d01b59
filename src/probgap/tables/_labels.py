"""Which rows of a table are labelled positive."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from probgap._core.defaults import WORDS_FOR_UNLABELLED
from probgap._core.errors import InvalidInputError
from probgap.tables._cells import to_cells, to_levels
from probgap.tables._optional import Series, load

_UNLABELLED = WORDS_FOR_UNLABELLED | {"", "0", "-1", "f"}
_ALIASES = {"1": "true", "true": "1", "0": "false", "false": "0"}
_SHOWN = 6


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
        What was taken as what, in words.
    """

    labelled: NDArray[np.bool_]
    positive: str
    unlabelled: dict[str, int]
    n_labelled: int
    sentence: str


def read_labels(column: Series, positive: str | None = None) -> LabelColumn:
    """Find the labelled positives in a column.

    Upper and lower case are one, and so are 1, 1.0 and "1". Without ``positive``, the
    column must hold one value besides those that mean unlabelled: empty or missing, 0,
    -1, false, f, no, n, not, negative, neg, u, unlabelled, unknown, none, null, na,
    n/a, nan, missing, other, rest, unchecked, unverified, untested. That one value
    marks the positives. Between two others this function does not guess.

    Parameters
    ----------
    column : Series
        The label column.
    positive : str, default=None
        The value that marks a labelled positive; every other is unlabelled.

    Returns
    -------
    LabelColumn
        The mask of labelled rows, and what was taken as what.

    Raises
    ------
    InvalidInputError
        If it does not show which value marks a positive, if no row has it, or if all
        rows do.

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
    return replace(found, labelled=is_level(column, found.positive))


def count_levels(column: Series) -> dict[str, int]:
    """Count the values of a label column, as :func:`read_labels` tells them apart.

    Parameters
    ----------
    column : Series
        The label column, or a part of it.

    Returns
    -------
    dict of str to int
        How often each value occurs; "" is an empty cell.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import count_levels
    >>> count_levels(pd.Series([1.0, None, 1.0]))
    {'1': 2, '': 1}
    """
    values, codes = _encode(column)
    counts = np.bincount(codes, minlength=len(values))
    return dict(zip(values, counts.tolist(), strict=True))


def is_level(column: Series, marker: str) -> NDArray[np.bool_]:
    """Say which rows of a label column have a value, as :func:`read_labels` reads it.

    Parameters
    ----------
    column : Series
        The label column, or a part of it.
    marker : str
        The value that marks a labelled positive.

    Returns
    -------
    ndarray of shape (n_rows,)
        True where a row has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import is_level
    >>> is_level(pd.Series(["Yes", None, "no"]), "yes").tolist()
    [True, False, False]
    """
    values, codes = _encode(column)
    same = np.array([v.casefold() == marker.casefold() for v in values], dtype=bool)
    return same[codes] if len(codes) else np.zeros(0, dtype=bool)


def _encode(column: Series) -> tuple[list[str], NDArray[np.intp]]:
    pc = load("pyarrow.compute")
    levels = pc.fill_null(to_levels(to_cells(column)), "")
    encoded = pc.dictionary_encode(levels)
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def read_label_counts(
    named: dict[str, int], positive: str | None = None, *, name: object = None
) -> LabelColumn:
    """Find out which value marks the labelled positives, from how often each occurs.

    Parameters
    ----------
    named : dict of str to int
        How often each value occurs, as :func:`count_levels` gives it.
    positive : str, default=None
        The value that marks a labelled positive, as in :func:`read_labels`.
    name : object, default=None
        What the column is called.

    Returns
    -------
    LabelColumn
        What was taken as what; its mask of rows is empty.

    Examples
    --------
    >>> from probgap.tables import read_label_counts
    >>> read_label_counts({"yes": 3, "": 9}).n_labelled
    3
    """
    name = f"The label column {name!r}" if name else "The label column"
    values, counts = list(named), list(named.values())
    keys = [value.casefold() for value in values]
    if positive is None:
        key = _only_marker(name, values, keys)
    else:
        key = _named_marker(name, values, keys, str(positive))
    if all(each == key for each in keys):
        msg = (
            f"{name} must leave some rows unlabelled. Got {values[0]!r} in all of them."
        )
        raise InvalidInputError(msg)
    marker = max(
        (int(count), value)
        for count, value, each in zip(counts, values, keys, strict=True)
        if each == key
    )[1]
    others = {
        value: int(count)
        for value, count, each in zip(values, counts, keys, strict=True)
        if each != key
    }
    others = dict(sorted(others.items(), key=lambda item: (item[0] != "", -item[1])))
    n_labelled = sum(named.values()) - sum(others.values())
    sentence = (
        f"Reading {marker!r} as labelled positive ({n_labelled} "
        f"row{'s' if n_labelled != 1 else ''}), {_listed(list(others))} as unlabelled."
    )
    none = np.zeros(0, dtype=bool)
    return LabelColumn(none, marker, others, n_labelled, sentence)


def _only_marker(name: str, values: list[str], keys: list[str]) -> str:
    markers = {
        key: value
        for key, value in zip(keys, values, strict=True)
        if key not in _UNLABELLED
    }
    if len(markers) == 1:
        return next(iter(markers))
    if not markers:
        msg = (
            f"{name} must mark some rows as positive. Got {_listed(values)} alone, "
            "taken as unlabelled; if one of them marks the known positives, name it "
            "with --positive (positive= in Python)."
        )
        if not any(values):
            msg = f"{name} must mark some rows as positive. Got empty cells alone."
    else:
        msg = (
            f"{name} must hold one value besides those for unlabelled. Got "
            f"{_listed(list(markers.values()))}; say which one marks the known "
            "positives with --positive (positive= in Python)."
        )
    raise InvalidInputError(msg)


def _named_marker(name: str, values: list[str], keys: list[str], positive: str) -> str:
    pa = load("pyarrow")
    wanted = to_levels(pa.array([positive], pa.large_string()))[0].as_py()
    key = (wanted or "").casefold()
    if not key:
        msg = f"positive (--positive) must be a value, not an empty cell. Got {positive!r}."
        raise InvalidInputError(msg)
    for each in (key, _ALIASES.get(key, key)):
        if each in keys:
            return each
    msg = (
        f"{name} must hold the value that positive (--positive) names. Got {_listed(values)}, "
        f"but never {positive!r}."
    )
    raise InvalidInputError(msg)


def _listed(values: list[str]) -> str:
    shown = [_quoted(value) for value in values[:_SHOWN]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {more} more values" if more else "")


def _quoted(value: str) -> str:
    if not value:
        return "empty cells"
    return repr(value if len(value) <= 40 else value[:37] + "...")
