"""Base classes of the baselines."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.svm import SVC
from sklearn.utils._param_validation import HasMethods, StrOptions

from probgap._core.checks import ObservedLabels, check_fit_inputs, check_predict_input
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    SignClassifier,
    clone_with_seed,
    require_sample_weight,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Matrix, Vector
from probgap.gap import ObservedGapEstimator


class BaselineClassifier(SignClassifier):
    """A classifier whose decision is that of its final estimator."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "pos_label": "no_validation",
        "random_state": "no_validation",
    }

    estimator: Any
    pos_label: object
    random_state: RandomStateLike

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier to observed labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels: labelled positive, or unlabelled.

        Returns
        -------
        object
            The fitted classifier.
        """
        samples, labels = check_fit_inputs(self, X, y, self.pos_label)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self._fit(samples, labels, as_generator(self.random_state))
        return self

    @abstractmethod
    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
        """Fit to validated input."""

    def _final_estimator(self, rng: np.random.Generator) -> Any:
        if self.estimator is None:
            return SVC(random_state=draw_seed(rng))
        require_sample_weight(self.estimator, "estimator")
        return clone_with_seed(self.estimator, rng)

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        decision: Vector
        if hasattr(self.estimator_, "decision_function"):
            decision = self.estimator_.decision_function(samples)
        else:
            proba = self.estimator_.predict_proba(samples)
            decision = proba[:, 1] - proba[:, 0]
        return decision


class GapBaseline(BaselineClassifier):
    """A baseline that starts from P(s=1 | x)."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineClassifier._parameter_constraints,
        "gap_estimator": [HasMethods(["fit"]), None],
        "gap_method": [StrOptions({"out_of_fold", "in_sample"})],
        "n_jobs": [Integral, None],
    }

    gap_estimator: Any
    gap_method: Literal["out_of_fold", "in_sample"]
    n_jobs: int | None

    def _fit_gap(
        self, samples: Matrix, labelled: Mask, rng: np.random.Generator
    ) -> ObservedGapEstimator:
        return ObservedGapEstimator(
            self.gap_estimator,
            method=self.gap_method,
            random_state=draw_seed(rng),
            n_jobs=self.n_jobs,
        ).fit(samples, labelled)


def check_rates(rho_plus: float, rho_minus: float) -> None:
    """Check two noise rates: probabilities with a sum below 1."""
    for name, rate in (("rho_plus", rho_plus), ("rho_minus", rho_minus)):
        if not 0.0 <= rate < 1.0:
            msg = f"{name} must lie in [0, 1). Got {rate!r}."
            raise InvalidInputError(msg)
    if rho_plus + rho_minus >= 1.0:
        msg = (
            "rho_plus + rho_minus must be below 1, or labels carry no information. "
            f"Got {rho_plus:g} + {rho_minus:g}."
        )
        raise InvalidInputError(msg)
