"""Share of positives among unlabelled rows, from features."""

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh
from scipy.optimize import nnls
from sklearn.metrics.pairwise import euclidean_distances

from probgap._core.kernels import scale_gamma
from probgap._core.types import Array, Mask, Matrix, Rows, Vector
from probgap.priors._result import FoundPrior, share_of_hidden

# --- TIcE -------------------------------------------------------------------------------

# As in the authors' program: folds, rounds (each starts from the label frequency of the
# last), smoothing of the label rate of a part, fewest rows of a part, most splits.
_FOLDS, _ROUNDS, _SMOOTHING, _FEWEST, _MOST_SPLITS = 5, 2, 5.0, 10, 500


def tice(X: Array, labelled: Mask, rng: Generator) -> FoundPrior:
    """Estimate the share from the most densely labelled part of a tree (TIcE).

    In any part of the feature space the share of labelled rows is at most the label
    frequency c. A tree grown on one fold seeks parts with many labels; the greatest lower
    confidence bound on the other folds is the estimate, averaged over the folds.
    """
    quarters = [np.quantile(column, (0.25, 0.5, 0.75)) for column in X.T]
    codes = np.column_stack(
        [np.searchsorted(cuts, x) for cuts, x in zip(quarters, X.T, strict=True)]
    )
    fold = rng.permutation(labelled.size) % _FOLDS
    frequency, n_splits = 0.5, 0
    for _ in range(_ROUNDS):
        found = []
        for k in range(_FOLDS):
            grown, held_out = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
            bound, splits = _search_tree(codes, labelled, grown, held_out, frequency)
            found.append(bound)
            n_splits += splits
        frequency = float(np.mean(found))
    evidence = {"frequency": frequency, "n_splits": float(n_splits)}
    return FoundPrior(share_of_hidden(frequency, labelled), evidence=evidence)


def _search_tree(
    codes: Rows, labelled: Mask, rows: Rows, others: Rows, frequency: float
) -> tuple[float, int]:
    """Return the greatest bound of the label frequency by held-out rows, and the splits.

    The tree is grown on ``rows``, where the share of labels is highest first.
    """
    delta = max(0.025, 1.0 / (1.0 + 0.004 * others.size))
    # Chebyshev: the share of labels exceeds c by more with probability delta at most.
    variance = frequency * (1.0 - frequency) * (1.0 - delta) / delta
    best, n_splits = float(labelled[others].mean()), 0

    def bound(part: Rows) -> float:
        return float(labelled[part].mean()) - float(np.sqrt(variance / part.size))

    ticket = count()  # the queue must not compare arrays
    free = np.ones(codes.shape[1], dtype=bool)
    queue = [(0.0, next(ticket), rows, others, free)]
    while queue and n_splits < _MOST_SPLITS:
        _, _, rows, others, free = heapq.heappop(queue)
        column = _choose_column(codes, labelled, rows, free)
        if column is None:
            continue
        n_splits += 1
        free = free & (np.arange(free.size) != column)
        for code in range(4):
            part = rows[codes[rows, column] == code]
            rest = others[codes[others, column] == code]
            if rest.size >= _FEWEST:
                best = max(best, bound(rest))
            # Fewer held-out rows cannot exceed the best even if all are labelled.
            fewest = variance / (1.0 - best + 1e-12) ** 2
            if part.size > _FEWEST and rest.size > max(fewest, _FEWEST):
                entry = (-bound(part), next(ticket), part, rest, free)
                heapq.heappush(queue, entry)
    return best, n_splits


def _choose_column(codes: Rows, labelled: Mask, rows: Rows, free: Mask) -> int | None:
    """Return the column whose best quarter has the highest smoothed share of labels."""
    known = labelled[rows]
    if known.all() or not known.any() or not free.any():
        return None
    columns = np.flatnonzero(free)
    place = codes[np.ix_(rows, columns)] + 4 * np.arange(columns.size)
    size = np.bincount(place.ravel(), minlength=4 * columns.size)
    found = np.bincount(place[known].ravel(), minlength=4 * columns.size)
    size, found = size.reshape(-1, 4), found.reshape(-1, 4)
    rate = (found / (size + _SMOOTHING)).max(axis=1)
    rate[(size > 0).sum(axis=1) == 1] = -1.0  # no split
    best = int(rate.argmax())
    return int(columns[best]) if rate[best] > 0.0 else None


# --- KM1, KM2 ---------------------------------------------------------------------------

# Most rows of each kind: the kernel matrix of both has 800 rows.
_MOST_ROWS = 400
_WIDTHS = np.logspace(-1.0, 1.0, 5)  # of the kernel, in median distances
_MOST_LAMBDA, _PRECISION, _FIRST = 8.0, 0.04, 1.05
_FAINTEST = 1e-7  # directions below this share of the largest eigenvalue are dropped
_SAME = 1e-7  # means of kernels that are nearer have the same distribution
_MOST_GAP = 1e-6  # largest duality gap, in squared distances of the two means


def kernel_means(
    X: Matrix, labelled: Mask, rng: Generator, *, second: bool
) -> FoundPrior:
    """Return the largest share of positives that can be removed from the unlabelled rows.

    d(lambda) is the distance of the kernel mean lambda * unlabelled + (1 - lambda) *
    labelled from those of all distributions on the rows. It is 0 up to 1 / (1 - share), then
    grows; the share is read off where its slope passes a threshold, KM1's 1 / sqrt(n) or,
    with ``second``, KM2's 0.8 * slope at 1 + 0.2 * greatest slope.
    """
    scale_gamma(X)  # raises if squares would overflow
    drawn = [
        rng.permutation(np.flatnonzero(group))[:_MOST_ROWS]
        for group in (~labelled, labelled)
    ]
    curve = DistanceCurve.of(X[np.concatenate(drawn)], drawn[0].size)
    if curve.greatest_slope < _SAME:
        return FoundPrior(
            (_MOST_LAMBDA - 1.0) / _MOST_LAMBDA, evidence={"distance": 0.0}
        )
    fewest = min(rows.size for rows in drawn)
    threshold = 1.0 / np.sqrt(fewest)
    gaps = []
    if second or threshold > 0.9 * curve.greatest_slope:
        distance, _, gap = curve.nearest(_FIRST)
        gaps.append(gap)
        slope = distance / (_FIRST - 1.0)
        threshold = 0.8 * slope + 0.2 * curve.greatest_slope
    low, high = 1.0, _MOST_LAMBDA
    while high - low > _PRECISION:
        middle = 0.5 * (low + high)
        _, slope, gap = curve.nearest(middle)
        gaps.append(gap)
        low, high = (low, middle) if slope > threshold else (middle, high)
    found = 0.5 * (low + high)
    evidence = {
        "threshold": float(threshold),
        "duality_gap": max(gaps),
        "n_rows": float(sum(rows.size for rows in drawn)),
    }
    converged = evidence["duality_gap"] <= _MOST_GAP * curve.greatest_slope**2
    return FoundPrior((found - 1.0) / found, converged=converged, evidence=evidence)


@dataclass(frozen=True, slots=True, eq=False)
class DistanceCurve:
    """d(lambda) for rows of which the first ``n_mixture`` are unlabelled."""

    features: Array  # their products are the kernel
    mixture: Vector
    component: Vector

    @classmethod
    def of(cls, rows: Matrix, n_mixture: int) -> Self:
        """Choose the kernel width at which both groups are farthest apart."""
        mixture = (np.arange(rows.shape[0]) < n_mixture) / n_mixture
        component = (mixture == 0.0) / (rows.shape[0] - n_mixture)
        squared = euclidean_distances(rows, squared=True)
        median = float(np.median(squared)) or 1.0
        kernels = [np.exp(-squared / (2.0 * median * w**2)) for w in _WIDTHS]
        apart = mixture - component
        best = max(kernels, key=lambda kernel: float(apart @ kernel @ apart))
        value, vector = eigh(best, check_finite=False)
        strong = value > _FAINTEST * value[-1]
        return cls(vector[:, strong] * np.sqrt(value[strong]), mixture, component)

    @property
    def greatest_slope(self) -> float:
        """The distance between the two kernel means, which the slope tends to."""
        return float(np.linalg.norm((self.mixture - self.component) @ self.features))

    def nearest(self, value: float) -> tuple[float, float, float]:
        """Find the distribution nearest to lambda * mixture + (1 - lambda) * component.

        Return its distance, the slope of that by lambda, and the duality gap, an upper
        bound of half the squared distance minus its minimum. Non-negative least squares
        with one more row, of ones with target 1, has the same solution up to its scale.
        The slope follows from the solution (envelope theorem).
        """
        target = value * self.mixture + (1.0 - value) * self.component
        away = self.features.T - (self.features.T @ target)[:, None]
        scale = float(np.abs(away).max())
        system = np.vstack([away / scale, np.ones(target.size)])
        found, _ = nnls(system, np.append(np.zeros(away.shape[0]), 1.0))
        point = found / found.sum()
        gradient = self.features @ (away @ point)
        squared = float(np.square(away @ point).sum())
        # How far half of it may lie above the minimum, by the linear lower bound.
        gap = float(gradient @ point - gradient.min())
        distance = float(np.sqrt(squared))
        # Where nothing is left but rounding, the distance is constant at 0.
        fall = -float(gradient @ (self.mixture - self.component))
        slope = fall / distance if distance > 1e-9 * scale else 0.0
        return distance, slope, gap
