"""Support vector machines: scikit-learn's with faster decisions, and one for many rows."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core._sklearn import rbf_width
from probgap._core.checks import check_predict_input, check_two_classes
from probgap._core.errors import warn
from probgap._core.estimators import SignClassifier
from probgap._core.kernels import (
    KernelFeatures,
    TrainingFeatures,
    map_training_samples,
    rbf_gamma,
)
from probgap._core.newton import SquaredHinge, fit_penalised
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Matrix, Vector

# Few enough kernel values at a time to stay in the processor's cache.
_BLOCK_VALUES = 2**18


class FastSVC(SVC):
    """scikit-learn's SVC, with faster decisions for two classes and an RBF kernel.

    libsvm computes kernel values one by one; in blocks they take a fraction of the
    time. The values are the same up to rounding.
    """

    def decision_function(self, X: Matrix) -> Vector:
        """Return the signed distance to the boundary, up to its scale."""
        check_is_fitted(self)
        sparse = issparse(X) or issparse(self.support_vectors_)
        if sparse or len(self.classes_) != 2 or self.kernel != "rbf":
            return super().decision_function(X)
        samples = validate_data(self, X, reset=False, dtype=np.float64)
        vectors, coef = self.support_vectors_, self.dual_coef_[0]
        with one_thread():
            sums = rbf_sums(samples, vectors, coef, rbf_width(self))
        return sums + self.intercept_[0]


def rbf_sums(samples: Matrix, vectors: Array, coef: Vector, gamma: float) -> Vector:
    """Return weighted sums of the kernel values with the support vectors."""
    # scikit-learn's rbf_kernel, without its checks of every small block.
    across = 2.0 * gamma * vectors.T
    length = gamma * np.einsum("ij,ij->i", vectors, vectors)
    decision = np.empty(samples.shape[0])
    size = max(1, _BLOCK_VALUES // max(1, vectors.shape[0]))
    for rows in gen_batches(samples.shape[0], size):
        block = samples[rows]
        kernel = block @ across
        kernel -= length
        kernel -= gamma * np.einsum("ij,ij->i", block, block)[:, None]
        np.minimum(kernel, 0.0, out=kernel)  # rounding must not make it more than one
        decision[rows] = np.exp(kernel, out=kernel) @ coef
    return decision


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemSVM(SignClassifier):
    """Linear SVM with squared hinge loss on Nystroem features of an RBF kernel.

    Time and memory grow with the number of samples, not with its square.
    """

    n_components: int = 300
    C: float = 1.0
    gamma: float | Literal["scale", "auto"] = "scale"
    max_iter: int = 100
    random_state: RandomStateLike = None

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit to labels of two classes."""
        samples, which = check_two_classes(self, X, y)
        gamma = rbf_gamma(self.gamma, samples)
        seed = draw_seed(as_generator(self.random_state))
        with one_thread():
            features = KernelFeatures.fit(samples, self.n_components, gamma, seed)
            training = map_training_samples(features, samples, which == 1, seed)
        return self.fit_on_features(training, which.astype(np.float64))

    def fit_on_features(
        self, features: TrainingFeatures, share: Vector, weight: Vector | None = None
    ) -> Self:
        """Fit to the share of each sample in the second class; NaN leaves it out."""
        share = share[features.rows]
        counts = np.isfinite(share).astype(np.float64)
        share = np.nan_to_num(share)
        if weight is not None:
            weighted = counts * weight[features.rows]
            # Ignore weights that are 0 for a whole class.
            if min(weighted @ share, weighted @ (1.0 - share)) > 0.0:
                counts = weighted
        if features.weight is not None:
            counts = counts * features.weight
        with one_thread():
            fits = fit_penalised(
                features.values,
                share,
                SquaredHinge(),
                1.0 / self.C,
                weight=counts,
                max_iter=self.max_iter,
            )
        if not fits.converged:
            warn(
                f"The support vector machine stopped after {fits.n_iter} iterations "
                "without converging. Scale the features, or use a smaller C.",
                ConvergenceWarning,
            )
        self.feature_map_ = features.map
        self.coef_, self.intercept_ = fits.coef[:, 0], float(fits.intercept[0])
        self.n_iter_ = fits.n_iter
        self.n_features_in_ = features.map.landmarks.shape[1]
        self.classes_ = getattr(self, "classes_", np.array([0, 1]))
        return self

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        with one_thread():
            return self.feature_map_.score(samples, self.coef_) + self.intercept_
