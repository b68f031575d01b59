"""Boosted trees beside kernels, for a table in blocks: grown of some rows, asked of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.features import FeatureMap
from probgap.dask import _tasks as tasks
from probgap.dask._engine import constant, lazily
from probgap.dask._rows import BlockRows
from probgap.dask._table import BlockTable, split_ranks
from probgap.dask._values import BlockValues
from probgap.gap._boosting import (
    BoostedChance,
    StackedFeatures,
    boost,
    ranks_for_trees,
    rate_by_trees,
    start_with_trees,
)
from probgap.gap._plain import PlainFit
from probgap.gap._rate import RatePrior, score_of_chance

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class BlockStack:
    """Rows with the features that were decided on, and what these say.

    Attributes
    ----------
    rows : BlockRows
        The rows, with the score of trees as a column if it helps.
    map : FeatureMap
        How to make such features.
    chance : BlockValues
        P(s=1 | x) by models that have not seen the row.
    start : ndarray
        Where a fit may begin.
    """

    rows: BlockRows
    map: FeatureMap
    chance: BlockValues
    start: Vector


def stack_trees(rows: BlockRows, plain: PlainFit[BlockValues], seed: int) -> BlockStack:
    """Put the trees' score beside kernel features, if they predict labels better."""
    boosted, chance = _grow(rows.table, seed)
    prior = rate_by_trees(chance, plain.chance)
    if prior is None:
        return BlockStack(rows, rows.kernel, plain.chance, plain.start)
    stacked = StackedFeatures(rows.kernel, boosted, prior)
    column = chance.map(partial(_score, prior=prior)).kept()
    start = start_with_trees(rows.kernel.n_components)
    with_column = BlockRows(rows.table, rows.kernel, column=column, passes=rows.passes)
    return BlockStack(with_column, stacked, chance, start)


def _grow(table: BlockTable, seed: int) -> tuple[BoostedChance, BlockValues]:
    """Bring some rows here, grow trees, and give the chances of all rows."""
    numbers = table.n_labelled, table.n_unlabelled
    ranks = ranks_for_trees(*numbers, table.overview.n_columns)
    places = [
        table.places(some, labelled=kind)
        for some, kind in zip(ranks, (True, False), strict=True)
    ]
    grown = np.sort(np.concatenate(places))
    found = table.fetch(grown)
    boosted, part = boost(found.samples, found.marks.labelled, numbers, seed)
    first = np.searchsorted(grown, np.cumsum(table.overview.n_rows))
    inside = dict(split_ranks(grown, table.overview.n_rows))
    shared = constant(boosted)
    parts = [
        lazily(
            tasks.chances_by_trees,
            samples,
            shared,
            inside.get(at, np.empty(0, dtype=np.intp)),
            part[(first[at - 1] if at else 0) : first[at]],
        )
        for at, samples in enumerate(table.samples)
    ]
    return boosted, BlockValues(table, parts).kept()


def _score(chance: Vector, labelled: Mask, *, prior: RatePrior) -> NDArray[Any]:
    del labelled
    # Rounded as features in memory are.
    return score_of_chance(chance, prior).astype(np.float32)
