"""Kernels by name, their width, and their means in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.utils import gen_batches

from probgap._core.errors import InvalidInputError
from probgap._core.types import Matrix

_MEDIAN_SAMPLE = 1000
_BLOCK_BYTES = 64 * 2**20
_DIAGONAL_BLOCK = 64


def spread_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Give all rows, or as many as that, spread evenly over their order."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(np.intp))


def median_gamma(X: Matrix) -> float:
    """Give the RBF width by the median heuristic.

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
    """Give the RBF width that scikit-learn calls "scale": 1 / (n_features * variance)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            variance = float(X.multiply(X).mean()) - float(np.square(X.mean()))
        else:
            variance = float(X.var(dtype=np.float64))
    return gamma_of_variance(variance, X.shape[1])


def gamma_of_variance(variance: float, n_features: int) -> float:
    """Give that width by the variance; 1 where there is none, and any will do."""
    if not np.isfinite(variance):
        msg = (
            "X must hold numbers whose squares can be added up. Got larger ones; scale "
            "the features."
        )
        raise InvalidInputError(msg)
    return 1.0 / (n_features * variance) if variance > 0.0 else 1.0
