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
        """Declare two classes and sparse input."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


# A copy of a sample with less weight than this share of the largest changes little but
# the run time.
_NEGLIGIBLE = 1e-3
# And so does less than this of a sample.
_SMALLEST_PART = 0.02


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
    """Refuse an estimator that takes no weights, or gives nothing to decide by."""
    if isinstance(estimator, Pipeline) or not _takes_weights(estimator):
        msg = (
            f"{name} must accept sample_weight in fit, which carries the outcome of the "
            f"relabelling; put scalers and the like in front of it all. Got {estimator!r}."
        )
        raise InvalidInputError(msg)
    if not any(hasattr(estimator, m) for m in ("decision_function", "predict_proba")):
        msg = f"{name} must have decision_function or predict_proba. Got {estimator!r}."
        raise InvalidInputError(msg)


def _takes_weights(estimator: Any) -> bool:
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    # Meta-estimators pass on what they are given.
    parameters = signature(estimator.fit).parameters.values()
    return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)


def fit_on_shares(
    estimator: Any, samples: Matrix, share: Vector, weight: Vector
) -> None:
    """Fit on each sample as a positive, as a negative, or as a part of each.

    ``share`` is how much of a sample counts as positive, NaN for one left out;
    ``weight`` is what the sample counts for in all.
    """
    copies = weigh_copies(share, weight)
    rows = [np.flatnonzero(copy) for copy in copies]
    both = np.concatenate(rows)
    y = np.repeat([1, 0], [rows[0].size, rows[1].size])
    weights = np.concatenate(
        [copy[row] for copy, row in zip(copies, rows, strict=True)]
    )
    estimator.fit(samples[both], y, sample_weight=weights)


def weigh_copies(share: Vector, weight: Vector) -> tuple[Vector, Vector]:
    """Return what each sample counts for as a positive, and as a negative; 0 if nothing."""
    copies = split_copies(share, weight)
    most = [float(copy.max()) for copy in copies]
    if min(most) <= 0.0:
        # The weights left a whole class out, and nothing to learn it from.
        copies = split_copies(share, np.isfinite(share).astype(np.float64))
        most = [float(copy.max()) for copy in copies]
    positive, negative = map(without_negligible, copies, most)
    return positive, negative


def split_copies(share: Vector, weight: Vector) -> tuple[Vector, Vector]:
    """Split the weight of samples by their share; one left out counts for nothing."""
    share = np.where(np.isfinite(share), share, 0.0)
    return weight * share, weight * (1.0 - share)


def without_negligible(copy: Vector, most: float) -> Vector:
    """Return 0 where copies of samples weigh next to nothing beside the largest."""
    return np.where(copy > _NEGLIGIBLE * most, copy, 0.0)


def round_shares(share: Vector) -> Vector:
    """Take a small part of a sample for nothing, if both classes remain.

    Fewer copies of samples take a machine far less time.
    """
    rounded = round_small_parts(share)
    one_sided = is_one_sided(float(np.nanmin(rounded)), float(np.nanmax(rounded)))
    return share if one_sided else rounded


def round_small_parts(share: Vector) -> Vector:
    """Take a small part of a sample for nothing."""
    rounded = np.where(share < _SMALLEST_PART, 0.0, share)
    return np.where(share > 1.0 - _SMALLEST_PART, 1.0, rounded)


def is_one_sided(least: float, most: float) -> bool:
    """Tell whether shares between these leave but one class."""
    return least >= 1.0 or most <= 0.0
