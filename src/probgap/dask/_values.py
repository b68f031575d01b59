"""A number for each row of a table in blocks, and its summaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.kernels import spread_rows
from probgap.dask import _quantile as quantiles
from probgap.dask import _tasks as tasks
from probgap.dask._engine import Lazy, add_up, gather, keep, lazily
from probgap.dask._table import BlockTable, split_ranks

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BlockValues:
    """Numbers in blocks, beside the table that they belong to."""

    table: BlockTable
    parts: list[Lazy]

    def kept(self) -> BlockValues:
        """Compute the numbers and keep them where they are."""
        return BlockValues(self.table, keep(self.parts))

    def map(self, function: Callable[..., Vector], *others: BlockValues) -> BlockValues:
        """Apply ``function(values, labelled, *values of others)``, row by row."""
        parts = [
            lazily(tasks.map_values, function, *block, *(o.parts[at] for o in others))
            for at, block in enumerate(self._blocks())
        ]
        return BlockValues(self.table, parts)

    def count(self, *, labelled: bool) -> int:
        """Count the rows that are labelled, or those that are not."""
        return self.table.n_labelled if labelled else self.table.n_unlabelled

    def count_at_most(self, value: float, *, labelled: bool) -> int:
        """Count those of them whose number is at most the given one."""
        parts = [
            lazily(tasks.count_at_most, *block, labelled, value)
            for block in self._blocks()
        ]
        return int(add_up(parts)[0])

    def quantile(self, q: float, *, labelled: bool) -> float:
        """Give a quantile of their numbers, as numpy defines it: exactly."""
        at = q * (self.count(labelled=labelled) - 1)
        low = int(np.floor(at))
        high = min(low + 1, self.count(labelled=labelled) - 1)
        shown = gather([lazily(quantiles.show, *b, labelled) for b in self._blocks()])
        bounds = quantiles.bracket(shown, low, high)
        found = gather(
            [lazily(quantiles.between, *b, labelled, *bounds) for b in self._blocks()]
        )
        one, next_one = (quantiles.pick(found, rank) for rank in (low, high))
        return quantiles.interpolate(one, next_one, at - low)

    def mean(self, *, labelled: bool) -> float:
        """Give the mean of their numbers."""
        return self._moments(labelled)[1]

    def variance(self, *, labelled: bool) -> float:
        """Give the variance of their numbers."""
        n, _, squares = self._moments(labelled)
        return squares / n

    def least(self, few: int, *, labelled: bool) -> Vector:
        """Give their least numbers, as many as asked for if there are so many."""
        parts = [lazily(tasks.least, *b, labelled, few) for b in self._blocks()]
        return np.sort(np.concatenate(gather(parts)))[:few]

    def frequency(self) -> float:
        """Give the share of the labelled rows."""
        return self.table.n_labelled / self.table.n_rows

    def in_standard_errors(self) -> float:
        """Give the mean over all rows as a multiple of its standard error."""
        n, mean, squares = self._moments(None)
        error = float(np.sqrt(squares)) / n
        return mean / max(error, float(np.finfo(np.float64).tiny))

    def total(self, *, labelled: bool | None = None) -> float:
        """Give the sum of their numbers, or that over all rows."""
        n, mean, _ = self._moments(labelled)
        return n * mean

    def spread(self, most: int, *, labelled: bool) -> Vector:
        """Bring the numbers of all of them here, or of so many, spread evenly."""
        n, sizes = self.count(labelled=labelled), self.table.sizes_of(labelled=labelled)
        blocks = self._blocks()
        parts = [
            lazily(tasks.some_of, *blocks[at], labelled, inside)
            for at, inside in split_ranks(spread_rows(n, min(n, most)), sizes)
        ]
        return np.concatenate(gather(parts))

    def _moments(self, labelled: bool | None) -> tuple[int, float, float]:
        parts = [lazily(tasks.moments_of, *b, labelled) for b in self._blocks()]
        return tasks.merge_moments(gather(parts))

    def _blocks(self) -> list[tuple[Lazy, Lazy]]:
        return list(zip(self.parts, self.table.marks, strict=True))
