"""The classifier of the default: learners fitted on soft labels and mixed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core.learners import Mixture, fit_usual
from probgap._core.rng import RandomStateLike, as_generator, draw_seed
from probgap._core.threads import one_thread
from probgap._core.types import Mask, Matrix, Vector


class MixedClassifier(ClassifierMixin, BaseEstimator):
    """Mix kernel and linear logistic regression, a forest and boosted trees.

    The weights of the learners minimise held-out log-loss. :meth:`fit_on_shares` takes
    soft labels, the share of each sample that counts as positive.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds, landmarks and trees.
    n_jobs : int, default=None
        Number of learners to fit at once, each in a thread.

    Attributes
    ----------
    mixture_ : Mixture
        The fitted learners and their weights.
    held_out_ : ndarray of shape (n_samples,)
        Log-odds of the training samples, by models that have not seen them.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_ : int
        Number of features seen in ``fit``.
    """

    mixture_: Mixture
    held_out_: Vector

    def __init__(
        self, *, random_state: RandomStateLike = None, n_jobs: int | None = None
    ) -> None:
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        """Say that there are two classes and that sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit to labels of two classes."""
        samples, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        check_classification_targets(labels)
        self.classes_, which = np.unique(labels, return_inverse=True)
        if self.classes_.size != 2:
            msg = (
                "Only binary classification is supported. y must have two classes. "
                f"Got {self.classes_.size} class(es)."
            )
            raise ValueError(msg)
        weight = np.ones(which.size)
        return self._fit(samples, which.astype(np.float64), weight, which == 1)

    def fit_on_shares(
        self, samples: Matrix, share: Vector, weight: Vector, labelled: Mask
    ) -> Self:
        """Fit to the share of each sample that counts as positive; NaN leaves it out.

        Folds hold labelled and unlabelled samples evenly.
        """
        self.classes_, self.n_features_in_ = np.array([0, 1]), samples.shape[1]
        used = np.isfinite(share) & (weight > 0.0)
        if used.all():
            return self._fit(samples, share, weight, labelled)
        self._fit(samples[used], share[used], weight[used], labelled[used])
        held_out = np.empty(share.size)
        held_out[used] = self.held_out_
        held_out[~used] = self.decision_function(samples[~used])
        self.held_out_ = held_out
        return self

    def _fit(self, samples: Matrix, share: Vector, weight: Vector, group: Mask) -> Self:
        seed = draw_seed(as_generator(self.random_state))
        with one_thread():
            fitted = fit_usual(samples, share, weight, group, seed, n_jobs=self.n_jobs)
        assert isinstance(fitted.learner, Mixture)
        self.mixture_, self.held_out_ = fitted.learner, fitted.held_out
        return self

    def decision_function(self, X: Matrix) -> Vector:
        """Return the log-odds of the second class."""
        check_is_fitted(self)
        samples = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        with one_thread():
            return self.mixture_.log_odds(samples)

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return the probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Return the likelier class of each sample."""
        positive = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return predicted
