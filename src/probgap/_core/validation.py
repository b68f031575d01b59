"""Cross-validation without true labels: folds, samples of rows, and scores."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from probgap._core.checks import ObservedLabels, require_labelled_and_unlabelled
from probgap._core.errors import InvalidInputError
from probgap._core.runtime import draw_seed
from probgap._core.types import Array, Mask, Rows, Vector

Fold = tuple[Rows, Rows]

DEFAULT_FOLDS = 5
# Platt scaling needs two labelled and two unlabelled samples in each training part, which
# takes three of each in all.
_FEWEST_FOR_OUT_OF_FOLD = 3
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def make_splitter(cv: Any, labels: ObservedLabels, rng: np.random.Generator) -> Any:
    """Return a splitter that keeps the share of labelled positives in every fold.

    ``None`` means five folds, or as many as the smaller group, labelled or unlabelled, has
    samples. An integer above that raises an error.
    """
    if cv is None:
        cv = min(DEFAULT_FOLDS, smaller_group(labels.labelled))
    if isinstance(cv, RowFolds):
        require_labelled_and_unlabelled(labels, n_folds=cv.n_splits)
    if not isinstance(cv, int | np.integer):
        return check_cv(cv, labels.labelled, classifier=True)
    require_labelled_and_unlabelled(labels, n_folds=int(cv))
    return StratifiedKFold(int(cv), shuffle=True, random_state=draw_seed(rng))


class RowFolds:
    """Stratified folds that each block of a table can compute on its own.

    Of every ``n_splits`` consecutive labelled rows, one goes to each fold, in a random
    order drawn for that group of rows; likewise for the unlabelled ones. The fold of a row
    depends only on the seed and on the number of rows of its kind before it, so that
    workers need not exchange a table of folds.
    """

    def __init__(self, n_splits: int = DEFAULT_FOLDS, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"RowFolds(n_splits={self.n_splits}, random_state={self.random_state})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        del X, y, groups
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[Fold]:
        """Return the rows to train on and those held out, fold by fold."""
        del X, groups
        fold = self.fold_of(np.asarray(y, dtype=bool), 0, 0)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def fold_of(
        self, labelled: Mask, n_labelled: int, n_unlabelled: int
    ) -> NDArray[np.int8]:
        """Return the fold of each row, given how many of each kind precede the first."""
        fold = np.empty(labelled.size, dtype=np.int8)
        for kind, before in ((True, n_labelled), (False, n_unlabelled)):
            rows = np.flatnonzero(labelled == kind)
            group, place = np.divmod(before + np.arange(rows.size), self.n_splits)
            first = before // self.n_splits
            groups = np.arange(first, group[-1] + 1 if rows.size else first)
            order = np.argsort(self._keys(groups, kind=kind), axis=1)
            fold[rows] = order[group - first, place]
        return fold

    def _keys(self, groups: Rows, *, kind: bool) -> NDArray[np.uint64]:
        """Return a random number for each place of each group."""
        stream = _mix(np.array([2 * self.random_state + kind], dtype=np.uint64))
        places = np.arange(self.n_splits)
        counter = (groups[:, None] * self.n_splits + places).astype(np.uint64)
        return _mix(counter * _GOLDEN + stream)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash integers by the finaliser of SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def fold_of_rows(splitter: Any, samples: Any, labelled: Mask) -> Rows:
    """Return the fold that holds out each row; each must be held out exactly once."""
    fold, times = np.zeros((2, labelled.size), dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(samples, labelled)):
        fold[test] = k
        times[test] += 1
    if not (times == 1).all():
        msg = (
            "cv must hold out every sample exactly once. Got "
            f"{np.count_nonzero(times == 0)} of {times.size} samples never held out and "
            f"{np.count_nonzero(times > 1)} more than once."
        )
        raise InvalidInputError(msg)
    return fold


def smaller_group(labelled: Mask) -> int:
    """Count the labelled or the unlabelled samples, whichever are fewer."""
    n_labelled = int(labelled.sum())
    return min(n_labelled, labelled.size - n_labelled)


def can_hold_out(smallest: int) -> bool:
    """Return whether the smaller group is large enough for out-of-fold gaps."""
    return smallest >= _FEWEST_FOR_OUT_OF_FOLD


def spread_rows(n_rows: int, most: int) -> Rows:
    """Return all rows, or ``most`` of them, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(np.intp))


def draw_rows(weight: Vector, group: Mask, most: int, seed: int) -> tuple[Rows, Vector]:
    """Draw at most ``most`` rows; return them with weights that represent all rows.

    All rows of the group are kept if they take up no more than half. Group and rest keep
    their shares of the total weight, and the mean weight does not change.
    """
    if weight.size <= most:
        return np.arange(weight.size), weight
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(group), np.flatnonzero(~group)]
    few = min(groups[0].size, most // 2)
    sizes = [max(few, most - groups[1].size), most - few]
    drawn, weights = [], []
    for members, size in zip(groups, sizes, strict=True):
        kept = rng.choice(members, min(size, members.size), replace=False)
        drawn.append(kept)
        factor = weight[members].sum() / max(weight[kept].sum(), np.finfo(float).tiny)
        weights.append(weight[kept] * (factor * most / weight.size))
    rows = np.concatenate(drawn)
    order = np.argsort(rows)
    return rows[order], np.concatenate(weights)[order]


def observed_accuracy(labelled: Mask, predicted: Mask) -> float:
    """Return the share of samples whose prediction agrees with the observed label."""
    return float(np.mean(labelled == predicted))


def lee_liu(labelled: Mask, predicted: Mask, weight: Array | None = None) -> float:
    """Return the squared recall on labelled positives over the share predicted positive.

    It ranks classifiers as precision times recall does when labels are missing at
    random, without needing a negative.
    """
    counts = np.ones(labelled.size) if weight is None else weight
    found, known = counts[predicted & labelled].sum(), counts[labelled].sum()
    if found == 0.0:
        return 0.0
    return float((found / known) ** 2 / (counts[predicted].sum() / counts.sum()))
