"""Rows that linear models are fitted on: sums over them, and a few of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

Vector = NDArray[np.float64]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Features = NDArray[np.float32]
Models = tuple[int | None, ...]

_BLOCK_BYTES = 8 * 2**20


class RowLoss(Protocol):
    """A loss of each row, given its score and a level that all rows share.

    ``target`` is what the rows are to be: one column, beside one column of scores for
    each model.
    """

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, Array | None]:
        """Give it, and its derivatives by the score and by the level, if it has one."""
        ...

    def curvatures(
        self, target: Vector, score: Vector, level: float, *, safe: bool
    ) -> tuple[Vector, Vector, Vector]:
        """Give second derivatives: by the score, by both, by the level.

        ``safe`` asks for ones that make a positive semidefinite matrix.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Some rows: features, what they are to be, what they count for, and folds.

    ``trained`` says which rows the model of each fold is fitted on.
    """

    features: NDArray[Any]
    target: Vector
    weight: Vector
    trained: Mask | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """The sum of losses over the rows of a block, and its derivatives, for some models.

    ``models`` names each by the fold that it is fitted for; None is the one for all rows.
    """

    loss: RowLoss
    parameters: Array
    models: Models

    def __call__(self, block: RowBlock) -> tuple[Vector, Array]:
        """Go over the rows once, for the models of all columns."""
        coef = self.parameters[:-2].astype(block.features.dtype)
        intercept, level = self.parameters[-2], self.parameters[-1]
        score = (block.features @ coef).astype(np.float64) + intercept
        counts = block.weight[:, None] * self._trained(block)
        losses, by_score, by_level = self.loss.slopes(
            block.target[:, None], score, level
        )
        value = np.einsum("ij,ij->j", losses, counts)
        slope = np.zeros_like(self.parameters)
        by_score *= counts
        slope[:-2] = block.features.T @ by_score.astype(block.features.dtype)
        slope[-2] = by_score.sum(axis=0)
        if by_level is not None:
            slope[-1] = np.einsum("ij,ij->j", by_level, counts)
        return value, slope

    def _trained(self, block: RowBlock) -> Mask:
        trained = np.ones((block.target.size, len(self.models)), dtype=bool)
        for column, fold in enumerate(self.models):
            if fold is not None and block.trained is not None:
                trained[:, column] = block.trained[:, fold]
        return trained


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows whose features are held in memory.

    Attributes
    ----------
    features : ndarray of shape (n_rows, n_features)
        In single precision.
    target : ndarray of shape (n_rows,)
        What the loss compares scores with.
    weight : ndarray of shape (n_rows,) or None
        What each row counts for; None for one each.
    trained : ndarray of shape (n_rows, n_folds) or None
        The rows that the model of each fold is fitted on.
    """

    features: Features
    target: Vector
    weight: Vector | None = None
    trained: Mask | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.features.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return 0 if self.trained is None else self.trained.shape[1]

    def add_slopes(self, slopes: Slopes, value: Vector, slope: Array) -> None:
        """Add value and derivatives of the sum of losses over all rows."""
        n, r = self.features.shape
        for rows in gen_batches(n, max(256, _BLOCK_BYTES // (4 * r))):
            block_value, block_slope = slopes(self.block(rows))
            value += block_value
            slope += block_slope

    def spread(self, fold: int | None, most: int) -> tuple[RowBlock, int]:
        """Return the rows a fold's model is fitted on, and their number.

        If there are more than twice ``most`` of them, so many, spread evenly.
        """
        if fold is None or self.trained is None:
            rows = np.arange(self.n_rows)
        else:
            rows = np.flatnonzero(self.trained[:, fold])
        n = rows.size
        if n > 2 * most:
            rows = rows[np.linspace(0, n - 1, most).astype(np.intp)]
        some = slice(None) if rows.size == self.n_rows else rows
        return self.block(some), n

    def left_out(self, fold: int) -> RowBlock:
        """Return the rows that a fold's model is not fitted on."""
        assert self.trained is not None  # or there would be no fold
        return self.block(np.flatnonzero(~self.trained[:, fold]))

    def block(self, rows: NDArray[np.intp] | slice) -> RowBlock:
        """Give some of the rows."""
        features = self.features[rows]
        return RowBlock(
            features,
            self.target[rows],
            np.ones(features.shape[0]) if self.weight is None else self.weight[rows],
            None if self.trained is None else self.trained[rows],
        )
