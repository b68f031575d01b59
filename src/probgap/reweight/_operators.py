"""Kernel matrices that are multiplied with, but never written down as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Array
from probgap.reweight._blocks import BlockKernel

Rows = NDArray[np.intp]

_PANEL = 1024
# Sums of so many terms lose little in single precision.
_SHORT = 256
_BUFFER = 2**17
# Tiles that stay in the cache while they are used twice.
_TILE = (128, 1024)


class KernelOperator(Protocol):
    """A symmetric matrix: what it takes to multiply with it, and with a part of it."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def product(self, vectors: Array, *, careful: bool = False) -> Array:
        """Multiply with one vector or several, ``careful`` with less rounding."""

    def restrict(self, rows: Rows) -> KernelOperator | None:
        """Give the matrix of some rows and the same columns, if that is cheaper."""


class DenseKernel:
    """A matrix that is there as a whole."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    @property
    def n(self) -> int:
        return int(self.matrix.shape[0])

    def product(self, vectors: Array, *, careful: bool = False) -> Array:  # noqa: ARG002 (it always is)
        product: Array = self.matrix @ vectors
        return product

    def restrict(self, rows: Rows) -> None:
        """There may be no memory for a copy."""


class ThinKernel:
    """``F @ F.T`` by F, multiplied in double precision whatever F is in."""

    def __init__(self, factor: NDArray[Any]) -> None:
        self.factor = factor

    @property
    def n(self) -> int:
        return int(self.factor.shape[0])

    def product(self, vectors: Array, *, careful: bool = False) -> Array:  # noqa: ARG002 (it always is)
        return times(self.factor, times_transposed(self.factor, vectors))

    def restrict(self, rows: Rows) -> None:
        """Products with all rows are cheaper than a copy of some."""


def times(factor: NDArray[Any], vectors: Array) -> Array:
    """Multiply in double precision, without a copy of more than a part of the factor."""
    result = np.empty((factor.shape[0], *vectors.shape[1:]))
    for rows, part in _in_double(factor):
        result[rows] = part @ vectors
    return result


def times_transposed(factor: NDArray[Any], vectors: Array) -> Array:
    """Multiply the transposed factor in the same way."""
    result = np.zeros((factor.shape[1], *vectors.shape[1:]))
    for rows, part in _in_double(factor):
        result += part.T @ vectors[rows]
    return result


def _in_double(factor: NDArray[Any]) -> Iterator[tuple[slice, Array]]:
    """Give the rows of a factor in double precision, so few that the cache holds them."""
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


class PanelKernel:
    """The lower triangle of a kernel matrix, in panels of rows.

    Panels are kept if there is memory for them, and evaluated for each product if not.
    Sums over panels are in double precision.
    """

    def __init__(
        self,
        blocks: BlockKernel,
        rows: Rows,
        edges: list[int],
        spare_bytes: float,
        panels: list[NDArray[Any]] | None = None,
    ) -> None:
        self.blocks, self.rows, self.edges = blocks, rows, edges
        self.spare_bytes, self.panels = spare_bytes, panels

    @classmethod
    def of(cls, blocks: BlockKernel, max_bytes: float) -> PanelKernel:
        """Take all rows, and keep the panels if they need no more than ``max_bytes``."""
        n = blocks.A.shape[0]
        edges = [*range(0, n, _PANEL), n]
        whole = cls(blocks, np.arange(n), edges, max_bytes)
        whole.spare_bytes -= whole._bytes(n)
        if whole.spare_bytes >= 0.0:
            whole.panels = [whole._panel(k) for k in range(len(edges) - 1)]
        return whole

    @property
    def n(self) -> int:
        return int(self.rows.size)

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
