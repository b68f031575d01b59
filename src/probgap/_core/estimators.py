"""What classifiers share: predictions of the true label, soft labels as weights."""

from __future__ import annotations

from abc import abstractmethod
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from probgap._core.errors import InvalidInputError
from probgap._core.runtime import draw_seed
from probgap._core.types import Matrix, Vector


class SignClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of two classes by the sign of a score."""

    classes_: NDArray[Any]
    positive_index_: int = 1

    @abstractmethod
    def _decide(self, X: Matrix) -> NDArray[np.float64]:
        """Return a score that is above 0 where the sample looks positive."""

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Return a score that is above 0 exactly where ``predict`` is positive.

        That is, where it is ``classes_[1]``: if ``pos_label`` makes the lesser value
        positive, the sign turns with it, as scikit-learn's scorers expect.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The score: of the observed gap itself, of other classifiers the decision of
            the final one or, where that gives probabilities, their difference.
        """
        decision = self._decide(X)
        return decision if self.positive_index_ == 1 else -decision

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Predict the class of each sample: the true label, if not of a gap estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self._decide(X) > 0.0
        at = np.where(positive, self.positive_index_, 1 - self.positive_index_)
        predicted: NDArray[Any] = self.classes_[at]
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


# A copy of a sample with less weight than this share of the largest changes little but
# the run time, and so does less than that part of a sample.
_NEGLIGIBLE = 1e-3
_SMALLEST_PART = 0.02


def clone_with_seed(estimator: Any, rng: np.random.Generator) -> Any:
    """Clone an estimator and fill in each ``random_state`` that was left at None."""
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
    """Refuse an estimator that takes no weights, or gives nothing to decide by."""
    # Meta-estimators pass on what they are given.
    takes_weights = has_fit_parameter(estimator, "sample_weight") or any(
        parameter.kind is Parameter.VAR_KEYWORD
        for parameter in signature(estimator.fit).parameters.values()
    )
    if isinstance(estimator, Pipeline) or not takes_weights:
        msg = (
            f"{name} must accept sample_weight in fit, which carries the outcome of the "
            f"relabelling; put scalers and the like in front of it all. Got {estimator!r}."
        )
        raise InvalidInputError(msg)
    if not any(hasattr(estimator, m) for m in ("decision_function", "predict_proba")):
        msg = f"{name} must have decision_function or predict_proba. Got {estimator!r}."
        raise InvalidInputError(msg)


def fit_on_shares(
    estimator: Any, samples: Matrix, share: Vector, weight: Vector
) -> None:
    """Fit on each sample as a positive, as a negative, or as a share of each."""
    positive, negative = weigh_copies(share, weight)
    rows = np.flatnonzero(positive), np.flatnonzero(negative)
    y = np.repeat([1, 0], [rows[0].size, rows[1].size])
    weights = np.concatenate([positive[rows[0]], negative[rows[1]]])
    estimator.fit(samples[np.concatenate(rows)], y, sample_weight=weights)


def weigh_copies(share: Vector, weight: Vector) -> tuple[Vector, Vector]:
    """Return what each sample counts for as a positive, and as a negative; 0 if nothing."""
    part = np.where(np.isfinite(share), share, 0.0)
    copies = weight * part, weight * (1.0 - part)
    if min(copy.max() for copy in copies) <= 0.0:
        # The weights left a whole class out, and nothing to learn it from.
        used = np.isfinite(share).astype(np.float64)
        copies = used * part, used * (1.0 - part)
    positive, negative = (
        np.where(copy > _NEGLIGIBLE * copy.max(), copy, 0.0) for copy in copies
    )
    return positive, negative


def round_shares(share: Vector) -> Vector:
    """Take a small part of a sample for nothing, if both classes remain."""
    rounded = round_small_parts(share)
    both = np.nanmin(rounded) < 1.0 and np.nanmax(rounded) > 0.0
    return rounded if both else share


def round_small_parts(share: Vector) -> Vector:
    """Take a small part of a sample for nothing: fewer copies take far less time."""
    rounded = np.where(share < _SMALLEST_PART, 0.0, share)
    return np.where(share > 1.0 - _SMALLEST_PART, 1.0, rounded)
