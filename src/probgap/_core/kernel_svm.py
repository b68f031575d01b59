"""Support vector machines with exact kernels, several with one kernel at a time.

The dual variables of an SVM, times the labels, solve a quadratic programme whose sum is 0.
Those of weighted SVMs, and of the folds of Platt scaling, differ in their bounds alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core._sklearn import SigmoidCalibration, check_sample_weight
from probgap._core.arrays import Tensor, open_device
from probgap._core.checks import check_two_classes
from probgap._core.errors import refuse, warn
from probgap._core.estimators import SignClassifier
from probgap._core.hessian import Blocks, Hessian
from probgap._core.kernels import as_dense, rbf_gamma
from probgap._core.quadratic import Best, Programme, State, follow_barrier
from probgap._core.runtime import one_thread
from probgap._core.svm import rbf_sums
from probgap._core.types import Array, Mask, Matrix, Vector

_TOL = 1e-4
# Most SVMs that are solved together: the memory beside the kernel grows with their number.
_MOST = 48
# Rank of the preconditioner, as a multiple of n and of its square root, whichever is less.
_RANK_SHARE, _RANK_ROOT = 0.25, 8.0
# Variables this near to a bound, as a share of its width, are rounded to it. After
# _IN_VAIN failures only nearer ones are; and a duality gap of _ENOUGH times the tolerance is
# accepted without rounding, as many variables may be near a bound but not at it.
_NEAR, _NEARER = 0.05, 1e-3
_IN_VAIN = 3
_ENOUGH = 0.1
# Tolerance of the equality constraint, as a share of the sum of all ranges.
_BALANCED = 1e-12


@dataclass(frozen=True, slots=True)
class SVMSolutions:
    """Dual solutions of SVMs, one column or number for each.

    ``coef`` is label times dual variable, ``decision`` that of each sample, ``duality_gap``
    a share of the primal objective, ``kkt_residual`` the largest move of a dual variable in
    a projected unit gradient step.
    """

    coef: Array
    decision: Array
    intercept: Vector
    dual_objective: Vector
    duality_gap: Vector
    kkt_residual: Vector
    converged: NDArray[np.bool_]
    n_iter: int


def solve_svms(
    samples: Array,
    positive: Mask,
    caps: Array,
    *,
    gamma: float,
    tol: float = _TOL,
    device: str | None = None,
) -> SVMSolutions:
    """Solve the duals of SVMs with hinge loss that differ in their sample weights.

    ``caps`` are the upper bounds of the dual variables of each SVM, C times the sample
    weight, 0 for samples left out; each SVM has both classes.
    """
    arrays, n = open_device(device), len(samples)
    with one_thread(), arrays.computing():
        blocks = Blocks(samples, samples, "rbf", {"gamma": gamma}, arrays, single=True)
        rank = max(1, int(min(_RANK_ROOT * np.sqrt(n), _RANK_SHARE * n)))
        hessian = Hessian.exact(blocks, np.ones(n), rank, 1.0)
        sign = arrays.put(np.where(positive, 1.0, -1.0)[:, None])
        cap, zero = arrays.put(caps), arrays.zeros(caps.shape[1])
        programme = Programme(
            arrays,
            linear=sign + 0.0 * cap,
            lower=-cap * (sign < 0.0),
            upper=cap * (sign > 0.0),
            low=zero,
            high=zero,
        )
        best, steps = _solve(hessian, programme, tol)
        _gap, level = programme.gap(best.x, best.gradient)
        get = arrays.get
        return SVMSolutions(
            coef=get(best.x),
            decision=get(best.gradient + sign + level),
            intercept=get(level),
            dual_objective=get(-best.objective),
            duality_gap=get(best.relative_gap),
            kkt_residual=get(best.kkt_residual),
            converged=get(best.is_good_enough),
            n_iter=steps,
        )


def _solve(hessian: Hessian, programme: Programme, tol: float) -> tuple[Best, int]:
    """Solve until solutions, with variables rounded to bounds, meet ``tol``."""
    xp, zero = programme.arrays.xp, programme.low
    inner, rounded = (Best(programme, tol, reference=zero) for _ in range(2))
    in_vain = 0.0 * zero

    def is_solved(state: State) -> Tensor:
        """Round what meets ``tol``; return which still do, or need no rounding."""
        nonlocal in_vain
        inner.update(state.x, state.gradient)
        rounded.bound = xp.maximum(rounded.bound, inner.bound)
        good = inner.is_good_enough
        late = in_vain >= _IN_VAIN
        if bool((good & ~rounded.is_good_enough).any()):
            x = _round(programme, state, xp.where(late, _NEARER, _NEAR))
            rounded.update(x, hessian.product(x, careful=True) - programme.linear)
            in_vain = in_vain + 1.0 * good
        enough = late & (inner.relative_gap <= _ENOUGH * tol)
        return rounded.is_good_enough | enough

    start = _first_point(programme, hessian)
    steps = follow_barrier(hessian, programme, zero, start, is_solved)
    # Solutions that could not be rounded are taken as they are.
    better = rounded.is_good_enough | (rounded.objective < inner.objective)
    rounded.x = xp.where(better, rounded.x, inner.x)
    rounded.gradient = xp.where(better, rounded.gradient, inner.gradient)
    rounded.objective = xp.where(better, rounded.objective, inner.objective)
    return rounded, steps


def _first_point(programme: Programme, hessian: Hessian) -> Tensor:
    """Return a feasible point with balanced classes, scaled to minimise the objective."""
    xp = programme.arrays.xp
    positive, negative = programme.upper.sum(axis=0), -programme.lower.sum(axis=0)
    less = 0.5 * xp.minimum(positive, negative)
    x = programme.upper * (less / positive) + programme.lower * (less / negative)
    bend = (x * hessian.thin_product(x)).sum(axis=0)
    return x * xp.clip((x * programme.linear).sum(axis=0) / bend, 1e-6, 1.0)


def _round(programme: Programme, state: State, near: Tensor) -> Tensor:
    """Round variables near a bound to it, if the multiplier exceeds the relative slack."""
    xp, x, n = programme.arrays.xp, state.x, state.x.shape[0]
    width = programme.upper - programme.lower
    at_lower, at_upper = (
        (slack <= near * width) & (slack <= multiplier * width)
        for slack, multiplier in (
            (x - programme.lower, state.multipliers[:n]),
            (programme.upper - x, state.multipliers[n:-2]),
        )
    )
    fixed = xp.where(at_upper, programme.upper, x)
    fixed = xp.where(at_lower, programme.lower, fixed)
    at_bound = at_lower | at_upper
    others = replace(
        programme,
        lower=xp.where(at_bound, fixed, programme.lower),
        upper=xp.where(at_bound, fixed, programme.upper),
    )
    rounded = others.project(fixed)
    missing = xp.abs(programme.high - rounded.sum(axis=0))
    balanced = missing <= _BALANCED * width.sum(axis=0)
    return xp.where(balanced, rounded, programme.project(x))


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSVM(SignClassifier):
    """scikit-learn's ``SVC`` with an RBF kernel, for two classes, solved on any arrays.

    The fitted attributes are numpy arrays, and numpy computes the decisions: without torch,
    or without the device.

    Parameters
    ----------
    C, gamma : float, or "scale" or "auto" for gamma
        As those of ``SVC``.
    tol : float, default=1e-4
        The duality gap, as a share of the primal objective.
    device : str, default=None
        torch's name of a device: "cuda", "cuda:0", or "cpu"; ``None`` takes numpy.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, gamma_ : ndarray, float
        As those of ``SVC``.
    dual_objective_, duality_gap_, kkt_residual_, converged_, n_iter_ : float, bool, int
        The dual objective, its relative distance from the primal one, the largest move in a
        projected unit gradient step, whether ``tol`` is met, and after how many steps.
    """

    C: float = 1.0
    gamma: float | Literal["scale", "auto"] = "scale"
    tol: float = _TOL
    device: str | None = None

    def fit(
        self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to labels of two classes."""
        samples, which = check_two_classes(self, X, y)
        weight = check_sample_weight(sample_weight, samples, ensure_non_negative=True)
        if min(weight[which == k].max() for k in (0, 1)) <= 0.0:
            refuse(
                "sample_weight must be positive for some sample of each class. Got 0."
            )
        counted = np.flatnonzero(weight)
        dense = as_dense(samples[counted])
        gamma = rbf_gamma(self.gamma, dense)
        caps = self.C * weight[counted, None]
        return self._solve(dense, which[counted] == 1, caps, gamma)[0]

    def _solve(
        self, samples: Array, positive: Mask, caps: Array, gamma: float
    ) -> tuple[Self, SVMSolutions]:
        """Fit to the first column of bounds, and solve for all."""
        solved = solve_svms(
            samples, positive, caps, gamma=gamma, tol=self.tol, device=self.device
        )
        if not solved.converged.all():
            warn(
                f"The support vector machine did not meet tol={self.tol:g}: the relative "
                f"duality gap is {solved.duality_gap.max():.2g}. Scale the features, or "
                "use a smaller C or a larger tol.",
                ConvergenceWarning,
            )
        coef = solved.coef[:, 0]
        self.support_ = np.flatnonzero(coef)
        self.support_vectors_ = samples[self.support_]
        self.dual_coef_ = coef[self.support_][None, :]
        self.intercept_ = solved.intercept[[0]]
        self.gamma_ = float(gamma)
        self.dual_objective_ = float(solved.dual_objective[0])
        self.duality_gap_ = float(solved.duality_gap[0])
        self.kkt_residual_ = float(solved.kkt_residual[0])
        self.converged_, self.n_iter_ = bool(solved.converged[0]), solved.n_iter
        return self, solved

    def _decide(self, X: Matrix) -> Vector:
        check_is_fitted(self)
        samples = as_dense(validate_data(self, X, accept_sparse="csr", reset=False))
        with one_thread():
            sums = rbf_sums(
                samples, self.support_vectors_, self.dual_coef_[0], self.gamma_
            )
        return sums + self.intercept_[0]


class PlattSVM(ClassifierMixin, BaseEstimator):
    """An SVM with Platt scaling.

    Parameters
    ----------
    machine : KernelSVM
        A fitted SVM.
    slope, offset : float
        P(y=1 | x) is ``expit(-(slope * decision + offset))``, as in Platt (1999).
    """

    def __init__(self, machine: KernelSVM, slope: float, offset: float) -> None:
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
        return expit(-(self.slope * decision + self.offset))


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
    device: str | None,
    gamma: float | str = "scale",
) -> tuple[PlattSVM, list[Vector]]:
    """Fit a Platt-scaled SVM for each task; all share the kernel of all samples.

    The sigmoid is fitted to the held-out decisions of the folds. Returns the classifier of
    the first task and, for each task, the probability of every sample to be labelled.
    """
    dense = as_dense(samples)
    width, n_svms = rbf_gamma(gamma, dense), 1 + len(tasks[0].held_out)
    fitted: list[PlattSVM] = []
    chances: list[Vector] = []
    for some in gen_batches(len(tasks), max(1, _MOST // n_svms)):
        caps = [
            task.train & ~fold
            for task in tasks[some]
            for fold in (~task.train, *task.held_out)
        ]
        svm = KernelSVM(device=device)
        bounds = 1.0 * np.column_stack(caps)
        _, solved = svm._solve(dense, labelled, bounds, width)
        svm.classes_, svm.n_features_in_ = np.array([0, 1]), dense.shape[1]
        for task, column in zip(tasks[some], range(0, len(caps), n_svms), strict=True):
            decision = np.empty(labelled.size)
            for k, fold in enumerate(task.held_out, start=column + 1):
                decision[fold] = solved.decision[fold, k]
            sigmoid = SigmoidCalibration().fit(
                decision[task.train], labelled[task.train].astype(np.int8)
            )
            fitted.append(PlattSVM(svm, float(sigmoid.a_), float(sigmoid.b_)))
            chances.append(fitted[-1].chance(solved.decision[:, column]))
    return fitted[0], chances
