"""The door to kernel mean matching: state the problem, choose a solver, report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from probgap._core.errors import InvalidInputError
from probgap._core.kernels import Matrix, kernel_matrix, mean_kernel, median_gamma
from probgap.reweight._problem import MatchingProblem
from probgap.reweight._qp import QPSolution, solve_exactly

_SOLVERS: Mapping[str, Callable[[MatchingProblem, float], QPSolution]] = {
    "exact": solve_exactly,
}
# The median heuristic is about distances, and so are these kernels.
_KERNELS_OF_DISTANCE = ("rbf", "laplacian")


@dataclass(frozen=True, slots=True)
class KMMResult:
    """Weights, and the evidence that they solve the problem.

    Attributes
    ----------
    weights : ndarray of shape (n_source,)
        One weight for each source sample, in [0, upper].
    objective : float
        Squared distance between the weighted source mean and the target mean in
        feature space, less the term that depends on the target alone.
    kkt_residual : float
        Largest violation of the optimality conditions, in the scale in which the
        gradient of the problem has entries of order one. Zero at a solution.
    band_slack : float
        How far the mean weight is from the nearer edge of its band. Never negative.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether ``kkt_residual`` is within the tolerance asked for.
    solver : str
        Which solver was used.
    gamma : float or None
        Width of the kernel, where the kernel has one.
    """

    weights: NDArray[np.float64]
    objective: float
    kkt_residual: float
    band_slack: float
    n_iter: int
    converged: bool
    solver: str
    gamma: float | None

    @property
    def effective_sample_size(self) -> float:
        """Number of equally weighted samples with the same variance of a mean."""
        total = float(self.weights.sum())
        return total**2 / float(self.weights @ self.weights) if total > 0.0 else 0.0


def kernel_mean_matching(
    X_source: Matrix,
    X_target: Matrix,
    *,
    gamma: float | None = None,
    upper: float = 1000.0,
    slack: float | None = None,
    tol: float = 1e-6,
    solver: str = "auto",
    kernel: str | Callable[..., Any] = "rbf",
    kernel_params: Mapping[str, Any] | None = None,
) -> KMMResult:
    r"""Weight source samples so that their kernel mean matches the target's.

    Solves

    .. math::

        \min_w \Big\| \frac1n \sum_i w_i \phi(x_i) - \frac1m \sum_j \phi(z_j) \Big\|^2
        \quad \text{subject to} \quad 0 \le w_i \le B, \quad
        \Big| \frac1n \sum_i w_i - 1 \Big| \le \varepsilon

    for source samples x and target samples z. The weights estimate the ratio of the
    two densities at the source samples. That needs the source to have samples
    wherever the target has: where it has none, no weight can make up for it, and
    the few nearest source samples get large weights (``effective_sample_size`` of
    the result falls). Where several weightings match equally well, as with a flat
    kernel, the solver leans towards uniform weights, as far as its tolerance reaches.

    Parameters
    ----------
    X_source, X_target : {array-like, sparse matrix} of shape (n, n_features)
        The samples to weight, and the samples to match.
    gamma : float, default=None
        Width of the kernel, where it has one. ``None`` takes the median heuristic for
        the RBF and Laplacian kernels, 1 / (2 m^2) with m the median distance within
        the target, and scikit-learn's default for others.
    upper : float, default=1000.0
        The paper's B, the largest weight.
    slack : float, default=None
        The paper's epsilon, the half-width of the band for the mean weight. ``None``
        takes 1 - 1 / sqrt(n).
    tol : float, default=1e-6
        The KKT residual to reach.
    solver : {"auto", "exact"}, default="auto"
        Which solver to use. "exact" is a dense interior point method, O(n^3).
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    kernel_params : dict, default=None
        Further parameters of the kernel.

    Returns
    -------
    KMMResult
        The weights and the evidence: objective, KKT residual, whether it converged.

    Warns
    -----
    ConvergenceWarning
        If the KKT residual stays above ``tol``.

    References
    ----------
    .. [1] Huang, Smola, Gretton, Borgwardt, Schoelkopf, "Correcting Sample Selection
       Bias by Unlabeled Data", NIPS 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reweight import kernel_mean_matching
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(200, 1)), rng.normal(0.5, 1.0, (200, 1))
    >>> result = kernel_mean_matching(source, target, upper=10.0)
    >>> result.converged
    True
    >>> left, right = source[:, 0] < 0.0, source[:, 0] > 0.5
    >>> bool(result.weights[left].mean() < result.weights[right].mean())
    True
    """
    source = check_array(
        X_source, accept_sparse="csr", dtype=np.float64, input_name="X_source"
    )
    target = check_array(
        X_target, accept_sparse="csr", dtype=np.float64, input_name="X_target"
    )
    if source.shape[1] != target.shape[1]:
        msg = (
            "X_target must have as many features as X_source. "
            f"Got {target.shape[1]} and {source.shape[1]}."
        )
        raise InvalidInputError(msg)
    if slack is None:
        slack = 1.0 - 1.0 / np.sqrt(source.shape[0])
    _check_parameters(gamma=gamma, upper=upper, slack=slack, tol=tol, solver=solver)
    params, gamma = _kernel_parameters(kernel, kernel_params, gamma, target)

    # One thread, so that the bits do not depend on how many the machine has.
    with threadpool_limits(1):
        if X_source is X_target and upper >= 1.0:
            return _match_to_itself(source, kernel, params, slack, gamma)
        problem = MatchingProblem(
            kernel=kernel_matrix(source, None, kernel, params),
            kappa=mean_kernel(source, target, kernel, params),
            upper=float(upper),
            slack=float(slack),
        )
        name = "exact" if solver == "auto" else solver
        return _report(problem, _SOLVERS[name](problem, tol), name, tol, gamma)


def _kernel_parameters(
    kernel: str | Callable[..., Any],
    kernel_params: Mapping[str, Any] | None,
    gamma: float | None,
    target: Matrix,
) -> tuple[dict[str, Any], float | None]:
    params = dict(kernel_params or {})
    if gamma is not None:
        if "gamma" in params or "gamma" not in KERNEL_PARAMS.get(kernel, ()):
            msg = (
                "gamma must be left at None where kernel_params has one or the kernel "
                f"takes none. Got gamma={gamma!r}, kernel={kernel!r}."
            )
            raise InvalidInputError(msg)
        params["gamma"] = gamma
    elif kernel in _KERNELS_OF_DISTANCE:
        params.setdefault("gamma", median_gamma(target))
    return params, params.get("gamma")


def _match_to_itself(
    samples: Matrix,
    kernel: str | Callable[..., Any],
    params: Mapping[str, Any],
    slack: float,
    gamma: float | None,
) -> KMMResult:
    """Give uniform weights, which match exactly, without a kernel matrix in memory."""
    n = samples.shape[0]
    return KMMResult(
        weights=np.ones(n),
        objective=-float(mean_kernel(samples, samples, kernel, params).mean()),
        kkt_residual=0.0,
        band_slack=float(slack),
        n_iter=0,
        converged=True,
        solver="none needed",
        gamma=gamma,
    )


def _report(
    problem: MatchingProblem,
    solution: QPSolution,
    solver: str,
    tol: float,
    gamma: float | None,
) -> KMMResult:
    weights = solution.weights
    residual = problem.kkt_residual(weights)
    low, high = problem.band
    mean = float(weights.mean())
    result = KMMResult(
        weights=weights,
        objective=problem.squared_distance(weights),
        kkt_residual=residual,
        band_slack=max(0.0, min(mean - low, high - mean)),
        n_iter=solution.n_iter,
        converged=residual <= tol,
        solver=solver,
        gamma=gamma,
    )
    if not result.converged:
        warnings.warn(
            f"Kernel mean matching stopped at a KKT residual of {residual:.2g}, above "
            f"tol={tol:g}. Give a larger tol, a smaller upper, or scaled features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return result


def _check_parameters(
    *, gamma: Any, upper: Any, slack: Any, tol: Any, solver: Any
) -> None:
    if gamma is not None and not _is_number(gamma, above=0.0):
        msg = f"gamma must be a positive number or None. Got {gamma!r}."
        raise InvalidInputError(msg)
    if not _is_number(upper, above=0.0):
        msg = f"upper must be a positive number. Got {upper!r}."
        raise InvalidInputError(msg)
    if not (_is_number(slack, above=0.0) or slack == 0.0):
        msg = f"slack must be a number not below 0, or None. Got {slack!r}."
        raise InvalidInputError(msg)
    if upper < 1.0 - slack:
        msg = (
            "upper must be at least 1 - slack, or no weights satisfy both bounds. "
            f"Got upper={upper!r}, slack={slack!r}."
        )
        raise InvalidInputError(msg)
    if not _is_number(tol, above=0.0):
        msg = f"tol must be a positive number. Got {tol!r}."
        raise InvalidInputError(msg)
    if solver not in ("auto", *_SOLVERS):
        msg = f"solver must be one of {('auto', *_SOLVERS)}. Got {solver!r}."
        raise InvalidInputError(msg)


def _is_number(value: Any, *, above: float) -> bool:
    return isinstance(value, Real) and above < float(value) < float("inf")
