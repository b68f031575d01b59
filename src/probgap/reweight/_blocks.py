"""Blocks of a kernel matrix, in single precision where that is enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from probgap._core.kernels import kernel_matrix
from probgap._core.types import Matrix, Vector

Rows = NDArray[np.intp] | slice

_BLOCK = 256
_WIDE_BLOCK = 4096
_IN_CACHE = 2**19
# Exponents of the RBF kernel are differences of numbers as large as this at most, or
# single precision would not leave six digits of them.
_LARGEST_FOR_SINGLE = 8.0


class BlockKernel:
    """The kernel between the rows of two samples, a block at a time.

    The exponent of an RBF kernel is one matrix product, of samples centred at their
    mean and with their squared norms as two more features. It is taken in double
    precision where single would lose too much.

    Parameters
    ----------
    A, B : {ndarray, sparse matrix} of shape (n, n_features)
        The two samples.
    kernel : str or callable
        The kernel, as scikit-learn takes it.
    params : dict
        Its parameters.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the blocks.
    """

    def __init__(
        self,
        A: Matrix,
        B: Matrix,
        kernel: Any,
        params: Mapping[str, Any],
        dtype: Any = np.float32,
    ) -> None:
        self.A, self.B, self.kernel, self.params = A, B, kernel, params
        self.dtype = np.dtype(dtype)
        self._left: NDArray[Any] | None = None
        self._right: NDArray[Any] | None = None
        if kernel == "rbf" and not issparse(A) and not issparse(B):
            gamma = float(params["gamma"])
            centre = B.mean(axis=0)
            left = _extended(A, centre, gamma, norm_first=True)
            right = _extended(B, centre, gamma, norm_first=False)
            if min(left.min(), right.min()) < -_LARGEST_FOR_SINGLE:
                dtype = np.float64
            self._left, self._right = left.astype(dtype), right.astype(dtype)

    def block(self, rows: Rows, columns: Rows) -> NDArray[Any]:
        """Evaluate some rows and columns."""
        if self._left is None or self._right is None:
            exact = kernel_matrix(
                self.A[rows], self.B[columns], self.kernel, self.params
            )
            return exact.astype(self.dtype, copy=False)
        left, right = self._left[rows], self._right[columns].T
        result = np.empty((left.shape[0], right.shape[1]), self.dtype)
        # A few rows at a time, so that the exponents are still in the cache.
        height = 1 + _IN_CACHE // (1 + right.shape[1])
        for top in range(0, left.shape[0], height):
            few = slice(top, top + height)
            result[few] = left[few] @ right
            np.exp(result[few], out=result[few])
        return result

    def mean(self) -> Vector:
        """Average each row over all columns."""
        n, m = self.A.shape[0], self.B.shape[0]
        total = np.zeros(n)
        for rows in gen_batches(n, _BLOCK):
            for columns in gen_batches(m, _WIDE_BLOCK):
                total[rows] += self.block(rows, columns).sum(axis=1)
        return total / m


def _extended(
    X: Matrix, centre: Vector, gamma: float, *, norm_first: bool
) -> NDArray[np.float64]:
    """Add to scaled samples their norm and a one: products are exponents then."""
    scaled = np.sqrt(2.0 * gamma) * (X - centre)
    norm = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
    ones = np.ones(X.shape[0])
    return np.column_stack([norm, ones, scaled] if norm_first else [ones, norm, scaled])
