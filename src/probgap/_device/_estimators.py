"""Classifiers that are fitted on a device, and decide there or, without it, here."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from probgap._core.errors import InvalidInputError, ProbgapError
from probgap._core.estimators import weigh_copies
from probgap._core.kernels import scale_gamma
from probgap._core.runtime import RandomStateLike, one_thread, remark
from probgap._core.svm import rbf_sums
from probgap._core.types import Matrix, Vector
from probgap._device._machines import MachineSolutions, solve_machines
from probgap._device._stream import stream_decisions
from probgap._device._torch import Device, open_device

_SAMPLES: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}


class DeviceMachine(ClassifierMixin, BaseEstimator):
    """Support vector machine with an RBF kernel and hinge loss, solved on a device.

    The same optimum as scikit-learn's ``SVC`` for two classes, to within the duality
    gap, for as many samples as a GPU can multiply a kernel of. What is learnt are
    numpy arrays: without torch, or without the device, decisions are made here.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    gamma : float or "scale", default="scale"
        Width of the kernel.
    tol : float, default=1e-4
        The duality gap, as a share of the primal objective.
    device : str, default="cpu"
        torch's name of the device: "cuda", "cuda:0", or "cpu".
    verbose : int, default=0
        With 1, says on standard error what is kept in memory.
    random_state : int, Generator, RandomState or None, default=None
        Not used: nothing is drawn. It is here because other final classifiers have it.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_support, n_features)
        Samples with weight in the decision.
    dual_coef_ : ndarray of shape (1, n_support)
        Those weights: label times dual variable.
    intercept_ : ndarray of shape (1,)
        Added to the decision.
    dual_objective_, duality_gap_, kkt_residual_ : float
        Evidence: the objective, its relative distance from the primal one, and how far
        a unit step against the gradient moves a dual variable.
    converged_ : bool
        Whether the gap is at most ``tol``.
    n_iter_ : int
        Steps of the interior point method.
    n_passes_ : float
        Products with the kernel, in values of the whole one.
    bytes_moved_ : float
        Bytes that these products read or wrote.
    plan_ : str
        What was kept in memory, of the largest part.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        gamma: float | Literal["scale"] = "scale",
        tol: float = 1e-4,
        device: str = "cpu",
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to labels of two classes."""
        samples, labels = validate_data(self, X, y, **_SAMPLES)
        check_classification_targets(labels)
        classes, which = np.unique(labels, return_inverse=True)
        weight = _check_sample_weight(sample_weight, samples, ensure_non_negative=True)
        if classes.size != 2:
            msg = (
                "Only binary classification is supported. y must have two classes. "
                f"Got {classes.size} class(es)."
            )
            raise InvalidInputError(msg)
        if min(weight[which == k].max() for k in (0, 1)) <= 0.0:
            msg = "sample_weight must be positive for some sample of each class. Got 0."
            raise InvalidInputError(msg)
        counted = np.flatnonzero(weight)
        self._solve(samples, counted, which[counted] == 1, weight[counted])
        self.classes_ = classes
        return self

    def fit_on_shares(self, samples: Matrix, share: Vector, weight: Vector) -> Self:
        """Fit on each sample as a positive, as a negative, or as a part of each.

        As :func:`probgap._core.estimators.fit_on_shares`, without a second copy of a
        sample that counts for both.
        """
        copies = weigh_copies(share, weight)
        rows = [np.flatnonzero(copy) for copy in copies]
        both = np.concatenate(rows)
        positive = np.repeat([True, False], [rows[0].size, rows[1].size])
        weights = np.concatenate(
            [copy[row] for copy, row in zip(copies, rows, strict=True)]
        )
        self._solve(samples, both, positive, weights)
        self.classes_, self.n_features_in_ = np.array([0, 1]), samples.shape[1]
        return self

    def _solve(
        self,
        samples: Matrix,
        rows: NDArray[np.intp],
        positive: NDArray[np.bool_],
        weight: Vector,
    ) -> None:
        used, at = np.unique(rows, return_inverse=True)
        alone = used.size == rows.size
        if alone:
            used, at = rows, np.arange(rows.size)
        dense = as_dense(samples[used])
        gamma = scale_gamma(samples[rows]) if self.gamma == "scale" else self.gamma
        device = open_device(self.device)
        with one_thread():
            solved = solve_machines(
                device,
                dense,
                positive,
                self.C * weight[:, None],
                gamma=gamma,
                tol=self.tol,
                rows=None if alone else at,
                say=remark if self.verbose else None,
            )
        self._store(dense, gamma, solved, 0, at)
        warn_unless_converged(solved, self.tol)

    def _store(
        self,
        samples: Vector,
        gamma: float,
        solved: MachineSolutions,
        column: int,
        at: NDArray[np.intp],
    ) -> Self:
        """Keep one of the machines that were solved together."""
        coef = np.bincount(at, solved.coef[:, column], minlength=samples.shape[0])
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

    def decision_function(self, X: Matrix) -> Vector:
        """Give the score of samples, positive on the side of the second class."""
        check_is_fitted(self)
        samples = as_dense(validate_data(self, X, **_SAMPLES, reset=False))
        return decide(self, samples)

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Give the class of samples."""
        positive = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return predicted


class DevicePlatt(ClassifierMixin, BaseEstimator):
    """A machine whose decisions are turned into probabilities by a sigmoid.

    Parameters
    ----------
    machine : DeviceMachine
        A fitted machine.
    slope, offset : float
        P(y=1 | x) is ``expit(-(slope * decision + offset))``, as Platt (1999) has it.
    """

    def __init__(self, machine: DeviceMachine, slope: float, offset: float) -> None:
        self.machine = machine
        self.slope = slope
        self.offset = offset
        self.classes_ = np.array([0, 1])

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Give the chance of each class."""
        chance = self.chance(self.machine.decision_function(X))
        return np.column_stack([1.0 - chance, chance])

    def chance(self, decision: Vector) -> Vector:
        """Turn decisions into chances of the second class."""
        result: Vector = expit(-(self.slope * decision + self.offset))
        return result


def warn_unless_converged(solved: MachineSolutions, tol: float) -> None:
    """Warn of machines that were solved together, if one is not what was asked for."""
    if not solved.converged.all():
        warnings.warn(
            f"The support vector machine must meet tol={tol:g}. Got a relative duality "
            f"gap of {solved.duality_gap.max():.2g}. Scale the features, or give a "
            "smaller C or a larger tol.",
            ConvergenceWarning,
            stacklevel=4,
        )


def decide(machine: DeviceMachine, samples: NDArray[np.float64]) -> Vector:
    """Decide on the device if it is there, and on the processor if not."""
    device = _device_or_none(machine.device)
    learnt = (machine.support_vectors_, machine.dual_coef_[0], machine.gamma_)
    with one_thread():
        if device is None:
            decision = rbf_sums(samples, *learnt)
        else:
            decision = stream_decisions(device, samples, *learnt)
    return decision + machine.intercept_[0]


def _device_or_none(name: str) -> Device | None:
    try:
        return open_device(name)
    except ProbgapError:
        return None


def as_dense(samples: Matrix) -> NDArray[np.float64]:
    """Give rows as they are sent to a device."""
    dense = samples.toarray() if issparse(samples) else samples
    return np.asarray(dense, dtype=np.float64)
