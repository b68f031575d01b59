"""Kernel matrices: products by blocks, and low-rank factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpotrf
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from probgap._core.kernels import kernel_matrix
from probgap._core.types import Array, Matrix, Rows, Vector
from probgap._device.kernel import LARGEST_FOR_SINGLE, rbf_sides

Columns = Callable[[Rows], NDArray[Any]]

# Rows of a panel, and sizes of the blocks of a mean.
_PANEL = 1024
_BLOCK, _WIDE_BLOCK = 256, 4096
# Sizes that fit the cache: of a block, of a factor in double precision, and of a tile that
# is used twice. Sums of _SHORT terms lose little in single precision.
_IN_CACHE, _BUFFER = 2**19, 2**17
_TILE = (128, 1024)
_SHORT = 256
_SEED = 20180806
_FIRST_BLOCK = 16
# Residual diagonals below this share of the diagonal are rounding, by precision.
_LEAST_REST = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
# Jitter for the block of the pivots, tried in turn until it is positive definite, in units
# of the smallest residual.
_JITTER = (0.1, 10.0, 1000.0)


def times(factor: NDArray[Any], vectors: Array, *, careful: bool = True) -> Array:
    """Multiply in double precision or, unless ``careful``, in that of the factor."""
    if not careful or factor.dtype == np.float64:
        return factor @ vectors.astype(factor.dtype, copy=False)
    parts = [part @ vectors for _, part in _in_double(factor)]
    return np.concatenate(parts)


def times_transposed(
    factor: NDArray[Any], vectors: Array, *, careful: bool = True
) -> Array:
    """Multiply the transposed factor, as precisely as :func:`times`."""
    if not careful or factor.dtype == np.float64:
        return factor.T @ vectors.astype(factor.dtype, copy=False)
    result = np.zeros((factor.shape[1], *vectors.shape[1:]))
    for rows, part in _in_double(factor):
        result += part.T @ vectors[rows]
    return result


def _in_double(factor: NDArray[Any]) -> Iterator[tuple[slice, Array]]:
    """Yield rows of a factor in double precision, in blocks that fit the cache."""
    n, rank = factor.shape
    for rows in gen_batches(n, 1 + _BUFFER // (1 + rank)):
        yield rows, factor[rows].astype(np.float64, order="C")


class BlockKernel:
    """The kernel between the rows of two samples, a block at a time.

    The exponent of an RBF kernel is one matrix product of centred samples, in double
    precision where single would lose too much.
    """

    def __init__(
        self, A: Matrix, B: Matrix, kernel: Any, params: Mapping[str, Any], dtype: Any
    ) -> None:
        self.A, self.B, self.kernel, self.params = A, B, kernel, params
        self.dtype = np.dtype(dtype)
        self._sides: tuple[NDArray[Any], NDArray[Any]] | None = None
        if kernel == "rbf" and not issparse(A) and not issparse(B):
            centre, scale = B.mean(axis=0), np.sqrt(2.0 * float(params["gamma"]))
            left, _ = rbf_sides(A, centre, scale)
            _, right = rbf_sides(B, centre, scale)
            if min(left.min(), right.min()) < -LARGEST_FOR_SINGLE:
                dtype = np.float64
            self._sides = left.astype(dtype), right.astype(dtype)

    def block(self, rows: Rows | slice, columns: Rows | slice) -> NDArray[Any]:
        """Evaluate some rows and columns."""
        if self._sides is None:
            exact = kernel_matrix(
                self.A[rows], self.B[columns], self.kernel, self.params
            )
            return exact.astype(self.dtype, copy=False)
        left, right = self._sides[0][rows], self._sides[1][columns].T
        result = np.empty((left.shape[0], right.shape[1]), self.dtype)
        # A few rows at a time, so that the exponents stay in the cache.
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


@dataclass(slots=True)
class PanelKernel:
    """The lower triangle of a kernel matrix, in panels of rows.

    Panels are stored if there is memory for them, and otherwise evaluated for each product.
    Sums over panels are in double precision.
    """

    blocks: BlockKernel
    rows: Rows
    edges: list[int]
    spare_bytes: float
    panels: list[NDArray[Any]] | None = None

    @classmethod
    def of(cls, blocks: BlockKernel, max_bytes: float) -> PanelKernel:
        """Cover all rows, and store the panels if they need at most ``max_bytes``."""
        n = blocks.A.shape[0]
        whole = cls(blocks, np.arange(n), [*range(0, n, _PANEL), n], max_bytes)
        whole.spare_bytes -= whole._bytes(n)
        if whole.spare_bytes >= 0.0:
            whole.panels = [whole._panel(k) for k in range(len(whole.edges) - 1)]
        return whole

    def _panel(self, k: int) -> NDArray[Any]:
        if self.panels is not None:
            return self.panels[k]
        start, stop = self.edges[k : k + 2]
        return self.blocks.block(self.rows[start:stop], self.rows[:stop])

    def product(self, vectors: Array, *, careful: bool = False) -> Array:
        rounded = vectors.astype(self.blocks.dtype, copy=False)
        result = np.zeros(vectors.shape)
        height, width = (_SHORT, _SHORT) if careful else _TILE
        for k, (start, stop) in enumerate(pairwise(self.edges)):
            panel = self._panel(k)
            for top in range(start, stop, height):
                here = slice(top, min(top + height, stop))
                rows = panel[top - start : here.stop - start]
                for left in range(0, start, width):
                    there = slice(left, min(left + width, start))
                    result[here] += rows[:, there] @ rounded[there]
                    result[there] += rows[:, there].T @ rounded[here]
                for left in range(start, stop, width):
                    there = slice(left, min(left + width, stop))
                    result[here] += rows[:, there] @ rounded[there]
        return result

    def restrict(self, rows: Rows) -> PanelKernel:
        edges = np.searchsorted(rows, self.edges).tolist()
        spare = self.spare_bytes - self._bytes(rows.size)
        panels = None
        if self.panels is not None and spare >= 0.0:
            panels = [
                panel.take(rows[start:stop] - first, axis=0).take(rows[:stop], axis=1)
                for panel, first, (start, stop) in zip(
                    self.panels, self.edges[:-1], pairwise(edges), strict=True
                )
            ]
        return PanelKernel(self.blocks, self.rows[rows], edges, spare, panels)

    def _bytes(self, n: int) -> float:
        return 0.5 * self.blocks.dtype.itemsize * n * (n + _PANEL)


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

    def _block(self, pivots: Rows, factor: NDArray[Any]) -> NDArray[Any]:
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

    def _keep(self, pivots: Rows, before: NDArray[Any], lower: NDArray[Any]) -> None:
        """Extend the triangle T with ``F = K[:, pivots] @ inv(T).T``, for other rows."""
        known = self.pivots.size
        triangle = np.zeros((known + pivots.size, known + pivots.size))
        triangle[:known, :known] = self.triangle
        triangle[known:, :known] = before[:, before.shape[1] - known :]
        triangle[known:, known:] = lower
        self.triangle = triangle
        self.pivots = np.append(self.pivots, pivots)
