"""What learners learn from: rows with soft targets, in folds, all of them or a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit

from probgap._core.types import Matrix, Vector

Rows = NDArray[np.intp]

# Held-out probabilities stay this far from 0 and 1, or one part of as many as there are
# rows: a single row must not decide.
MARGIN = 1e-4
# Fewer rows than this are cross-validated in several ways: one split says too little.
FEW_ROWS = 2000
N_REPEATS = 3


class Learner(Protocol):
    """A fitted learner."""

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A learner, and what it predicts for its training rows without having seen them.

    ``partial`` are learners fitted on a part of these rows, as those are that predict the
    others. Any of them predicts new rows as training rows are predicted: what all of
    them say together would tell rows that were learnt from and others apart.
    """

    learner: Learner
    held_out: Vector
    partial: tuple[Learner, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rows to learn from, with soft targets, weights and folds.

    ``fold`` has a column for each repetition of cross-validation; ``margin`` is how far
    held-out probabilities stay from 0 and 1.
    """

    samples: Matrix
    target: Vector
    weight: Vector
    fold: Rows
    seed: int
    margin: float = MARGIN

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.target.size

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    @property
    def frequency(self) -> float:
        """Weighted mean of the targets."""
        return float(np.average(self.target, weights=self.weight))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows, in their order, and the weights with which they stand for all."""

    rows: Rows
    weight: Vector

    def inside(self, n_rows: int) -> NDArray[np.bool_]:
        """Tell for each of so many rows whether it is one of these."""
        inside = np.zeros(n_rows, dtype=bool)
        inside[self.rows] = True
        return inside


def draw_part(weight: Vector, group: NDArray[Any], most: int, seed: int) -> Part:
    """Draw at most so many of the rows that have weight.

    The group, taken as true or false, that is true is kept whole as long as it takes up
    no more than half. Those kept of a group weigh, together, their part of the whole
    group; a row weighs as much as before on average.
    """
    counted = np.flatnonzero(weight > 0.0)
    if counted.size <= most:
        return Part(counted, weight[counted])
    rng = np.random.default_rng(seed)
    first = group[counted].astype(bool)
    groups = [counted[first], counted[~first]]
    few = min(groups[0].size, most // 2)
    sizes = [max(few, most - groups[1].size), most - few]
    rows, weights = [], []
    for members, size in zip(groups, sizes, strict=True):
        kept = rng.choice(members, min(size, members.size), replace=False)
        rows.append(kept)
        stands = weight[members].sum() / max(weight[kept].sum(), np.finfo(float).tiny)
        weights.append(weight[kept] * (stands * most / counted.size))
    order = np.argsort(np.concatenate(rows))
    return Part(np.concatenate(rows)[order], np.concatenate(weights)[order])


def usual_folds(group: NDArray[Any], most: int, seed: int) -> Rows:
    """Assign rows to as many folds as the smallest group has members, up to ``most``.

    The only member of a group has a fold for itself, so that all other rows are
    predicted by models that have seen it.
    """
    counts = np.unique(group, return_counts=True)[1]
    n_folds = int(min(most, counts[counts > 1].min(initial=group.size)))
    repeats = N_REPEATS if group.size < FEW_ROWS else 1
    return draw_folds(group, n_folds, repeats, seed)


def draw_folds(group: NDArray[Any], n_folds: int, n_repeats: int, seed: int) -> Rows:
    """Assign rows to folds, each group evenly, in ``n_repeats`` different ways.

    A group of one takes a fold of its own, beyond the ``n_folds`` of the others.
    """
    rng = np.random.default_rng(seed)
    fold = np.empty((group.size, n_repeats), dtype=np.intp)
    values, counts = np.unique(group, return_counts=True)
    n_shared = n_folds if counts.max() > 1 else 0
    for repeat in range(n_repeats):
        alone = n_shared
        for value, count in zip(values, counts, strict=True):
            rows = np.flatnonzero(group == value)
            if count == 1:
                fold[rows, repeat] = alone
                alone += 1
                continue
            first = rng.integers(n_folds)
            fold[rng.permutation(rows), repeat] = (
                first + np.arange(rows.size)
            ) % n_folds
    return fold


def bounded(log_odds: Vector, margin: float) -> Vector:
    """Return log-odds of probabilities that far from 0 and 1."""
    most = float(logit(1.0 - margin))
    return np.clip(log_odds, -most, most)


def soft_log_losses(target: Vector, log_odds: Vector) -> Vector:
    """Return the cross-entropy of each soft target."""
    losses: Vector = -log_expit(log_odds) + (1.0 - target) * log_odds
    return losses


def soft_log_loss(target: Vector, log_odds: Vector, weight: Vector) -> float:
    """Return the mean cross-entropy of soft targets."""
    return float(np.average(soft_log_losses(target, log_odds), weights=weight))
