"""The support vector machines of a fold, from one kernel matrix where possible."""

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import sklearn
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from probgap._core.estimators import SignClassifier, weigh_copies
from probgap._core.svm import FastSVC
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap.gap import GapClassifier, ObservedGapEstimator
from probgap.pgpu.steps import SoftLabels, Steps, TrainingRows, fit_final

# Beyond this many training rows a kernel matrix does not fit well into memory.
_MOST_ROWS = 12_000


@dataclass(eq=False)
class FitsOnFold:
    """Fits gap and final classifiers on a fold, with one kernel matrix where possible."""

    train: Matrix
    test: Matrix
    kernels: dict[float, tuple[Array, Array]] = field(default_factory=dict)

    def estimate_gap(self, steps: Steps, rows: TrainingRows, rng: Generator) -> Any:
        """Fit the gap estimator, by the kernel matrix of the final classifier if it can.

        The gap is the same up to rounding.
        """
        platt = _calibrated(steps.gap)
        apart = rows.group is None and platt is not None
        if not apart or not self._can_share(steps.final, platt.estimator):
            return steps.estimate_gap(rows, rng)
        svm = RowSVM(platt.estimator, self._kernel(platt.estimator)[0])
        options = {k: getattr(platt, k) for k in ("method", "cv", "ensemble")}
        by_rows = CalibratedClassifierCV(svm, **options)
        gap = clone(steps.gap).set_params(estimator=by_rows)
        numbers = replace(rows, samples=np.arange(rows.labelled.size)[:, None])
        return replace(steps, gap=gap).estimate_gap(numbers, rng)

    def fit_and_predict(self, estimator: Any, data: SoftLabels) -> Mask:
        """Fit to soft labels of training rows, and return which test rows are positive."""
        share = data.share
        is_hard = not ((share > 0.0) & (share < 1.0)).any()
        if is_hard and self._can_share(estimator):
            train, test = self._kernel(estimator)
            positive, negative = weigh_copies(share, data.weight)
            svm = RowSVM(estimator, train)
            svm.fit_on_all(positive > 0.0, positive + negative)
            return svm.decide(test[:, svm.support_]) > 0.0
        # If the kernel width depends on the rows, libsvm computes the values that it needs
        # faster than we could compute a new matrix of all rows.
        fitted = fit_final(estimator, data)
        if isinstance(fitted, FastSVC):
            return fitted.decision_function(self.test) > 0.0  # faster than predict
        return fitted.predict(self.test) == 1

    def _can_share(self, *svms: Any) -> bool:
        """Return whether SVMs have one kernel, which does not depend on the rows."""
        return (
            self.train.shape[0] <= _MOST_ROWS
            and all(map(_has_fixed_kernel, svms))
            and len({svm.gamma for svm in svms}) == 1
        )

    def _kernel(self, svm: SVC) -> tuple[Array, Array]:
        """Return kernel values of the training rows, and between test and training rows."""
        gamma = svm.gamma
        gamma = 1.0 / self.train.shape[1] if gamma == "auto" else float(gamma)
        if gamma not in self.kernels:
            self.kernels[gamma] = (
                rbf_kernel(self.train, gamma=gamma),
                rbf_kernel(self.test, self.train, gamma=gamma),
            )
        return self.kernels[gamma]


@dataclass(eq=False, repr=False)
class RowSVM(SignClassifier):
    """An SVM whose samples are numbers of rows of a kernel matrix.

    It is fitted to the whole matrix, with weight 0 for the other rows, which libsvm skips:
    no part of the matrix is copied.
    """

    svm: SVC
    kernel: Array

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.svm, self.kernel)  # the kernel is not copied

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit to some rows, and their labels of two classes."""
        self.classes_, which = np.unique(y, return_inverse=True)
        rows = np.ravel(X).astype(np.intp)
        positive, weight = np.zeros((2, len(self.kernel)))
        positive[rows], weight[rows] = which, 1.0
        return self.fit_on_all(positive > 0.0, weight)

    def fit_on_all(self, positive: Mask, weight: Vector) -> Self:
        """Fit to the rows that have weight."""
        svm = clone(self.svm).set_params(kernel="precomputed")
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            svm.fit(self.kernel, positive, sample_weight=weight)
        # libsvm counts support vectors among the rows that have weight.
        self.support_ = np.flatnonzero(weight)[svm.support_]
        self.coef_, self.intercept_ = svm.dual_coef_[0], svm.intercept_[0]
        return self

    def decide(self, kernel: Array) -> Vector:
        """Return decisions, given kernel values with the support vectors."""
        decision: Vector = kernel @ self.coef_ + self.intercept_
        return decision

    def _decide(self, X: Matrix) -> Vector:
        rows = np.ravel(X).astype(np.intp)
        return self.decide(self.kernel[np.ix_(rows, self.support_)])


def _calibrated(gap: GapClassifier) -> Any:
    """Return the estimator of the gap if it is a calibrated one, else None."""
    given: Any = gap.estimator if isinstance(gap, ObservedGapEstimator) else None
    # A subclass may do something else, unless it says that it does not.
    same = getattr(given, "_only_calibrates", False)
    if type(given) is not CalibratedClassifierCV and not same:
        return None
    # Another splitter may depend on the samples.
    known = given.cv is None or isinstance(given.cv, int | StratifiedKFold)
    return given if known else None


def _has_fixed_kernel(estimator: Any) -> bool:
    """Return whether the kernel does not depend on the rows that are fitted on."""
    return (
        type(estimator) in (SVC, FastSVC)
        and estimator.kernel == "rbf"
        and (estimator.gamma == "auto" or isinstance(estimator.gamma, Real))
        and estimator.class_weight is None
        and estimator.probability in (False, "deprecated")
    )
