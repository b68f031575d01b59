"""A support vector machine in kernel features, for more samples than libsvm can take."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core.features import (
    KernelFeatures,
    TrainingFeatures,
    map_training_samples,
)
from probgap._core.kernels import scale_gamma
from probgap._core.newton import HeldRows, Ridge, SquaredHinge, fit_rows
from probgap._core.rng import RandomStateLike, as_generator, draw_seed
from probgap._core.threads import one_thread
from probgap._core.types import Matrix, Vector


class FeatureMachine(ClassifierMixin, BaseEstimator):
    """Support vector machine with squared hinge loss, linear in features of an RBF kernel.

    Time and memory grow with the number of samples, not with its square.

    Parameters
    ----------
    n_components : int, default=300
        Number of landmarks of the features.
    C : float, default=1.0
        Inverse strength of the ridge penalty.
    gamma : float or "scale", default="scale"
        Width of the kernel.
    random_state : int, Generator, RandomState or None, default=None
        Draws the landmarks.
    """

    def __init__(
        self,
        *,
        n_components: int = 300,
        C: float = 1.0,
        gamma: float | Literal["scale"] = "scale",
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.gamma = gamma
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
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
        gamma = scale_gamma(samples) if self.gamma == "scale" else self.gamma
        seed = draw_seed(as_generator(self.random_state))
        with one_thread():
            features = KernelFeatures.fit(samples, self.n_components, gamma, seed)
            training = map_training_samples(features, samples, which == 1, seed)
        return self.fit_on_features(training, which.astype(np.float64))

    def fit_on_features(
        self, features: TrainingFeatures, share: Vector, weight: Vector | None = None
    ) -> Self:
        """Fit to features made before.

        ``share`` is how much of each sample counts as the second class, NaN for one
        left out; ``weight`` is what the sample counts for in all.
        """
        share = share[features.rows]
        counts = np.isfinite(share).astype(np.float64)
        share = np.nan_to_num(share)
        if weight is not None:
            weighted = counts * weight[features.rows]
            # Weights that leave a whole class out leave nothing to learn it from.
            if min(weighted @ share, weighted @ (1.0 - share)) > 0.0:
                counts = weighted
        if features.weight is not None:
            counts = counts * features.weight
        rows = HeldRows(features.values, share, counts)
        with one_thread():
            fits = fit_rows(rows, SquaredHinge(), Ridge(1.0 / self.C))
        if not fits.converged:
            warnings.warn(
                f"The support vector machine stopped after {fits.n_iter} iterations "
                "without converging. Scale the features, or give a smaller C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.feature_map_ = features.map
        self.coef_, self.intercept_ = fits.coef[:, 0], float(fits.intercept[0])
        self.n_iter_ = fits.n_iter
        self.n_features_in_ = features.map.n_inputs
        self.classes_ = getattr(self, "classes_", np.array([0, 1]))
        return self

    def decision_function(self, X: Matrix) -> Vector:
        """Give the score of samples, positive on the side of the second class."""
        check_is_fitted(self)
        samples = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        with one_thread():
            return self.feature_map_.score(samples, self.coef_) + self.intercept_

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Give the class of samples."""
        positive = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return predicted
