"""What the methods share: a final classifier, P(s=1 | x) and the class prior."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    PUClassifier,
    clone_with_seed,
    require_sample_weight,
    require_score,
)
from probgap._core.runtime import draw_seed
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap._core.validation import can_hold_out, make_splitter, smaller_group
from probgap.gap import MixedGapEstimator, ObservedGapEstimator, log_odds_of
from probgap.reading import Reading, read

SHARE = Interval(Real, 0, 1, closed="neither")
TINY = float(np.finfo(np.float64).eps)


def _has_probabilities(method: Any) -> bool:
    return bool(method._gives_probabilities())


class MethodClassifier(PUClassifier):
    """A classifier whose decision is that of its final estimator."""

    estimator: Any

    def _final_estimator(self, rng: Generator) -> Any:
        if self.estimator is None:
            return SVC(random_state=draw_seed(rng))
        require_sample_weight(self.estimator, "estimator")
        return clone_with_seed(self.estimator, rng)

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return score_of(self.estimator_, samples)

    def _gives_probabilities(self) -> bool:
        """Return whether there are probabilities of the true label."""
        return False

    def _chance(self, X: Matrix) -> Vector:
        return 0.5 * (1.0 + self._decide(X))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Matrix) -> Array:
        """Return P(Y | x), the probabilities of both true labels.

        They are only as good as the assumption of the method. A method without
        probabilities of the true label does not have this function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        positive = self._chance(X)
        columns = [1.0 - positive, positive]
        return np.column_stack(columns if self.positive_index_ == 1 else columns[::-1])


def score_of(estimator: Any, samples: Matrix) -> Vector:
    """Return the decision of a fitted classifier, else P(class 1) - P(class 0)."""
    if isinstance(estimator, ObservedGapEstimator | MixedGapEstimator):
        return log_odds_of(estimator.decision_function(samples))
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(samples)
    proba: Array = estimator.predict_proba(samples)
    return proba[:, 1] - proba[:, 0]


class FinalProbabilities(MethodClassifier):
    """A method whose probabilities are those of its final estimator, if it has any."""

    def _gives_probabilities(self) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), "predict_proba")

    def _chance(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return self.estimator_.predict_proba(samples)[:, 1]


class GapMethod(MethodClassifier):
    """A method that starts from P(s=1 | x)."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "gap_estimator": [HasMethods(["fit"]), None],
        "gap_method": [StrOptions({"out_of_fold", "in_sample"})],
        "n_jobs": [Integral, None],
    }

    gap_estimator: Any
    gap_method: Literal["out_of_fold", "in_sample"] = "out_of_fold"
    n_jobs: int | None

    def _fit_gap(self, samples: Matrix, labelled: Mask, rng: Generator) -> Any:
        return fit_gap(
            self.gap_estimator, samples, labelled, rng, self.gap_method, self.n_jobs
        )


def fit_gap(
    estimator: Any,
    samples: Matrix,
    labelled: Mask,
    rng: Generator,
    method: Literal["out_of_fold", "in_sample"] = "out_of_fold",
    n_jobs: int | None = None,
) -> Any:
    """Estimate P(s=1 | x) with a classifier, or a gap estimator with its own settings."""
    if isinstance(estimator, ObservedGapEstimator | MixedGapEstimator):
        gap: Any = clone_with_seed(estimator, rng).set_params(pos_label=None)
    else:
        seed = draw_seed(rng)
        gap = ObservedGapEstimator(
            estimator, method=method, random_state=seed, n_jobs=n_jobs
        )
    return gap.fit(samples, labelled)


def held_out_scores(
    estimator: Any,
    samples: Matrix,
    labels: ObservedLabels,
    rng: Generator,
    *,
    cv: Any = None,
    n_jobs: int | None = None,
) -> Vector:
    """Score training samples, labelled against unlabelled, by cross-validation.

    With fewer than three labelled or unlabelled samples the scores are in-sample.
    """
    if isinstance(estimator, ObservedGapEstimator | MixedGapEstimator):
        return fit_gap(estimator, samples, labels.labelled, rng)._training_log_odds()
    model, observed = make_scorer(estimator, rng), labels.labelled.astype(np.int8)
    if not can_hold_out(smaller_group(labels.labelled)):
        return score_of(model.fit(samples, observed), samples)
    has_decision = hasattr(model, "decision_function")
    how: dict[str, Any] = {"cv": make_splitter(cv, labels, rng), "n_jobs": n_jobs}
    how["method"] = "decision_function" if has_decision else "predict_proba"
    scores: Array = cross_val_predict(model, samples, observed, **how)
    return scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]


def make_scorer(estimator: Any, rng: Generator, name: str = "gap_estimator") -> Any:
    """Return an unfitted classifier that has scores; ``None`` makes an RBF SVM."""
    if estimator is None:
        return SVC(random_state=draw_seed(rng))
    require_score(estimator, name)
    return clone_with_seed(estimator, rng)


class PriorMethod(MethodClassifier):
    """A method that needs the class prior, from the user or read off held-out scores."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "class_prior": [SHARE, None],
        "gap_estimator": [HasMethods(["fit"]), None],
    }

    class_prior: float | None
    class_prior_: float
    reading_: Reading | None

    def _find_prior(self, labelled: Mask, scores: Callable[[], Vector]) -> None:
        self.reading_ = None
        if self.class_prior is None:
            self.reading_ = read(scores(), labelled)
            self.class_prior_ = self.reading_.class_prior
            return
        share = float(labelled.mean())
        if self.class_prior < share:
            msg = (
                "class_prior must be at least the share of labelled samples, "
                f"{share:.3g}. Got {self.class_prior:.3g}."
            )
            raise InvalidInputError(msg)
        self.class_prior_ = float(self.class_prior)
