"""RBF kernels: widths, matrices and Nystroem features."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import gen_batches

from probgap._core.defaults import DEFAULTS
from probgap._core.errors import refuse
from probgap._core.runtime import draw_rows, spread_rows
from probgap._core.types import Array, Mask, Matrix, Single, Vector

_MEDIAN_SAMPLE = 1000
_BLOCK_BYTES = 16 * 2**20
# Directions below this share of the largest eigenvalue are dropped: they are noise in
# single precision, and a ridge penalty would suppress them.
_FAINTEST = 1e-7


def median_gamma(X: Matrix) -> float:
    """Return the RBF width 1 / (2 m**2), m being the median distance of distinct rows."""
    rows = spread_rows(X.shape[0], _MEDIAN_SAMPLE)
    squared = euclidean_distances(X[rows], squared=True)
    squared = squared[~np.tri(rows.size, dtype=bool)]
    squared = squared[squared > 0.0]
    if squared.size == 0:
        return 1.0
    # A subnormal median would overflow to an infinite width.
    return float(1.0 / max(2.0 * np.median(squared), np.finfo(np.float64).tiny))


def scale_gamma(X: Matrix) -> float:
    """Return the RBF width that scikit-learn calls "scale": 1 / (n_features * variance)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            variance = float(X.multiply(X).mean()) - float(np.square(X.mean()))
        else:
            variance = float(X.var(dtype=np.float64))
    if not np.isfinite(variance):
        refuse(
            "X must hold numbers whose squares can be added up. Got larger ones; scale "
            "the features."
        )
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def rbf_gamma(gamma: float | str, X: Matrix) -> float:
    """Return the RBF width that ``gamma`` of an SVM stands for."""
    if gamma == "scale":
        return scale_gamma(X)
    return 1.0 / X.shape[1] if gamma == "auto" else float(gamma)


def as_dense(samples: Matrix) -> Array:
    """Return samples as a dense array in double precision."""
    dense = samples.toarray() if issparse(samples) else samples
    return np.asarray(dense, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class KernelFeatures:
    """Nystroem features of the RBF kernel, in single precision, a block at a time.

    ``rotation`` maps kernel values with the landmarks to features. scikit-learn's
    ``Nystroem`` would keep several copies of the features in double precision.
    """

    landmarks: Matrix
    gamma: float
    rotation: Vector

    @classmethod
    def fit(cls, samples: Matrix, n_landmarks: int, gamma: float, seed: int) -> Self:
        """Draw landmarks and find the directions that they span."""
        few = min(n_landmarks, samples.shape[0])
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.choice(samples.shape[0], few, replace=False))
        landmarks = samples[rows].astype(np.float64)
        value, vector = eigh(rbf_kernel(landmarks, gamma=gamma), check_finite=False)
        strong = value > _FAINTEST * value[-1]
        return cls(landmarks, gamma, vector[:, strong] / np.sqrt(value[strong]))

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

    def score(self, samples: Matrix, coef: Vector, dtype: Any = np.float32) -> Vector:
        """Return features times coefficients, accumulated in ``dtype``."""
        weights = (self.rotation @ coef).astype(np.float32).astype(dtype)
        score = np.empty(samples.shape[0])
        for rows, kernel in self.kernel_blocks(samples):
            score[rows] = kernel.astype(dtype, copy=False) @ weights
        return score

    def kernel_blocks(self, samples: Matrix) -> Iterator[tuple[slice, Single]]:
        """Yield kernel values with the landmarks by blocks, which reuse one buffer."""
        width = self.landmarks.shape[0]
        size = max(64, _BLOCK_BYTES // (8 * width))
        if issparse(samples) or issparse(self.landmarks):
            for rows in gen_batches(samples.shape[0], size):
                kernel = rbf_kernel(samples[rows], self.landmarks, gamma=self.gamma)
                yield rows, kernel.astype(np.float32)
            return
        # Where freed memory returns to the system at once, as on dask's workers, allocating
        # a block takes longer than filling it.
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


def default_n_landmarks(n_samples: int) -> int:
    """Return the number of landmarks for this many samples."""
    usual = DEFAULTS.landmarks_per_root * np.sqrt(n_samples)
    return int(np.clip(usual, *DEFAULTS.landmark_range))


@dataclass(frozen=True, slots=True, eq=False)
class TrainingFeatures:
    """Features of training samples, or of some of them with weights."""

    map: KernelFeatures
    values: Single
    rows: NDArray[np.intp] | slice
    weight: Vector | None


def map_training_samples(
    features: KernelFeatures,
    samples: Matrix,
    labelled: Mask,
    seed: int,
    *,
    most_values: int = DEFAULTS.most_feature_values,
) -> TrainingFeatures:
    """Return the features of all samples, or of a weighted sample that fits into memory."""
    n, most = labelled.size, max(1, most_values // features.n_components)
    if n <= most:
        values = features.transform(samples)
        return TrainingFeatures(features, values, slice(None), None)
    rows, weight = draw_rows(np.ones(n), labelled, most, seed)
    values = features.transform(samples[rows])
    return TrainingFeatures(features, values, rows, weight * (n / most))
