"""RBF kernels: widths, matrices, and Nystroem features in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels, rbf_kernel
from sklearn.utils import gen_batches

from probgap._core.defaults import DEFAULTS
from probgap._core.errors import InvalidInputError
from probgap._core.types import Matrix, Vector

_MEDIAN_SAMPLE = 1000
_BLOCK_BYTES = 64 * 2**20
_DIAGONAL_BLOCK = 64


def spread_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return all rows, or as many as that, spread evenly over their order."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(np.intp))


def median_gamma(X: Matrix) -> float:
    """Return the RBF width by the median heuristic.

    ``gamma = 1 / (2 m**2)``, where ``m`` is the median distance between distinct
    points. Of more than 1000 rows, 1000 spread evenly over their order are used, so
    the answer needs no randomness. Where all points coincide any width will do, and
    it is 1.
    """
    rows = spread_rows(X.shape[0], _MEDIAN_SAMPLE)
    squared = euclidean_distances(X[rows], squared=True)
    squared = squared[~np.tri(rows.size, dtype=bool)]
    squared = squared[squared > 0.0]
    if squared.size == 0:
        return 1.0
    # A subnormal median would overflow to an infinite width.
    return float(1.0 / max(2.0 * np.median(squared), np.finfo(np.float64).tiny))


def kernel_matrix(
    A: Matrix, B: Matrix | None, kernel: Any, params: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Evaluate a scikit-learn kernel, by name or as a callable."""
    result: NDArray[np.float64] = pairwise_kernels(A, B, metric=kernel, **params)
    return result


def kernel_diagonal(
    X: Matrix, kernel: Any, params: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Evaluate a kernel of each row with itself."""
    n = X.shape[0]
    if kernel in ("rbf", "laplacian"):
        return np.ones(n)
    diagonal = np.empty(n)
    for rows in gen_batches(n, _DIAGONAL_BLOCK):
        diagonal[rows] = np.diagonal(kernel_matrix(X[rows], None, kernel, params))
    return diagonal


def mean_kernel(
    A: Matrix, B: Matrix, kernel: Any, params: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Average each row of K(A, B) without holding more than a block of it."""
    n_target = B.shape[0]
    block = max(1, int(_BLOCK_BYTES // (8 * max(1, A.shape[0]))))
    total = np.zeros(A.shape[0])
    for rows in gen_batches(n_target, block):
        total += kernel_matrix(A, B[rows], kernel, params).sum(axis=1)
    return total / n_target


def scale_gamma(X: Matrix) -> float:
    """Return the RBF width that scikit-learn calls "scale": 1 / (n_features * variance)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            variance = float(X.multiply(X).mean()) - float(np.square(X.mean()))
        else:
            variance = float(X.var(dtype=np.float64))
    return gamma_of_variance(variance, X.shape[1])


def gamma_of_variance(variance: float, n_features: int) -> float:
    """Return that width by the variance; 1 where there is none, and any will do."""
    if not np.isfinite(variance):
        msg = (
            "X must hold numbers whose squares can be added up. Got larger ones; scale "
            "the features."
        )
        raise InvalidInputError(msg)
    return 1.0 / (n_features * variance) if variance > 0.0 else 1.0


Single = NDArray[np.float32]

_BLOCK_BYTES = 16 * 2**20
# Directions with less than this share of the largest eigenvalue are noise in single
# precision, and too faint for a ridge penalty to let through.
_FAINTEST = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class KernelFeatures:
    """Nystroem features of the RBF kernel, in single precision.

    Landmarks are drawn from the samples. Two samples' features have the product that
    their kernel value has after projection on the landmarks. scikit-learn's
    ``Nystroem`` holds several copies in double precision; here a block of rows is
    computed at a time, directions without content are dropped, and a linear model is
    applied without making the features at all.

    Attributes
    ----------
    landmarks : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        Samples that the kernel is evaluated with.
    gamma : float
        Width of the kernel.
    rotation : ndarray of shape (n_landmarks, n_components)
        From kernel values to features.
    """

    landmarks: Matrix
    gamma: float
    rotation: Vector

    @classmethod
    def fit(cls, samples: Matrix, n_landmarks: int, gamma: float, seed: int) -> Self:
        """Draw landmarks and find the directions that they span."""
        rows = draw_landmarks(samples.shape[0], n_landmarks, seed)
        return cls.spanned_by(samples[rows].astype(np.float64), gamma)

    @classmethod
    def spanned_by(cls, landmarks: Matrix, gamma: float) -> Self:
        """Find the directions that landmarks span."""
        value, vector = eigh(rbf_kernel(landmarks, gamma=gamma), check_finite=False)
        strong = value > _FAINTEST * value[-1]
        return cls(landmarks, gamma, vector[:, strong] / np.sqrt(value[strong]))

    @property
    def n_inputs(self) -> int:
        """Number of features of a sample before."""
        return int(self.landmarks.shape[1])

    @property
    def n_components(self) -> int:
        """Number of features."""
        return int(self.rotation.shape[1])

    def transform(self, samples: Matrix) -> Single:
        """Return the features of samples."""
        features = np.zeros((samples.shape[0], self.n_components), dtype=np.float32)
        rotation = self.rotation.astype(np.float32)
        for rows, kernel in self.kernel_blocks(samples):
            features[rows] = kernel @ rotation
        return features

    def score(self, samples: Matrix, coef: Vector) -> Vector:
        """Return the product of the features with coefficients, one column or several."""
        weights = (self.rotation @ coef).astype(np.float32)
        score = np.empty((samples.shape[0], *coef.shape[1:]))
        for rows, kernel in self.kernel_blocks(samples):
            score[rows] = kernel @ weights
        return score

    def kernel_blocks(
        self, samples: Matrix, block_bytes: int | None = None
    ) -> Iterator[tuple[slice, Single]]:
        """Return the kernel values with the landmarks, a block of rows at a time.

        A block is gone when the next one is asked for.
        """
        most = _BLOCK_BYTES if block_bytes is None else block_bytes
        width = self.landmarks.shape[0]
        size = max(64, most // (8 * width))
        if issparse(samples) or issparse(self.landmarks):
            for rows in gen_batches(samples.shape[0], size):
                kernel = rbf_kernel(samples[rows], self.landmarks, gamma=self.gamma)
                yield rows, kernel.astype(np.float32)
            return
        # The same memory for every block: to ask for it anew takes longer than to fill
        # it where freed memory goes back at once, as on dask's workers.
        shape = (min(size, samples.shape[0]), width)
        exponents, kernels = np.empty(shape), np.empty(shape, dtype=np.float32)
        doubled = 2.0 * self.gamma * self.landmarks.T
        squares = np.einsum("ij,ij->i", self.landmarks, self.landmarks)
        for rows in gen_batches(samples.shape[0], size):
            # Differences of squares need double precision, the exponential does not.
            block = samples[rows].astype(np.float64, copy=False)
            exponent, kernel = exponents[: len(block)], kernels[: len(block)]
            np.matmul(block, doubled, out=exponent)
            exponent -= self.gamma * np.einsum("ij,ij->i", block, block)[:, None]
            exponent -= self.gamma * squares
            np.minimum(exponent, 0.0, out=exponent)
            kernel[:] = exponent
            yield rows, np.exp(kernel, out=kernel)


def usual_landmarks(n_samples: int) -> int:
    """Return how many landmarks stand in for the kernel of so many samples."""
    usual = DEFAULTS.landmarks_per_root * np.sqrt(n_samples)
    return int(np.clip(usual, *DEFAULTS.landmark_range))


def draw_landmarks(n_samples: int, n_landmarks: int, seed: int) -> NDArray[np.intp]:
    """Draw the rows of the samples that become landmarks, in their order."""
    rng = np.random.default_rng(seed)
    few = min(n_landmarks, n_samples)
    return np.sort(rng.choice(n_samples, few, replace=False))


@dataclass(frozen=True, slots=True, eq=False)
class TrainingFeatures:
    """Features of the samples that a model is fitted on: all, or as many as fit memory.

    Attributes
    ----------
    map : KernelFeatures
        How to make such features.
    values : ndarray of shape (n_rows, n_components)
        The features.
    rows : ndarray of shape (n_rows,) or slice
        Which samples they belong to.
    weight : ndarray of shape (n_rows,) or None
        How many samples each of them stands for; None for one each.
    """

    map: KernelFeatures
    values: Single
    rows: NDArray[np.intp] | slice
    weight: Vector | None


def map_training_samples(
    features: KernelFeatures,
    samples: Matrix,
    labelled: NDArray[np.bool_],
    seed: int,
    *,
    most_values: int = DEFAULTS.most_feature_values,
) -> TrainingFeatures:
    """Return the features of all samples, or of as many as a fixed amount of memory holds.

    Labelled samples, the scarce ones, are kept as far as they take up no more than half
    of it.
    """
    most = max(1, most_values // features.n_components)
    n = labelled.size
    if n <= most:
        values = features.transform(samples)
        return TrainingFeatures(features, values, slice(None), None)
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(labelled), np.flatnonzero(~labelled)]
    few = min(groups[0].size, most // 2)
    sizes = [max(few, most - groups[1].size), most - few]
    rows, weight = [], []
    for group, size in zip(groups, sizes, strict=True):
        kept = min(size, group.size)
        rows.append(rng.choice(group, kept, replace=False))
        weight.append(np.full(kept, group.size / kept))
    order = np.argsort(np.concatenate(rows))
    chosen = np.concatenate(rows)[order]
    values = features.transform(samples[chosen])
    return TrainingFeatures(features, values, chosen, np.concatenate(weight)[order])
