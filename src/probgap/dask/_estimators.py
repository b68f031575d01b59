"""Steps 1 and 5 on all rows, by classifiers that are fitted on lazy dask arrays."""

from __future__ import annotations

from collections.abc import Iterable
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probgap._core.errors import InvalidInputError, load_library
from probgap._core.estimators import round_shares, round_small_parts
from probgap._core.types import Mask, Matrix, Rows, Vector
from probgap._core.validation import RowFolds, can_hold_out
from probgap.dask.blocks import Blocks, array, as_samples, find_labelled
from probgap.dask.engine import Lazy, gather, keep, lazily
from probgap.gap import ObservedGapEstimator, gap_of, log_odds_of
from probgap.pgpu.steps import PosteriorCurve, Rule, SoftLabels


def is_made_for_dask(estimator: object) -> bool:
    """Return whether a module of an estimator's class or bases has "dask" in its name."""
    return any("dask" in kind.__module__ for kind in type(estimator).__mro__)


def in_memory(estimator: Any) -> Any:
    """Return the estimator for data in memory with the same parameters, if there is one."""
    if not _is_of_xgboost(estimator):
        return estimator
    xgboost = load_library("xgboost", extra="xgboost", purpose="its classifiers")
    # None is the default of all but the objective, which keeps its own default here.
    known = estimator.get_params().items()
    return xgboost.XGBClassifier(**{k: v for k, v in known if v is not None})


def to_memory(fitted: Any) -> Any:
    """Return a fitted estimator in a form that predicts without dask, if there is one."""
    if _is_of_xgboost(fitted):
        local = in_memory(fitted)
        local.load_model(fitted.get_booster().save_raw())
        return local
    return fitted.to_local() if hasattr(fitted, "to_local") else fitted


def _is_of_xgboost(estimator: object) -> bool:
    # By name, so that xgboost is not imported for others.
    kinds = type(estimator).__mro__
    return any(kind.__module__.startswith("xgboost.dask") for kind in kinds)


class AllRows:
    """The rows of all blocks as dask arrays, to fit the gap and a final classifier to."""

    def __init__(
        self, blocks: Blocks, folds: RowFolds, drawn: Rows, rule: Rule
    ) -> None:
        self._folds, self._drawn, self._rule = folds, drawn, rule
        self._holds_out = can_hold_out(min(blocks.counts))
        n_rows, before = blocks.n_rows, np.cumsum(blocks.sizes, axis=1) - blocks.sizes
        samples = [lazily(_as_doubles, block) for block, _ in blocks.pairs]
        marks = keep(lazily(find_labelled, y, blocks.positive) for _, y in blocks.pairs)
        fold = keep(
            lazily(folds.fold_of, mark, *map(int, start))
            for mark, start in zip(marks, before.T, strict=True)
        )
        self._samples = _as_array(samples, n_rows, np.float64, blocks.n_columns)
        self._labelled = _as_array(marks, n_rows, bool)
        self._fold = _as_array(fold, n_rows, np.int8)

    def fit_gap(
        self,
        gap: ObservedGapEstimator,
        samples: Matrix,
        labelled: Mask,
        weight: Vector | None,
    ) -> ObservedGapEstimator:
        """Step 1 on all rows; ``observed_gap_`` has the gaps of the sampled rows."""
        del labelled, weight  # all rows are used
        own, observed = gap.estimator, self._labelled.astype(np.int8)
        on_all = clone(own).fit(self._samples, observed)
        if self._holds_out:
            found = array.zeros_like(self._fold, dtype=np.float64)
            for k in range(self._folds.n_splits):
                train = self._fold != k
                rows = _choose(self._samples, train), _choose(observed, train)
                held_out = _gaps(clone(own).fit(*rows), self._samples)
                found = array.where(train, found, held_out)
        else:
            found = _gaps(on_all, self._samples)
        self._gap = found.persist()
        gap.observed_gap_ = self._gap[self._drawn].compute()
        gap.set_params(estimator=in_memory(own), cv=None)
        gap.estimator_ = to_memory(on_all)
        gap.classes_, gap.positive_index_ = np.array([False, True]), 1
        gap.n_features_in_ = samples.shape[1]
        return gap

    def fit_final(self, classifier: Any, data: SoftLabels) -> Any:
        """Step 5 on all rows, each a positive, a negative, or a weighted copy of each."""
        share = self._gap.map_blocks(
            _share,
            self._labelled,
            data.curve,
            self._rule,
            # If the sample had to keep its labelled rows (see Steps.relabel), so do all.
            kept=bool((data.share[data.labelled] == 1.0).all()),
            rounded=round_shares(data.share) is not data.share,
            dtype=np.float64,
        ).persist()
        positive, negative = share > 0.0, share < 1.0
        samples = [_choose(self._samples, side) for side in (positive, negative)]
        weights = [_choose(share, positive), 1.0 - _choose(share, negative)]
        classes = [
            array.ones_like(weights[0], dtype=np.int8),
            array.zeros_like(weights[1], dtype=np.int8),
        ]
        samples, classes, weights = map(array.concatenate, (samples, classes, weights))
        return to_memory(classifier.fit(samples, classes, sample_weight=weights))


def _as_array(
    parts: Iterable[Lazy], sizes: Iterable[int], dtype: Any, *width: int
) -> Lazy:
    """Concatenate parts of known length to a dask array, skipping empty ones."""
    return array.concatenate(
        [
            array.from_delayed(part, (int(size), *width), dtype=dtype)
            for part, size in zip(parts, sizes, strict=True)
            if size
        ]
    )


def _choose(values: Lazy, mask: Lazy) -> Lazy:
    """Return the rows where a mask is true, as a dask array of known length."""
    pairs = list(zip(np.ravel(values.to_delayed()), mask.to_delayed(), strict=True))
    sizes = gather(lazily(np.count_nonzero, part) for _, part in pairs)
    parts = [lazily(getitem, *pair) for pair in pairs]
    return _as_array(parts, sizes, values.dtype, *values.shape[1:])


def _gaps(fitted: Any, X: Lazy) -> Lazy:
    """Return the gap of each row by a fitted classifier."""
    found = fitted.predict_proba(X)
    if not hasattr(found, "to_delayed"):
        msg = (
            "gap_estimator must return a dask array from predict_proba where it is given "
            f"one. Got {type(found).__name__} from {fitted!r}."
        )
        raise InvalidInputError(msg)
    if found.numblocks[0] != X.numblocks[0]:
        found = found.rechunk({0: X.chunks[0]})
    parts, sizes = np.ravel(found.rechunk({1: -1}).to_delayed()), X.chunks[0]
    gaps = [lazily(_gap_of, *pair) for pair in zip(parts, sizes, strict=True)]
    return _as_array(gaps, sizes, np.float64)


# Functions that run on workers, on one block.


def _as_doubles(block: Any) -> NDArray[np.float64]:
    return as_samples(block).astype(np.float64, copy=False)


def _gap_of(chance: NDArray[Any], n_rows: int) -> Vector:
    if chance.shape != (n_rows, 2):
        msg = (
            "gap_estimator must return two probabilities for each row. Got an array "
            f"of shape {chance.shape} for {n_rows} rows."
        )
        raise InvalidInputError(msg)
    return gap_of(chance[:, 1])


def _share(
    gap: Vector,
    labelled: Mask,
    curve: PosteriorCurve,
    rule: Rule,
    *,
    kept: bool,
    rounded: bool,
) -> Vector:
    """Return the weight of each row as a positive; NaN if it is left out."""
    scores = log_odds_of(gap)
    found = curve.relabel(gap, scores, labelled, rule, keep_labelled=kept)
    share = found.positive_share
    return round_small_parts(share) if rounded else share
