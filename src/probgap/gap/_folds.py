"""Which fold's model has not seen a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from probgap._core.folds import Fold
from probgap._core.newton import LinearFits

Vector = NDArray[np.float64]


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

    trained: NDArray[np.bool_]
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

    def scores(self, fits: LinearFits, features: NDArray[np.float32]) -> Vector:
        """Score each row by the model of the fold that holds it out."""
        by_each = features @ fits.coef[:, 1:].astype(np.float32) + fits.intercept[1:]
        score: Vector = by_each[np.arange(self.fold.size), self.fold]
        return score
