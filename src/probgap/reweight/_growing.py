"""A low-rank factor of a kernel matrix, from some of its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf

from probgap._core.types import Vector

Columns = Callable[[NDArray[np.intp]], NDArray[Any]]

_SEED = 20180806
_FIRST_BLOCK = 16
# Residual diagonals below this share of the diagonal are rounding, by precision.
_LEAST_REST = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
# Jitter for the block of the pivots, tried in turn until it is positive definite, in units
# of the smallest residual.
_JITTER = (0.1, 10.0, 1000.0)


class GrowingFactor:
    """Randomly pivoted Cholesky in blocks: ``K = F @ F.T + R`` with R semidefinite.

    Columns are drawn in proportion to ``rest``, the diagonal of the residual R, with a
    fixed seed. R is semidefinite, so that ``|R_ij| <= sqrt(rest_i rest_j)``.
    """

    def __init__(
        self,
        columns: Columns,
        diagonal: Vector,
        dtype: Any = np.float64,
        least_rest: float | None = None,
    ) -> None:
        self._columns = columns
        self._rng = np.random.default_rng(_SEED)
        self._dtype = np.dtype(dtype)
        if least_rest is None:
            least_rest = _LEAST_REST[self._dtype] * float(diagonal.max())
        self._least_rest = least_rest
        self.rest = diagonal.copy()
        self.factor: NDArray[Any] = np.empty((diagonal.size, 0), dtype)
        self.pivots = np.empty(0, dtype=np.intp)
        self.triangle = np.empty((0, 0))
        self.exhausted = bool(self.rest.max() <= self._least_rest)

    @property
    def rank(self) -> int:
        return self.factor.shape[1]

    def of_first_rows(self, n: int, columns: Columns) -> GrowingFactor:
        """Return a factor of the first n rows in single precision, to be grown further."""
        scale = self._least_rest / _LEAST_REST[self._dtype]
        least_rest = _LEAST_REST[np.dtype(np.float32)] * scale
        part = GrowingFactor(columns, self.rest[:n], np.float32, least_rest)
        part.factor = self.factor[:n].astype(np.float32)
        return part

    def grow(self, rank: int, enough: Callable[[Vector], bool]) -> None:
        """Add columns until there are ``rank``, or until ``rest`` is small enough."""
        n = self.rest.size
        room = np.empty((n, max(rank, self.rank)), self._dtype, order="F")
        room[:, : self.rank] = self.factor
        used = self.rank
        while used < rank and not self.exhausted and not enough(self.rest):
            # Small blocks waste fewer columns, large ones are faster per column.
            size = min(max(_FIRST_BLOCK, used // 4), rank - used)
            drawn = self._rng.choice(n, size=size, p=self.rest / self.rest.sum())
            block = self._block(np.unique(drawn), room[:, :used])
            self.exhausted = (
                block.shape[1] == 0 or float(self.rest.max()) <= self._least_rest
            )
            room[:, used : used + block.shape[1]] = block
            used += block.shape[1]
        self.factor = room[:, :used]

    def _block(self, pivots: NDArray[np.intp], factor: NDArray[Any]) -> NDArray[Any]:
        """Return new columns of the factor, for some pivots."""
        block = np.asfortranarray(self._columns(pivots), dtype=self._dtype)
        block -= factor @ factor[pivots].T
        square = block[pivots].astype(np.float64)
        for share in _JITTER:
            jitter = share * self._least_rest * np.eye(pivots.size)
            lower, fault = dpotrf(square + jitter, lower=1)
            if not fault:
                divide = dtrsm if self._dtype == np.float64 else strsm
                block = divide(
                    1.0, lower, block, side=1, lower=1, trans_a=1, overwrite_b=1
                )
                self.rest -= np.einsum("ij,ij->i", block, block)
                np.maximum(self.rest, 0.0, out=self.rest)
                self._keep(pivots, factor[pivots], lower)
                return block
        # The residual is rounding, or the kernel is not positive semidefinite.
        return block[:, :0]

    def _keep(
        self, pivots: NDArray[np.intp], before: NDArray[Any], lower: NDArray[Any]
    ) -> None:
        """Extend the triangle T with ``F = K[:, pivots] @ inv(T).T``, for other rows."""
        known = self.pivots.size
        triangle = np.zeros((known + pivots.size, known + pivots.size))
        triangle[:known, :known] = self.triangle
        triangle[known:, :known] = before[:, before.shape[1] - known :]
        triangle[known:, known:] = lower
        self.triangle = triangle
        self.pivots = np.append(self.pivots, pivots)
