"""Copies of other people's estimators, with a seed where they have none."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from probgap._core.errors import InvalidInputError
from probgap._core.rng import draw_seed


def clone_with_seed(estimator: Any, rng: np.random.Generator) -> Any:
    """Clone an estimator and fill in each ``random_state`` that was left at None.

    The user's object is never fitted or changed, and a seed that the user chose is
    kept.
    """
    copy = clone(estimator)
    unset = {
        name: draw_seed(rng)
        for name, value in sorted(copy.get_params(deep=True).items())
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**unset) if unset else copy


def require_predict_proba(estimator: Any, name: str) -> None:
    """Refuse an estimator that gives no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        msg = (
            f"{name} must have predict_proba; wrap it in CalibratedClassifierCV to "
            f"give it one. Got {estimator!r}."
        )
        raise InvalidInputError(msg)


def require_sample_weight(estimator: Any, name: str) -> None:
    """Refuse an estimator whose ``fit`` takes no ``sample_weight``."""
    if not hasattr(estimator, "fit") or not has_fit_parameter(
        estimator, "sample_weight"
    ):
        msg = (
            f"{name} must accept sample_weight in fit, since the weights are what "
            f"removes the domain bias. Got {estimator!r}."
        )
        raise InvalidInputError(msg)
