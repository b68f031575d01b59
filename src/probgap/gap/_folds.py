"""Which fold's model has not seen a sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from probgap._core.features import TrainingFeatures
from probgap._core.folds import Fold
from probgap._core.newton import LinearFits
from probgap._core.rows import HeldRows, Mask, Rows
from probgap._core.values import HeldValues, RowValues

Vector = NDArray[np.float64]
Values_co = TypeVar("Values_co", bound=RowValues, covariant=True)


class LabelledRows(Rows, Protocol[Values_co]):
    """Rows whose target is their observed label, in folds that hold each out once."""

    def held_out(self, fits: LinearFits) -> Values_co:
        """Score each row by the model of the fold that holds it out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldLabelledRows(HeldRows):
    """Such rows in memory; ``fold`` is the one that holds a row out."""

    fold: NDArray[np.intp] = field(kw_only=True)

    def held_out(self, fits: LinearFits) -> HeldValues:
        """Score each row by the model of the fold that holds it out."""
        coef = fits.coef[:, 1:].astype(np.float32)
        by_each = self.features @ coef + fits.intercept[1:]
        score: Vector = by_each[np.arange(self.fold.size), self.fold]
        return HeldValues(score, self.target > 0.5, self.weight)


@dataclass(frozen=True, slots=True)
class HeldOutBy:
    """Rows by folds.

    Attributes
    ----------
    trained : ndarray of shape (n_rows, n_folds)
        The rows that the model of each fold is fitted on.
    fold : ndarray of shape (n_rows,)
        The fold that holds a row out.
    """

    trained: Mask
    fold: NDArray[np.intp]

    @classmethod
    def of(
        cls, folds: list[Fold], n_samples: int, rows: NDArray[np.intp] | slice
    ) -> Self:
        """Tabulate folds of samples, and keep some rows."""
        trained = np.zeros((n_samples, len(folds)), dtype=bool)
        fold = np.empty(n_samples, dtype=np.intp)
        for k, (train, test) in enumerate(folds):
            trained[train, k] = True
            fold[test] = k
        return cls(trained[rows], fold[rows])

    def rows(self, features: TrainingFeatures, observed: Mask) -> HeldLabelledRows:
        """Give the rows of some features, with their labels as the target."""
        return HeldLabelledRows(
            features.values,
            observed.astype(np.float64),
            features.weight,
            self.trained,
            fold=self.fold,
        )
