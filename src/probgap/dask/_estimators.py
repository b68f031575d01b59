"""Steps 1 and 5 by classifiers that are themselves fitted on dask arrays: all rows count.

Such a classifier gets dask arrays of known length, made block by block when they are
read. What it does with them on its workers is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probgap._core.errors import InvalidInputError, load_library
from probgap._core.estimators import clone_with_seed, round_shares, round_small_parts
from probgap._core.folds import RowFolds, can_hold_out
from probgap._core.runtime import stage
from probgap._core.types import Mask, Vector
from probgap.dask.blocks import (
    Blocks,
    Positions,
    Sample,
    array,
    as_labels,
    as_samples,
    is_positive,
    split_ranks,
)
from probgap.dask.engine import Lazy, gather, keep, lazily
from probgap.gap import ObservedGapEstimator
from probgap.gap.base import GapClassifier, gap_of, log_odds_of
from probgap.pgpu.steps import Curve, Shares, Steps

Array = Any  # a dask array


def is_made_for_dask(estimator: object) -> bool:
    """Tell whether an estimator is fitted on dask arrays, by where its class comes from.

    So those of xgboost.dask, lightgbm.dask and dask_ml are, and classes that inherit
    from a class in a module named after dask.
    """
    return any("dask" in kind.__module__ for kind in type(estimator).__mro__)


def in_memory(estimator: Any) -> Any:
    """Return the estimator of the same settings for data in memory, if that is known."""
    if not _is_of_xgboost(estimator):
        return estimator
    xgboost = load_library("xgboost", extra="xgboost", purpose="its classifiers")
    # None is the default but for the objective, which has another here.
    known = estimator.get_params().items()
    return xgboost.XGBClassifier(**{k: v for k, v in known if v is not None})


def to_memory(fitted: Any) -> Any:
    """Return a fitted estimator in a form that predicts without dask, if it has one.

    Those of xgboost do, and those with ``to_local``, as in LightGBM. Others are kept.
    """
    if _is_of_xgboost(fitted):
        local = in_memory(fitted)
        local.load_model(fitted.get_booster().save_raw())
        return local
    return fitted.to_local() if hasattr(fitted, "to_local") else fitted


def _is_of_xgboost(estimator: object) -> bool:
    # By name, so that nobody else loads xgboost.
    kinds = type(estimator).__mro__
    return any(kind.__module__.startswith("xgboost.dask") for kind in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Which rows of a block are labelled, and the fold that holds each out."""

    labelled: Mask
    fold: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class BlockSteps(Steps):
    """Steps of which the first, and perhaps the last, are made on all blocks."""

    blocks: Blocks
    sample: Sample
    folds: RowFolds
    final_on_blocks: bool
    marks: list[Lazy] = field(default_factory=list)
    gaps: list[Lazy] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        steps: Steps,
        blocks: Blocks,
        sample: Sample,
        folds: RowFolds,
        *,
        gap: Any,
        final: Any,
    ) -> BlockSteps:
        """Take the steps for memory, and estimators of all blocks; None for no final."""
        own = {each.name: getattr(steps, each.name) for each in fields(Steps)}
        own["gap"] = ObservedGapEstimator(gap)
        if final is not None:
            own["final"] = final
        return cls(
            **own,
            blocks=blocks,
            sample=sample,
            folds=folds,
            final_on_blocks=final is not None,
        )

    def estimate_gap(
        self,
        samples: Any,
        labelled: Mask,
        weight: Vector | None,
        rng: np.random.Generator,
    ) -> GapClassifier:
        """Step 1 on all blocks; the gaps of the sample are those of its rows."""
        del weight  # nothing was left out
        model = clone_with_seed(self.gap, rng)
        with stage(self.verbose, "who is labelled"):
            self._mark()
            on_all = self._fit_labels(model.estimator, None)
            by_fold: list[tuple[int | None, Any]] = [(None, on_all)]
            if can_hold_out(
                min(self.blocks.count(labelled=kind) for kind in (True, False))
            ):
                folds = range(self.folds.n_splits)
                by_fold = [(k, self._fit_labels(model.estimator, k)) for k in folds]
            self.gaps.extend(keep(self._held_out(by_fold)))
            parts = zip(
                self.gaps,
                split_ranks(self.sample.rows, self.blocks.n_rows),
                strict=True,
            )
            model.observed_gap_ = np.concatenate(
                gather([lazily(np.take, gap, inside) for gap, inside in parts])
            )
        model.set_params(estimator=in_memory(model.estimator), cv=None)
        model.estimator_ = to_memory(on_all)
        model.classes_, model.positive_index_ = np.array([False, True]), 1
        model.n_features_in_ = samples.shape[1]
        assert model.observed_gap_.size == labelled.size
        return model

    def classify(self, data: Shares, rng: np.random.Generator) -> Any:
        """Step 5 on all blocks: each row as a positive, a negative, or a part of each."""
        if not self.final_on_blocks:
            return super().classify(data, rng)
        estimator = clone_with_seed(self.final, rng)
        rounded = round_shares(data.share) is not data.share
        # Where no gap is above 0 the sample keeps its labelled rows, and so do all.
        kept = bool((data.share[data.labelled] == 1.0).all())
        with stage(self.verbose, "final classifier"):
            shares = keep(
                [
                    lazily(_share, gap, marks, data.curve, self.rule, kept, rounded)
                    for gap, marks in zip(self.gaps, self.marks, strict=True)
                ]
            )
            sizes = [
                sum(count) for count in gather([lazily(_count, s) for s in shares])
            ]
            X = [
                lazily(_copies, block, share)
                for (block, _), share in zip(self.blocks.pairs, shares, strict=True)
            ]
            fitted = estimator.fit(
                _as_array(X, sizes, (self.blocks.n_columns,), np.float64),
                _as_array([lazily(_classes, s) for s in shares], sizes, (), np.int8),
                sample_weight=_as_array(
                    [lazily(_weights, s) for s in shares], sizes, (), np.float64
                ),
            )
        return to_memory(fitted)

    def _mark(self) -> None:
        """Mark labels and folds of all rows."""
        counts = [self.blocks.sizes(labelled=kind) for kind in (True, False)]
        before = zip(*(np.cumsum(n) - n for n in counts), strict=True)
        self.marks.extend(
            keep(
                [
                    lazily(_mark_rows, y, self.blocks.positive, self.folds, start)
                    for (_, y), start in zip(self.blocks.pairs, before, strict=True)
                ]
            )
        )

    def _fit_labels(self, estimator: Any, fold: int | None) -> Any:
        """Fit on the labels of all rows, or of those outside a fold."""
        sizes = self._sizes(fold, held_out=False)
        y = [lazily(_labels, marks, fold) for marks in self.marks]
        X = self._samples(fold, sizes, held_out=False)
        return clone(estimator).fit(X, _as_array(y, sizes, (), np.int8))

    def _held_out(self, by_fold: list[tuple[int | None, Any]]) -> list[Lazy]:
        """Return the gap of each row by the model of the fold that holds it out."""
        found: list[list[tuple[int | None, Lazy]]] = [[] for _ in self.marks]
        for fold, fitted in by_fold:
            sizes = self._sizes(fold, held_out=True)
            parts = _chances(fitted, self._samples(fold, sizes, held_out=True))
            for at, part in zip(np.flatnonzero(sizes), parts, strict=True):
                found[at].append((fold, part))
        return [
            lazily(_put_together, marks, [f for f, _ in pairs], *[p for _, p in pairs])
            for marks, pairs in zip(self.marks, found, strict=True)
        ]

    def _sizes(self, fold: int | None, *, held_out: bool) -> Positions:
        if fold is None:
            return self.blocks.n_rows
        sizes = gather([lazily(_count_rows, m, fold, held_out) for m in self.marks])
        return np.array(sizes)

    def _samples(self, fold: int | None, sizes: Positions, *, held_out: bool) -> Array:
        parts = [
            lazily(_rows, block, marks, fold, held_out)
            for (block, _), marks in zip(self.blocks.pairs, self.marks, strict=True)
        ]
        return _as_array(parts, sizes, (self.blocks.n_columns,), np.float64)


def _as_array(
    parts: list[Lazy], sizes: Iterable[int], more: tuple[int, ...], dtype: Any
) -> Array:
    """Return parts of known length as a dask array, without those that are empty."""
    return array.concatenate(
        [
            array.from_delayed(part, (int(size), *more), dtype=dtype)
            for part, size in zip(parts, sizes, strict=True)
            if size
        ]
    )


def _chances(fitted: Any, X: Array) -> list[Lazy]:
    """Return what ``predict_proba`` makes of each block, lazily."""
    found = fitted.predict_proba(X)
    if not hasattr(found, "to_delayed"):
        msg = (
            "gap_estimator must return a dask array from predict_proba where it is given "
            f"one. Got {type(found).__name__} from {fitted!r}."
        )
        raise InvalidInputError(msg)
    if found.numblocks[0] != X.numblocks[0]:
        found = found.rechunk({0: X.chunks[0]})
    return list(np.ravel(found.rechunk({1: -1}).to_delayed()))


def _mark_rows(
    y: Any, positive: Any, folds: RowFolds, before: tuple[int, int]
) -> Marks:
    labelled = is_positive(as_labels(y), positive)
    return Marks(labelled, folds.fold_of(labelled, *map(int, before)))


def _chosen(marks: Marks, fold: int | None, held_out: bool) -> Mask:
    if fold is None:
        return np.ones(marks.fold.size, dtype=bool)
    chosen: Mask = (marks.fold == fold) == held_out
    return chosen


def _count_rows(marks: Marks, fold: int, held_out: bool) -> int:
    return int(np.count_nonzero(_chosen(marks, fold, held_out)))


def _rows(block: Any, marks: Marks, fold: int | None, held_out: bool) -> NDArray[Any]:
    samples = as_samples(block)[_chosen(marks, fold, held_out)]
    return samples.astype(np.float64, copy=False)


def _labels(marks: Marks, fold: int | None) -> NDArray[np.int8]:
    return marks.labelled[_chosen(marks, fold, held_out=False)].astype(np.int8)


def _put_together(
    marks: Marks, folds: list[int | None], *chances: NDArray[Any]
) -> Vector:
    gap = np.full(marks.fold.size, np.nan)
    for fold, chance in zip(folds, chances, strict=True):
        rows = _chosen(marks, fold, held_out=True)
        n_rows = np.count_nonzero(rows)
        if chance.shape != (n_rows, 2):
            msg = (
                "gap_estimator must return two probabilities for each row. Got an array "
                f"of shape {chance.shape} for {n_rows} rows."
            )
            raise InvalidInputError(msg)
        gap[rows] = gap_of(chance[:, 1])
    return gap


def _share(
    gap: Vector, marks: Marks, curve: Curve, rule: Any, kept: bool, rounded: bool
) -> Vector:
    """Return how much of each row of a block counts as positive; NaN for none."""
    if gap.size == 0:
        return gap
    placed = curve.place(gap, log_odds_of(gap))
    found = placed.relabel(marks.labelled, rule, keep_labelled=kept)
    share = found.positive_share
    return round_small_parts(share) if rounded else share


def _places(share: Vector) -> tuple[Positions, Positions]:
    """Return the rows that count as positive, and those that count as negative."""
    return np.flatnonzero(share > 0.0), np.flatnonzero(share < 1.0)


def _count(share: Vector) -> tuple[int, int]:
    positive, negative = _places(share)
    return positive.size, negative.size


def _copies(block: Any, share: Vector) -> NDArray[Any]:
    samples = as_samples(block)[np.concatenate(_places(share))]
    return samples.astype(np.float64, copy=False)


def _classes(share: Vector) -> NDArray[np.int8]:
    return np.repeat(np.array([1, 0], dtype=np.int8), _count(share))


def _weights(share: Vector) -> Vector:
    positive, negative = _places(share)
    return np.concatenate([share[positive], 1.0 - share[negative]])
