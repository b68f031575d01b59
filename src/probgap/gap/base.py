"""Base class of gap estimators, built on P(s=1 | x)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from probgap._core.checks import ObservedLabels, check_fit_inputs, check_predict_input
from probgap._core.defaults import DEFAULTS
from probgap._core.estimators import SignClassifier
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Matrix, Vector


class GapClassifier(TransformerMixin, SignClassifier):
    """A classifier of labelled against unlabelled whose decision is the observed gap."""

    pos_label: object
    random_state: RandomStateLike
    observed_gap_: Vector
    # Whether samples in single precision are left as they are.
    _keeps_single: ClassVar[bool] = False
    # Added to log-odds to correct for labelled samples that were drawn more often.
    log_odds_shift_: float = 0.0

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier of labelled against unlabelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels: labelled positive, or unlabelled.

        Returns
        -------
        GapClassifier
            The fitted estimator.
        """
        samples, labels = check_fit_inputs(
            self, X, y, self.pos_label, single=self._keeps_single
        )
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self._fit(samples, labels, as_generator(self.random_state))
        return self

    @abstractmethod
    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
        """Fit to checked input, and set ``observed_gap_``."""

    @abstractmethod
    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        """Return P(s=1 | x) as fitted, without the correction for sampling weights."""

    def _training_log_odds(self) -> Vector:
        """Return the log-odds that each training sample is labelled."""
        return log_odds_of(self.observed_gap_)

    def _correct_odds(self, weight: Vector, labelled: NDArray[np.bool_]) -> None:
        """Multiply the odds by the ratio of the two groups' sampling weights."""
        shift = float(np.log(weight[labelled].mean() / weight[~labelled].mean()))
        self.log_odds_shift_ = shift
        chance = expit(logit(0.5 * (1.0 + self.observed_gap_)) + shift)
        self.observed_gap_ = gap_of(chance)

    def _chance(self, X: Matrix) -> Vector:
        """Return P(s=1 | x), the probability of being labelled."""
        chance = self._uncorrected_chance(check_predict_input(self, X))
        if self.log_odds_shift_ == 0.0:
            return chance
        return np.asarray(expit(logit(chance) + self.log_odds_shift_))

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return the probabilities of being unlabelled and of being labelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        chance = self._chance(X)
        columns = [1.0 - chance, chance]
        return np.column_stack(columns[:: 1 if self.positive_index_ == 1 else -1])

    def _decide(self, X: Matrix) -> Vector:
        return gap_of(self._chance(X))

    def transform(self, X: Matrix) -> NDArray[np.float64]:
        """Return the observed gap as a column, for use inside a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            The gap, in [-1, 1].
        """
        return gap_of(self._chance(X))[:, None]

    def get_feature_names_out(
        self,
        input_features: ArrayLike | None = None,  # noqa: ARG002 (scikit-learn passes it)
    ) -> NDArray[Any]:
        """Return the name of the column of ``transform``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used: the gap is one column whatever the input.

        Returns
        -------
        ndarray of shape (1,)
            ``["observed_gap"]``.
        """
        check_is_fitted(self)
        return np.array(["observed_gap"], dtype=object)


def gap_of(chance: Vector) -> Vector:
    """Return the gap for a probability of being labelled."""
    return np.clip(2.0 * np.asarray(chance, dtype=np.float64) - 1.0, -1.0, 1.0)


def log_odds_of(observed_gap: Vector) -> Vector:
    """Return the log-odds of being labelled, clipped away from certainty."""
    least = DEFAULTS.least_probability
    chance = np.clip(0.5 * (1.0 + observed_gap), least, 1.0 - least)
    return np.asarray(logit(chance))
