"""Products with kernel matrices, computed by blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from probgap._core.kernels import kernel_matrix
from probgap._core.types import Array, Matrix, Vector

Rows = NDArray[np.intp]

# Rows of a panel, and sizes of the blocks of a mean.
_PANEL = 1024
_BLOCK, _WIDE_BLOCK = 256, 4096
# Sizes that fit the cache: of a block, of a factor in double precision, and of a tile that
# is used twice. Sums of _SHORT terms lose little in single precision.
_IN_CACHE, _BUFFER = 2**19, 2**17
_TILE = (128, 1024)
_SHORT = 256
# Exponents of the RBF kernel are differences; their terms must not exceed this, or single
# precision would leave fewer than six digits.
_LARGEST_FOR_SINGLE = 8.0


def times(factor: NDArray[Any], vectors: Array) -> Array:
    """Multiply in double precision."""
    result = np.empty((factor.shape[0], *vectors.shape[1:]))
    for rows, part in _in_double(factor):
        result[rows] = part @ vectors
    return result


def times_transposed(factor: NDArray[Any], vectors: Array) -> Array:
    """Multiply the transposed factor in double precision."""
    result = np.zeros((factor.shape[1], *vectors.shape[1:]))
    for rows, part in _in_double(factor):
        result += part.T @ vectors[rows]
    return result


def _in_double(factor: NDArray[Any]) -> Iterator[tuple[slice, Array]]:
    """Yield rows of a factor in double precision, in blocks that fit the cache."""
    n, rank = factor.shape
    if factor.dtype == np.float64:
        yield slice(0, n), factor
        return
    height = 1 + _BUFFER // (1 + rank)
    buffer = np.empty((height, rank))
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        part = buffer[: rows.stop - start]
        part[:] = factor[rows]
        yield rows, part


class BlockKernel:
    """The kernel between the rows of two samples, a block at a time.

    The exponent of an RBF kernel is one matrix product: of samples centred at the mean, with
    their squared norm and a one as two more features. It is computed in double precision
    where single would lose too much.
    """

    def __init__(
        self, A: Matrix, B: Matrix, kernel: Any, params: Mapping[str, Any], dtype: Any
    ) -> None:
        self.A, self.B, self.kernel, self.params = A, B, kernel, params
        self.dtype = np.dtype(dtype)
        self._sides: tuple[NDArray[Any], NDArray[Any]] | None = None
        if kernel == "rbf" and not issparse(A) and not issparse(B):
            centre, scale = B.mean(axis=0), np.sqrt(2.0 * float(params["gamma"]))
            sides = []
            for X, at in ((A, 0), (B, 1)):
                rows = scale * (X - centre)
                both = np.ones((X.shape[0], 2))
                both[:, at] = -0.5 * np.einsum("ij,ij->i", rows, rows)
                sides.append(np.column_stack([both, rows]))
            if min(side.min() for side in sides) < -_LARGEST_FOR_SINGLE:
                dtype = np.float64
            self._sides = sides[0].astype(dtype), sides[1].astype(dtype)

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
    def of(
        cls, blocks: BlockKernel, max_bytes: float, *, panel: int = _PANEL
    ) -> PanelKernel:
        """Cover all rows, and store the panels if they need at most ``max_bytes``."""
        n = blocks.A.shape[0]
        whole = cls(blocks, np.arange(n), [*range(0, n, panel), n], max_bytes)
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
