"""Rows in blocks for the solver of linear models, their features never stored.

Scores and slopes need kernel values only: coefficients are turned into those of kernel
values before a pass, and slopes back after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.features import KernelFeatures, Single
from probgap._core.newton import LinearFits
from probgap._core.rows import HeldRows, RowBlock, Slopes
from probgap.dask import _tasks as tasks
from probgap.dask._engine import Lazy, add_up, constant, lazily
from probgap.dask._table import BlockTable
from probgap.dask._values import BlockValues
from probgap.gap._resample import SomeOfEach, ranks_to_resample

Vector = NDArray[np.float64]
Array = NDArray[np.float64]

# With more rows than so many times this, a fit begins with as many, spread evenly, and
# takes the Hessian from them.
SKETCH_ROWS = 65_536
_WORTH_A_SKETCH = 4


@dataclass(slots=True, eq=False)
class BlockRows:
    """Rows whose target is their label, or some share, and whose weight is 1 or given.

    ``column`` holds a feature of each row beside those of the kernel.
    """

    table: BlockTable
    kernel: KernelFeatures
    target: BlockValues | None = None
    weight: BlockValues | None = None
    column: BlockValues | None = None
    _fetched: dict[int | None, RowBlock] = field(default_factory=dict)
    passes: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.kernel.n_components + (self.column is not None)

    @property
    def n_folds(self) -> int:
        """Number of folds; none where the target is not the label."""
        return self.table.folds.n_splits if self.target is None else 0

    def add_slopes(self, slopes: Slopes, value: Vector, slope: Array) -> None:
        """Add value and derivatives of the sum of losses over all rows."""
        self.passes += 1
        rotation, r = self.kernel.rotation, self.kernel.n_components
        outer = slopes.parameters
        inner = np.vstack([rotation @ outer[:r], outer[r:]])
        shared = (
            constant(self._bare_kernel),
            constant(replace(slopes, parameters=inner)),
        )
        parts = [
            lazily(
                tasks.add_slopes,
                samples,
                marks,
                *shared,
                self.table.folds.n_splits,
                *(_part(each, at) for each in (self.target, self.weight, self.column)),
            )
            for at, (samples, marks) in enumerate(self._blocks())
        ]
        more_value, more = add_up(parts)
        value += more_value
        L = len(rotation)
        slope += np.vstack([rotation.T @ more[:L], more[L:]])

    def spread(self, fold: int | None, most: int) -> tuple[RowBlock, int]:
        """Give the rows a fold's model is fitted on, or some, and their number."""
        n = self.table.n_seen_by(fold)
        if fold not in self._fetched:
            most = max(most, SKETCH_ROWS) if self._is_long else most
            rows = None
            if n > 2 * most:
                rows = np.linspace(0, n - 1, most).astype(np.intp)
            self._fetched[fold] = self._fetch(rows, fold)
        return self._fetched[fold], n

    def left_out(self, fold: int) -> RowBlock:
        """Give the rows that a fold's model is not fitted on."""
        return self._fetch(None, fold, held_out=True)

    def sketch(self) -> HeldRows | None:
        """Give fewer rows that stand for all, if there are very many."""
        if not self._is_long:
            return None
        some, n = self.spread(None, SKETCH_ROWS)
        weight = some.weight * (n / some.target.size)
        return HeldRows(some.features, some.target, weight)

    def held_out(self, fits: LinearFits) -> BlockValues:
        """Score each row by the model of the fold that holds it out."""
        return self._score(tasks.held_out_scores, fits)

    def blended(self, fits: LinearFits, separability: float) -> BlockValues:
        """Score each row by the model of all rows and that of its fold."""
        return self._score(tasks.blended_scores, fits, separability)

    def scores(self, fits: LinearFits) -> BlockValues:
        """Score each row by the model of all rows."""
        return self._score(tasks.scores, fits)

    def some_of_each(self, score: BlockValues, chance: BlockValues) -> SomeOfEach:
        """Bring the rows here that a resample draws from, as one machine chooses them."""
        places, stands_for = [], []
        for kind in (True, False):
            n = score.count(labelled=kind)
            ranks = ranks_to_resample(n)
            places.append(self.table.places(ranks, labelled=kind))
            stands_for.append(np.full(ranks.size, n / ranks.size))
        chosen = np.concatenate(places)
        more = [score.parts, chance.parts]
        more += [] if self.column is None else [self.column.parts]
        found = self.table.fetch(np.sort(chosen), tuple(more))
        # They come in the order of the table.
        back = np.argsort(np.argsort(chosen))
        scores, chances, *column = (number[back] for number in found.numbers)
        block = RowBlock(
            self._features(found.samples[back], column),
            found.marks.labelled[back].astype(np.float64),
            np.ones(chosen.size),
        )
        return SomeOfEach(block, scores, chances, np.concatenate(stands_for))

    def _score(
        self, function: Callable[..., Vector], fits: LinearFits, *more: float
    ) -> BlockValues:
        self.passes += 1
        rotation, r = self.kernel.rotation, self.kernel.n_components
        inner = replace(fits, coef=np.vstack([rotation @ fits.coef[:r], fits.coef[r:]]))
        shared = constant(self._bare_kernel), constant(inner)
        parts = [
            lazily(function, samples, marks, *shared, _part(self.column, at), *more)
            for at, (samples, marks) in enumerate(self._blocks())
        ]
        return BlockValues(self.table, parts).kept()

    def _fetch(
        self, rows: NDArray[np.intp] | None, fold: int | None, *, held_out: bool = False
    ) -> RowBlock:
        mine = (self.target, self.weight, self.column)
        given = [each.parts for each in mine if each is not None]
        found = self.table.fetch(rows, tuple(given), fold=fold, held_out=held_out)
        numbers = list(found.numbers)
        labelled = found.marks.labelled.astype(np.float64)
        target = labelled if self.target is None else numbers.pop(0)
        weight = np.ones(labelled.size) if self.weight is None else numbers.pop(0)
        return RowBlock(
            self._features(found.samples, numbers),
            target,
            weight,
            tasks.trained_by(found.marks.fold, self.table.folds.n_splits),
        )

    def _features(self, samples: NDArray[Any], column: list[Vector]) -> Single:
        """Give the features of rows that were fetched, the column last if there is one."""
        features = self.kernel.transform(samples, spare=len(column))
        if column:
            features[:, -1] = column[0]
        return features

    @property
    def _is_long(self) -> bool:
        return self.n_rows > _WORTH_A_SKETCH * SKETCH_ROWS

    @property
    def _bare_kernel(self) -> KernelFeatures:
        return replace(self.kernel, rotation=np.empty((0, 0)))

    def _blocks(self) -> list[tuple[object, object]]:
        return list(zip(self.table.samples, self.table.marks, strict=True))


def _part(values: BlockValues | None, at: int) -> Lazy | None:
    return None if values is None else values.parts[at]
