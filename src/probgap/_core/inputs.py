"""The door of every estimator: samples and observed labels, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from probgap._core.errors import InvalidInputError
from probgap._core.labels import (
    ObservedLabels,
    read_labels,
    require_labelled_and_unlabelled,
)
from probgap._core.types import Matrix

# Rows in a row: sums over a column-wise frame would round otherwise, and the same data
# give other bits.
_SAMPLES: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
_ANY_SAMPLES = {**_SAMPLES, "dtype": [np.float64, np.float32]}


def check_fit_inputs(
    estimator: Any,
    X: Matrix,
    y: ArrayLike | None,
    pos_label: object,
    *,
    single: bool = False,
) -> tuple[Matrix, ObservedLabels]:
    """Check what ``fit`` was given, and remember the features on the estimator.

    ``single`` lets samples in single precision stay so, uncopied.
    """
    samples = validate_data(estimator, X, **(_ANY_SAMPLES if single else _SAMPLES))
    if y is None:
        name = type(estimator).__name__
        msg = f"{name} requires y to be passed, but the target y is None."
        raise InvalidInputError(msg)
    n_labels = _num_samples(y)
    if n_labels != samples.shape[0]:
        msg = f"y must have one label for each of the {samples.shape[0]} samples. Got {n_labels}."
        raise InvalidInputError(msg)
    if isinstance(y, np.ndarray) and y.dtype.kind == "f":
        # NaN means unlabelled, but infinity means nothing.
        assert_all_finite(y, allow_nan=True, input_name="y")
    labels = read_labels(y, pos_label)
    require_labelled_and_unlabelled(labels)
    return samples, labels


def check_predict_input(estimator: Any, X: Matrix) -> Matrix:
    """Check what a fitted estimator is asked to predict."""
    check_is_fitted(estimator)
    return validate_data(estimator, X, reset=False, **_ANY_SAMPLES)
