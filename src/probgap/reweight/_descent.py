"""Accelerated projected gradient descent: never fails, and takes its time to be exact."""

from __future__ import annotations

import numpy as np

from probgap.reweight._problem import MatchingProblem, Vector
from probgap.reweight._qp import QPSolution

_MAX_ITER = 300
_CHECK_EVERY = 10


def descend(problem: MatchingProblem, tol: float) -> QPSolution:
    """Go downhill from uniform weights, by one product with the kernel matrix a step.

    For problems too large for an exact method. It ends when no feasible direction
    promises more than the share ``tol`` of what was gained, or after some hundred steps.
    """
    bounds = problem.bounds
    # The largest row sum bounds the largest eigenvalue, and so the curvature.
    curvature = float(np.abs(problem.kernel).sum(axis=1).max()) / problem.n
    weights = point = bounds.project(np.ones(problem.n))
    first = _objective(weights, problem.gradient(weights), problem)
    momentum = 1.0
    n_iter = 0
    while n_iter < _MAX_ITER:
        n_iter += 1
        slope = problem.gradient(point)
        stepped = bounds.project(point - slope / curvature)
        if float((point - stepped) @ (stepped - weights)) > 0.0:
            # The momentum points uphill: begin anew from here.
            momentum, point = 1.0, weights
            continue
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        point = stepped + (momentum - 1.0) / following * (stepped - weights)
        weights, momentum = stepped, following
        if n_iter % _CHECK_EVERY == 0:
            gradient = problem.gradient(weights)
            gap = float(weights @ gradient) - bounds.least(gradient)
            if gap <= tol * (first - _objective(weights, gradient, problem) + gap):
                break
    return QPSolution(weights, n_iter)


def _objective(weights: Vector, gradient: Vector, problem: MatchingProblem) -> float:
    return 0.5 * float(weights @ (gradient - problem.kappa))
