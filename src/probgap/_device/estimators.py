"""SVMs that are fitted on a device, and predict there or with numpy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core._sklearn import SigmoidCalibration, check_sample_weight
from probgap._core.checks import check_two_classes
from probgap._core.errors import InvalidInputError, ProbgapError
from probgap._core.estimators import SignClassifier
from probgap._core.kernels import rbf_gamma
from probgap._core.runtime import one_thread, remark
from probgap._core.svm import rbf_sums
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap._device.arrays import open_device
from probgap._device.kernel import stream_decisions
from probgap._device.svm import SVMSolutions, solve_svms

_TOL = 1e-4
# Most SVMs that are solved together: the memory beside the kernel grows with their number.
_MOST = 48


class DeviceSVM(SignClassifier):
    """scikit-learn's ``SVC`` with an RBF kernel, for two classes, solved on a device.

    The fitted attributes are numpy arrays: without torch, or without the device, numpy
    computes the decisions.

    Parameters
    ----------
    C, gamma : float, or "scale" or "auto" for gamma
        As those of ``SVC``.
    tol : float, default=1e-4
        The duality gap, as a share of the primal objective.
    device : str, default="cpu"
        torch's name of the device: "cuda", "cuda:0", or "cpu".
    verbose : int, default=0
        With 1, reports on standard error what is kept in memory.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, gamma_ : ndarray, float
        As those of ``SVC``.
    dual_objective_, duality_gap_, kkt_residual_, converged_ : float, bool
        The dual objective, its relative distance from the primal one, the largest move in a
        projected unit gradient step, and whether ``tol`` is met.
    n_iter_, n_passes_, bytes_moved_, plan_ : int, float, float, str
        Steps, equivalent number of products with the whole kernel, bytes that these read
        or wrote, and the memory plan of the largest part.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        gamma: float | Literal["scale", "auto"] = "scale",
        tol: float = _TOL,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.device = device
        self.verbose = verbose

    def fit(
        self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to labels of two classes."""
        samples, which = check_two_classes(self, X, y)
        weight = check_sample_weight(sample_weight, samples, ensure_non_negative=True)
        if min(weight[which == k].max() for k in (0, 1)) <= 0.0:
            msg = "sample_weight must be positive for some sample of each class. Got 0."
            raise InvalidInputError(msg)
        counted = np.flatnonzero(weight)
        dense = as_dense(samples[counted])
        gamma = rbf_gamma(self.gamma, dense)
        caps = self.C * weight[counted, None]
        solved = _solve(self, dense, which[counted] == 1, caps, gamma)
        return self._store(dense, gamma, solved, 0)

    def _store(
        self, samples: Array, gamma: float, solved: SVMSolutions, column: int
    ) -> Self:
        """Store one of the SVMs that were solved together."""
        coef = solved.coef[:, column]
        self.support_ = np.flatnonzero(coef)
        self.support_vectors_ = samples[self.support_]
        self.dual_coef_ = coef[self.support_][None, :]
        self.intercept_ = solved.intercept[[column]]
        self.gamma_ = float(gamma)
        self.dual_objective_ = float(solved.dual_objective[column])
        self.duality_gap_ = float(solved.duality_gap[column])
        self.kkt_residual_ = float(solved.kkt_residual[column])
        self.converged_ = bool(solved.converged[column])
        self.n_iter_, self.n_passes_ = solved.n_iter, solved.n_passes
        self.bytes_moved_, self.plan_ = solved.bytes_moved, str(solved.plan)
        return self

    def _decide(self, X: Matrix) -> Vector:
        check_is_fitted(self)
        samples = as_dense(validate_data(self, X, accept_sparse="csr", reset=False))
        learnt = samples, self.support_vectors_, self.dual_coef_[0], self.gamma_
        with one_thread():
            try:
                decision = stream_decisions(open_device(self.device), *learnt)
            except ProbgapError:
                decision = rbf_sums(*learnt)
        return decision + self.intercept_[0]


class DevicePlatt(ClassifierMixin, BaseEstimator):
    """An SVM with Platt scaling.

    Parameters
    ----------
    machine : DeviceSVM
        A fitted SVM.
    slope, offset : float
        P(y=1 | x) is ``expit(-(slope * decision + offset))``, as in Platt (1999).
    """

    def __init__(self, machine: DeviceSVM, slope: float, offset: float) -> None:
        self.machine = machine
        self.slope = slope
        self.offset = offset
        self.classes_ = np.array([0, 1])

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probability of each class."""
        chance = self.chance(self.machine.decision_function(X))
        return np.column_stack([1.0 - chance, chance])

    def chance(self, decision: Vector) -> Vector:
        """Return the probability of the second class, given decisions."""
        result: Vector = expit(-(self.slope * decision + self.offset))
        return result


@dataclass(frozen=True, slots=True)
class PlattTask:
    """Training rows, and those that each fold holds out; tasks have equally many folds."""

    train: Mask
    held_out: list[Mask]


def fit_platt(
    samples: Matrix,
    labelled: Mask,
    tasks: Sequence[PlattTask],
    *,
    device: str,
    gamma: float | str = "scale",
    verbose: int = 0,
    most: int = _MOST,
) -> tuple[DevicePlatt, list[Vector]]:
    """Fit a Platt-scaled SVM for each task; all share the kernel of all samples.

    The sigmoid is fitted to the held-out decisions of the folds. Returns the classifier of
    the first task and, for each task, the probability of every sample to be labelled.
    """
    dense = as_dense(samples)
    width = rbf_gamma(gamma, dense)
    plain = DeviceSVM(device=device, verbose=verbose)
    n_svms = 1 + len(tasks[0].held_out)
    fitted: list[DevicePlatt] = []
    chances: list[Vector] = []
    for some in gen_batches(len(tasks), max(1, most // n_svms)):
        caps = [
            task.train & ~fold
            for task in tasks[some]
            for fold in (~task.train, *task.held_out)
        ]
        solved = _solve(plain, dense, labelled, 1.0 * np.column_stack(caps), width)
        for task, column in zip(tasks[some], range(0, len(caps), n_svms), strict=True):
            decision = np.empty(labelled.size)
            for k, fold in enumerate(task.held_out, start=column + 1):
                decision[fold] = solved.decision[fold, k]
            sigmoid = SigmoidCalibration().fit(
                decision[task.train], labelled[task.train].astype(np.int8)
            )
            svm = DeviceSVM(device=device)._store(dense, width, solved, column)
            svm.classes_, svm.n_features_in_ = np.array([0, 1]), dense.shape[1]
            fitted.append(DevicePlatt(svm, float(sigmoid.a_), float(sigmoid.b_)))
            chances.append(fitted[-1].chance(solved.decision[:, column]))
    return fitted[0], chances


def _solve(
    svm: DeviceSVM, samples: Array, positive: Mask, caps: Array, gamma: float
) -> SVMSolutions:
    """Solve SVMs with the settings of ``svm``, and warn if some did not converge."""
    with one_thread():
        solved = solve_svms(
            open_device(svm.device),
            samples,
            positive,
            caps,
            gamma=gamma,
            tol=svm.tol,
            report=remark if svm.verbose else None,
        )
    if not solved.converged.all():
        warnings.warn(
            f"The support vector machine did not meet tol={svm.tol:g}: the relative "
            f"duality gap is {solved.duality_gap.max():.2g}. Scale the features, or use a "
            "smaller C or a larger tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solved


def as_dense(samples: Matrix) -> Array:
    """Return samples as a dense array in double precision."""
    dense = samples.toarray() if issparse(samples) else samples
    return np.asarray(dense, dtype=np.float64)
