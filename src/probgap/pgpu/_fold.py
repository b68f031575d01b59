"""Many classifiers on the rows of one fold, from one kernel matrix where that serves."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from probgap._core.estimators import weigh_copies
from probgap._core.svm import FastSVC, rbf_decisions
from probgap._core.types import Mask, Matrix, Vector
from probgap.pgpu.steps import Shares

# Beyond this many training rows a kernel matrix does not fit well into memory.
_MOST_ROWS = 12_000


def shares_a_kernel(estimator: Any) -> bool:
    """Tell whether a kernel matrix can be made before it is known which rows to fit on."""
    return (
        type(estimator) in (SVC, FastSVC)
        and estimator.kernel == "rbf"
        and (estimator.gamma == "auto" or isinstance(estimator.gamma, Real))
        and estimator.class_weight is None
        and estimator.probability in (False, "deprecated")
    )


def decides_by_products(estimator: Any, samples: Matrix) -> bool:
    """Tell whether matrix products give the decisions of a fitted classifier."""
    return (
        type(estimator) in (SVC, FastSVC)
        and estimator.kernel == "rbf"
        and not issparse(samples)
    )


class FitOnFold:
    """Fit on some training rows of a fold, predict its test rows."""

    def __init__(self, train: Matrix, test: Matrix) -> None:
        self._train = train
        self._test = test
        self._kernels: dict[float, tuple[Matrix, Matrix]] = {}

    def predict(
        self, estimator: Any, fit: Callable[[Any, Shares], None], data: Shares
    ) -> Mask:
        """Return which test rows are positive, after a fit on shares of training rows."""
        takes_sides = not ((data.share > 0.0) & (data.share < 1.0)).any()
        if (
            shares_a_kernel(estimator)
            and takes_sides
            and self._train.shape[0] <= _MOST_ROWS
        ):
            return self._predict_by_kernel(estimator, data.share, data.weight)
        # Where the width depends on the rows, making a kernel matrix of them all takes
        # longer than libsvm takes to find those it needs; so libsvm makes its own.
        fit(estimator, data)
        if decides_by_products(estimator, self._test):
            return rbf_decisions(estimator, self._test) > 0.0
        predicted: Mask = estimator.predict(self._test) == 1
        return predicted

    def _predict_by_kernel(self, estimator: SVC, share: Vector, weight: Vector) -> Mask:
        """Fit libsvm to all rows, those to leave out without weight: it drops them unread."""
        gamma = estimator.gamma
        train, test = self._kernel(
            1.0 / self._train.shape[1] if gamma == "auto" else float(gamma)
        )
        positive, negative = weigh_copies(share, weight)
        weights = positive + negative
        model = clone(estimator).set_params(kernel="precomputed")
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            model.fit(train, positive > 0.0, sample_weight=weights)
        # libsvm counts support vectors among the rows that have weight.
        support = np.flatnonzero(weights)[model.support_]
        decision = test[:, support] @ model.dual_coef_[0] + model.intercept_[0]
        predicted: Mask = decision > 0.0
        return predicted

    def _kernel(self, gamma: float) -> tuple[Matrix, Matrix]:
        if gamma not in self._kernels:
            self._kernels[gamma] = (
                rbf_kernel(self._train, gamma=gamma),
                rbf_kernel(self._test, self._train, gamma=gamma),
            )
        return self._kernels[gamma]
