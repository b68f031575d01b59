"""Weights and repeated rows: the same rows, however they are given, are fitted as one.

A fit draws folds and bootstrap samples of rows. For a weight of 3 to do what three equal
rows do, both are first turned into the same rows in the same order: equal rows, with one
label and of one group, are gathered, and stand side by side or as one row with a weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import gen_batches

from probgap._core._sklearn import check_sample_weight
from probgap._core.checks import (
    ObservedLabels,
    fold_of_rows,
    make_splitter,
    number_alone,
    read_groups,
    require_labelled_and_unlabelled,
)
from probgap._core.errors import refuse
from probgap._core.types import Mask, Matrix, Rows, Vector

Keys = NDArray[np.uint64]

# Most rows that rows with weights are spread over.
_MOST_ROWS = 1_000_000
# With greater weights, evidence no longer has the digits to tell rates apart.
_MOST_WEIGHT = 1e9
# Repeated rows are copies of a record, not cases that happen to be equal, if this share
# of them has one label, and there are so many different rows with either label, and in all
# (or a column has at least half as many values).
_ALIKE, _FEWEST, _MANY = 0.9, 5, 100
_HASHED = 2**20  # values at a time


@dataclass(frozen=True, slots=True, eq=False)
class GatheredRows:
    """The rows that a fit sees, and those that it was given."""

    samples: Matrix
    labels: ObservedLabels
    cv: Any
    given: ObservedLabels
    # Of each row that was given the row that stands for it, -1 if its weight is 0; and of
    # each row of the fit the gathered rows that it is a part of. None: they are the same.
    back: Rows | None = None
    part_of: Rows | None = None

    def spread(self, values: Any, absent: Any) -> Any:
        """Return values of the rows that were given; ``absent`` are those of weight 0."""
        assert self.back is not None
        if self.part_of is not None and values.dtype.kind == "f":
            mean = np.bincount(self.part_of, values) / np.bincount(self.part_of)
            values = mean[self.part_of]
        found = values[self.back]
        found[self.back < 0] = absent
        return found


def know_rows(
    labels: ObservedLabels, samples: Matrix, sample_weight: Any, groups: Any
) -> ObservedLabels:
    """Add weights and groups, which are checked; rows without a group stand alone."""
    if sample_weight is not None:
        weight = check_sample_weight(
            sample_weight, samples, dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            refuse("sample_weight must hold a number above zero. Got zeros alone.")
        if weight.max() > _MOST_WEIGHT:
            limit = f"sample_weight must be at most {_MOST_WEIGHT:g} for each row."
            refuse(f"{limit} Got {weight.max():g}.")
        labels = replace(labels, weight=weight)
    if groups is None:
        return labels
    return replace(labels, group=read_groups(groups, labels.labelled.size))


def gather_rows(
    samples: Matrix,
    labels: ObservedLabels,
    cv: Any,
    *,
    repeat: bool,
    in_order: bool = False,
) -> GatheredRows:
    """Gather equal rows. Without weights, and if no two are equal, nothing changes.

    Copies of a record become one row with a weight. In tables of few values cases happen
    to be equal, with different labels among them: these stay rows of their own, and one with
    a weight becomes several. So do all with ``repeat``, for learners that take no weights;
    ``in_order`` then leaves them in the order given. Folds of a splitter stay what they are.
    """
    n_rows, weight = labels.labelled.size, labels.weight
    weight = np.ones(n_rows) if weight is None else weight
    used = np.flatnonzero(weight)
    present = row_keys(samples)[used]
    key, fold = _add_labels(present, labels, used), None
    same = bool((weight[used] == 1.0).all())
    same &= in_order or np.unique(key).size == used.size
    own_folds = not (cv is None or isinstance(cv, int | np.integer))
    if own_folds and not (same and used.size == n_rows and labels.group is None):
        splitter = make_splitter(cv, labels, np.random.default_rng())
        fold = fold_of_rows(splitter, samples, labels)
        key = _mix(key + _mix(fold[used].astype(np.uint64)))
    elif same and used.size == n_rows:
        return GatheredRows(samples, take(labels, slice(None)), cv, labels)
    if same or in_order:
        key = np.arange(used.size, dtype=np.uint64)
    how: Any = dict.fromkeys(("return_index", "return_inverse", "return_counts"), True)
    _, first, cell, count = np.unique(key, **how)
    total = np.bincount(cell, weight[used]).astype(np.float64)
    parts = np.ones(total.size, dtype=np.intp)
    if repeat:
        parts = _whole(total)
    elif labels.group is None and not same:
        known = present[first], labels.labelled[used[first]], total
        if not _are_copies(samples[used[first]], *known):
            unit = max(1.0, float(total.sum()) / _MOST_ROWS)
            parts = np.ceil(total / unit).astype(np.intp)
    rows, each = used[np.repeat(first, parts)], np.repeat(total / parts, parts)
    # The rows of a cell take its parts in turn.
    rank = np.empty(cell.size, dtype=np.intp)
    rank[np.argsort(cell, kind="stable")] = np.arange(cell.size)
    rank -= (np.cumsum(count) - count)[cell]
    back = np.full(n_rows, -1, dtype=np.intp)
    back[used] = (np.cumsum(parts) - parts)[cell] + rank * parts[cell] // count[cell]
    known_rows = take(labels, rows, None if (each == 1.0).all() else each)
    require_labelled_and_unlabelled(known_rows)
    even = bool((parts == count).all())
    part_of = None if even else np.repeat(np.arange(parts.size), parts)
    cv = cv if fold is None else PredefinedSplit(fold[rows])
    return GatheredRows(samples[rows], known_rows, cv, labels, back, part_of)


def _add_labels(key: Keys, labels: ObservedLabels, rows: Rows) -> Keys:
    """Return numbers for rows that depend on all that is known of them, too."""
    looked = () if labels.looked is None else labels.looked.factors
    codes = [labels.labelled, labels.negative, labels.group]
    for kind in (*codes, *(factor.code for factor in looked)):
        if kind is not None:
            key = _mix(key + _mix(kind[rows].astype(np.uint64)))
    return key


def _whole(total: Vector) -> Rows:
    """Return how often to repeat each row."""
    parts = total.astype(np.intp)
    if (parts != total).any():
        odd = total[parts != total][0]
        refuse(
            "sample_weight must hold whole numbers for a gap_estimator that is no "
            f"MixedGapEstimator: its rows are repeated. Got {odd:g}."
        )
    return parts


def take(
    labels: ObservedLabels, rows: Any, weight: Vector | None = None
) -> ObservedLabels:
    """Return what is known of some rows; those without a group get one of their own."""
    group, negative = labels.group, labels.negative
    group = None if group is None else number_alone(group[rows])
    negative = None if negative is None else negative[rows]
    looked = None if labels.looked is None else labels.looked.take(rows)
    known: Any = {"negative": negative, "weight": weight, "group": group}
    known["looked"] = looked
    return replace(labels, labelled=labels.labelled[rows], **known)


def _are_copies(samples: Matrix, key: Keys, labelled: Mask, total: Vector) -> bool:
    """Return whether equal rows, of which each has a total weight, are copies of records."""
    _, first, at = np.unique(key, return_index=True, return_inverse=True)
    sums = np.stack([np.bincount(at, total * kind) for kind in (labelled, ~labelled)])
    one_label, repeated = (sums > 0.0).sum(axis=0) == 1, sums.sum(axis=0) > 1.0
    repeated |= ~one_label
    several = sums @ repeated
    alike = (sums @ (one_label & repeated)) >= _ALIKE * several
    some = samples[first[:1000]]
    n_values = (np.unique(column).size for column in (() if issparse(some) else some.T))
    many = first.size >= _MANY or 2 * max(n_values, default=1) >= first.size
    return bool(alike.all() and many and (sums > 0.0).sum(axis=1).min() >= _FEWEST)


def row_keys(samples: Matrix) -> Keys:
    """Return a number for each row that depends on its values, dense or sparse, alone."""
    salt = _mix(np.arange(samples.shape[1], dtype=np.uint64))
    if issparse(samples):
        parts = _hash(samples.data, salt[samples.indices])
        total = np.append(np.uint64(0), np.cumsum(parts, dtype=np.uint64))
        return total[samples.indptr[1:]] - total[samples.indptr[:-1]]
    size = max(1, _HASHED // samples.shape[1])
    blocks = (samples[rows] for rows in gen_batches(len(samples), size))
    keys = [_hash(block, salt).sum(axis=1, dtype=np.uint64) for block in blocks]
    return np.concatenate(keys)


def _hash(values: ArrayLike, salt: Keys) -> Keys:
    numbers = np.array(values, dtype=np.float64)
    return np.where(numbers == 0.0, np.uint64(0), _mix(numbers.view(np.uint64) + salt))


def _mix(bits: Keys) -> Keys:
    """Return numbers whose every bit depends on all bits of those given (splitmix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
