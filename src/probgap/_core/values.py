"""A number for each row, and the summaries that stages ask for.

They do not ask where the numbers are. Here they are held in memory, or they may be
parts on other machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from probgap._core.kernels import spread_rows
from probgap._core.losses import in_standard_errors

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


class RowValues(Protocol):
    """A number for each row, beside whether the row is labelled."""

    def map(self, function: Callable[..., Vector], *others: Self) -> Self:
        """Apply ``function(values, labelled, *values of others)``, row by row."""
        ...

    def count(self, *, labelled: bool) -> int:
        """Count the rows that are labelled, or those that are not."""
        ...

    def count_at_most(self, value: float, *, labelled: bool) -> int:
        """Count those of them whose number is at most the given one."""
        ...

    def quantile(self, q: float, *, labelled: bool) -> float:
        """Give a quantile of their numbers, as numpy defines it."""
        ...

    def mean(self, *, labelled: bool) -> float:
        """Give the mean of their numbers."""
        ...

    def total(self, *, labelled: bool) -> float:
        """Give the sum of their numbers."""
        ...

    def variance(self, *, labelled: bool) -> float:
        """Give the variance of their numbers."""
        ...

    def least(self, few: int, *, labelled: bool) -> Vector:
        """Give their least numbers, as many as asked for if there are so many."""
        ...

    def spread(self, most: int, *, labelled: bool) -> Vector:
        """Give the numbers of all of them, or of so many, spread over their order."""
        ...

    def frequency(self) -> float:
        """Give the share of the labelled rows, each with the weight that it has."""
        ...

    def in_standard_errors(self) -> float:
        """Give the mean over all rows as a multiple of its standard error."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldValues:
    """Numbers of rows, held in memory.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        The number of each row.
    labelled : ndarray of shape (n_rows,)
        Whether the row is labelled.
    weight : ndarray of shape (n_rows,) or None
        How many samples each row stands for; None for one each.
    """

    values: Vector
    labelled: Mask
    weight: Vector | None = None

    def map(self, function: Callable[..., Vector], *others: Self) -> HeldValues:
        found = function(self.values, self.labelled, *(o.values for o in others))
        return HeldValues(found, self.labelled, self.weight)

    def of(self, *, labelled: bool) -> Vector:
        """Give the numbers of labelled or of unlabelled rows."""
        return self.values[self.labelled if labelled else ~self.labelled]

    def count(self, *, labelled: bool) -> int:
        return int(np.count_nonzero(self.labelled == labelled))

    def count_at_most(self, value: float, *, labelled: bool) -> int:
        return int(np.count_nonzero(self.of(labelled=labelled) <= value))

    def quantile(self, q: float, *, labelled: bool) -> float:
        return float(np.quantile(self.of(labelled=labelled), q))

    def mean(self, *, labelled: bool) -> float:
        return float(self.of(labelled=labelled).mean())

    def total(self, *, labelled: bool) -> float:
        return float(self.of(labelled=labelled).sum())

    def variance(self, *, labelled: bool) -> float:
        return float(self.of(labelled=labelled).var())

    def least(self, few: int, *, labelled: bool) -> Vector:
        return least_of(self.of(labelled=labelled), few)

    def spread(self, most: int, *, labelled: bool) -> Vector:
        values = self.of(labelled=labelled)
        return values[spread_rows(values.size, min(values.size, most))]

    def frequency(self) -> float:
        return float(np.average(self.labelled, weights=self.weight))

    def in_standard_errors(self) -> float:
        return in_standard_errors(self.values, self.weight)


def least_of(values: Vector, few: int) -> Vector:
    """Give the least of some numbers, in no order."""
    few = min(few, values.size)
    return np.partition(values, few - 1)[:few]


def difference(one: Vector, labelled: Mask, other: Vector) -> Vector:
    """Give by how much numbers of rows exceed others: for ``map``."""
    del labelled
    return one - other
