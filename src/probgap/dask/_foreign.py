"""Other people's classifiers that are fitted on dask arrays: which are taken, and how."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names

from probgap import pgpu
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import require_sample_weight
from probgap._core.kernels import Matrix
from probgap._core.optional import load_library

Lazy = Any  # a dask array
Vector = NDArray[np.float64]

# What an estimator is tried on: two blocks of so many rows, half of them positive.
_ROWS_OF_A_TRIAL = 20


def require_dask_estimator(
    estimator: Any, name: str, n_features: int, *, weighted: bool
) -> None:
    """Refuse an estimator that would bring all rows to one machine, before it does.

    A classifier for memory takes a dask array, too: it turns it into a plain one. So it
    is fitted on a few rows made up here. What gives back plain numbers is refused; what
    cannot be fitted on them says so itself.
    """
    if weighted:
        require_sample_weight(estimator, name)
    da = load_library("dask.array", extra="dask", purpose="a fit on blocks")
    n_rows, chunks = 2 * _ROWS_OF_A_TRIAL, _ROWS_OF_A_TRIAL
    values = np.random.default_rng(0).normal(size=(n_rows, n_features))
    labels = np.arange(n_rows) % 2
    values[:, 0] += labels
    X = da.from_array(values, chunks=(chunks, n_features))
    y = da.from_array(labels.astype(np.int8), chunks=chunks)
    more = {"sample_weight": da.ones(n_rows, chunks=chunks)} if weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about these rows, not about the user's
        found = clone(estimator).fit(X, y, **more).predict_proba(X)
    if not hasattr(found, "to_delayed"):
        msg = (
            f"{name} must give a dask array from predict_proba where it is given one. "
            f"Got {estimator!r}, which gives {type(found).__name__}: it would bring all "
            "rows to one machine, where probgap.PGPUClassifier takes it."
        )
        raise InvalidInputError(msg)


def chances_by_block(fitted: Any, X: Lazy) -> list[Lazy]:
    """Give what ``predict_proba`` gives for each block of known length, lazily."""
    found = fitted.predict_proba(X)
    if found.numblocks[0] != X.numblocks[0]:
        found = found.rechunk({0: X.chunks[0]})
    return list(np.ravel(found.rechunk({1: -1}).to_delayed()))


def chance_of_some(fitted: Any, samples: NDArray[Any], given: Any) -> NDArray[Any]:
    """Give the chance of the second class of rows in memory."""
    X: Any = samples
    if stays_on_dask(fitted, given):
        da = load_library("dask.array", extra="dask", purpose="a fit on blocks")
        X = da.from_array(samples, chunks=samples.shape)
    chance: NDArray[Any] = np.asarray(fitted.predict_proba(X))[:, 1]
    return chance


def stays_on_dask(fitted: Any, given: Any) -> bool:
    """Say whether what was fitted is kept as it was given, for want of another form."""
    return type(fitted) is type(given)


def to_memory(fitted: Any) -> Any:
    """Give a fitted estimator in a form that predicts without dask, if it has one.

    Those of xgboost do, and those with ``to_local``, as in LightGBM. Others are kept.
    """
    if _is_of_xgboost(fitted):
        local = unfitted_in_memory(fitted)
        local.load_model(fitted.get_booster().save_raw())
        return local
    return fitted.to_local() if hasattr(fitted, "to_local") else fitted


def unfitted_in_memory(estimator: Any) -> Any:
    """Give the estimator of the same settings for data in memory, if that is known."""
    if not _is_of_xgboost(estimator):
        return estimator
    xgboost = load_library("xgboost", extra="xgboost", purpose="its classifiers")
    # None is the default but for the objective, which has another here.
    known = estimator.get_params().items()
    return xgboost.XGBClassifier(**{k: v for k, v in known if v is not None})


def _is_of_xgboost(estimator: Any) -> bool:
    # By name, so that nobody else loads xgboost.
    kinds = type(estimator).__mro__
    return any(kind.__module__.startswith("xgboost.dask") for kind in kinds)


def by_chances(model: pgpu.PGPUClassifier, X: Lazy) -> tuple[pgpu.PGPUClassifier, Lazy]:
    """Give chances of the final estimator, lazily, and a model that decides by them."""
    if hasattr(X, "to_dask_array"):
        _check_feature_names(model, X._meta, reset=False)
        X = X.to_dask_array()
    if X.shape[1] != model.n_features_in_:
        msg = f"X must have {model.n_features_in_} features. Got {X.shape[1]}."
        raise InvalidInputError(msg)
    X = X.rechunk({1: -1})
    return _DecidedByChances.of(model), model.estimator_.predict_proba(X)


class _DecidedByChances(pgpu.PGPUClassifier):
    """A fitted classifier that is given the final estimator's chances, not samples."""

    @classmethod
    def of(cls, model: pgpu.PGPUClassifier) -> _DecidedByChances:
        """Give a small copy of what decides."""
        copy = cls()
        copy.classes_, copy.positive_index_ = model.classes_, model.positive_index_
        copy.slope_ = model.slope_
        return copy

    def _decide(self, X: Matrix) -> Vector:
        gap: Vector = X[:, 1] - X[:, 0]
        return gap
