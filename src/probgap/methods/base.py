"""What the methods share: a final classifier, P(s=1 | x) and the class prior."""

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if

from probgap._core._sklearn import HasMethods, Interval
from probgap._core.checks import (
    ObservedLabels,
    can_hold_out,
    check_predict_input,
    make_splitter,
    smaller_group,
)
from probgap._core.errors import refuse
from probgap._core.estimators import (
    PUClassifier,
    clone_with_seed,
    require_predict_proba,
    require_sample_weight,
    require_score,
)
from probgap._core.runtime import draw_seed
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap.gap import GapClassifier, ObservedGapEstimator
from probgap.reading import HiddenEstimate, read

SHARE = Interval(Real, 0, 1, closed="neither")
TINY = float(np.finfo(np.float64).eps)


class MethodClassifier(PUClassifier):
    """A classifier whose decision is that of its final estimator."""

    # Those of all methods; names that one lacks are ignored.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PUClassifier._parameter_constraints,
        "class_prior": [SHARE, None],
        "gap_estimator": [HasMethods(["fit"]), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    estimator: Any
    # For methods without these parameters.
    cv: Any = None
    gap_estimator: Any = None
    n_jobs: int | None = None

    def _make(
        self,
        name: str,
        rng: Generator,
        *requirements: Callable[[Any, str], None],
        default: Callable[[], Any] = SVC,
    ) -> Any:
        """Return a seeded copy of one of the parameters, or of its default."""
        own = getattr(self, name)
        if own is None:
            own = default()
        for require in requirements:
            require(own, name)
        copy = clone_with_seed(own, rng)
        # Inside a method, labels are 0 and 1.
        return (
            copy.set_params(pos_label=None) if isinstance(copy, PUClassifier) else copy
        )

    def _make_final(self, rng: Generator) -> Any:
        return self._make("estimator", rng, require_sample_weight)

    def _fit_gap(self, samples: Matrix, labelled: Mask, rng: Generator) -> Any:
        """Estimate P(s=1 | x) with a classifier, or a gap estimator with its own settings."""
        if isinstance(self.gap_estimator, GapClassifier):
            return self._make("gap_estimator", rng)._fit_checked(samples, labelled)
        if self.gap_estimator is not None:
            require_predict_proba(self.gap_estimator, "gap_estimator")
        gap = ObservedGapEstimator(
            self.gap_estimator, method="in_sample", random_state=draw_seed(rng)
        )
        return gap._fit_checked(samples, labelled)

    def _held_out_scores(
        self, samples: Matrix, labels: ObservedLabels, rng: Generator
    ) -> Vector:
        """Score training samples, labelled against unlabelled, by cross-validation.

        With fewer than three labelled or unlabelled samples the scores are in-sample.
        """
        labelled = labels.labelled
        if isinstance(self.gap_estimator, GapClassifier):
            return self._fit_gap(samples, labelled, rng)._training_log_odds()
        model = self._make("gap_estimator", rng, require_score)
        observed = labelled.astype(np.int8)
        if not can_hold_out(smaller_group(labelled)):
            return score_of(model.fit(samples, observed), samples)
        has_decision = hasattr(model, "decision_function")
        scores: Array = cross_val_predict(
            model,
            samples,
            observed,
            cv=make_splitter(self.cv, labels, rng),
            n_jobs=self.n_jobs,
            method="decision_function" if has_decision else "predict_proba",
        )
        return scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return score_of(self.estimator_, samples)

    def _gives_probabilities(self) -> bool:
        """Return whether there are probabilities of the true label."""
        return False

    def _chance(self, X: Matrix) -> Vector:
        return 0.5 * (1.0 + self._decide(X))

    predict_proba = available_if(lambda self: self._gives_probabilities())(
        PUClassifier.predict_proba
    )


def score_of(estimator: Any, samples: Matrix) -> Vector:
    """Return the decision of a fitted classifier, else P(class 1) - P(class 0)."""
    if isinstance(estimator, GapClassifier):
        return estimator._log_odds_at(samples)
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


class PropensityMethod(MethodClassifier):
    """A method that learns how likely each positive is to be labelled."""

    def _gives_probabilities(self) -> bool:
        return True

    @abstractmethod
    def _propensity(self, samples: Matrix) -> Vector:
        """Return P(s=1 | x, Y=1) of checked samples."""

    def predict_propensity(self, X: Matrix) -> Vector:
        """Return P(s=1 | x, Y=1), the probability that a positive is labelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities.
        """
        return self._propensity(check_predict_input(self, X))


class PriorMethod(MethodClassifier):
    """A method that needs the class prior, from the user or read off held-out scores."""

    class_prior: float | None
    class_prior_: float
    estimate_: HiddenEstimate | None

    def _find_prior(self, labelled: Mask, scores: Callable[[], Vector]) -> None:
        self.estimate_ = None
        if self.class_prior is None:
            self.estimate_ = read(scores(), labelled)
            self.class_prior_ = self.estimate_.class_prior
            return
        share = float(labelled.mean())
        if self.class_prior < share:
            refuse(
                "class_prior must be at least the share of labelled samples, "
                f"{share:.3g}. Got {self.class_prior:.3g}."
            )
        self.class_prior_ = float(self.class_prior)
