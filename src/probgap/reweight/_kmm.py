"""The entry points of kernel mean matching: check, solve, warn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels
from sklearn.utils import check_array

from probgap._core._sklearn import Interval
from probgap._core.arrays import open_device
from probgap._core.errors import refuse, warn
from probgap._core.kernels import TrainingFeatures, as_dense, median_gamma
from probgap._core.runtime import one_thread, spread_rows
from probgap._core.types import Mask, Matrix, Vector
from probgap.reweight._pivoting import MatchingBatch
from probgap.reweight._result import Bounds, KMMResult
from probgap.reweight._solve import SOLVERS, Task, solve, solve_batch

# Kernels of distances, for which the median heuristic makes sense.
_KERNELS_OF_DISTANCE = ("rbf", "laplacian")
# Rows from which the objective of a sample matched to itself is estimated.
_MOST_FOR_OBJECTIVE = 1000
# Warn if the effective sample size is below this share of the samples.
_FEWEST_EFFECTIVE = 0.02
# Kernel features come in ascending order of their eigenvalues; all but the last so many
# contribute little to a mean.
_MOST_FEATURES = 300


def kernel_mean_matching(
    X_source: Matrix,
    X_target: Matrix,
    *,
    gamma: float | None = None,
    upper: float = 1000.0,
    slack: float | None = None,
    tol: float = 1e-4,
    solver: str = "auto",
    kernel: str | Callable[..., Any] = "rbf",
    kernel_params: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> KMMResult:
    r"""Weight source samples so that their kernel mean matches the target's.

    Solves

    .. math::

        \min_w \Big\| \frac1n \sum_i w_i \phi(x_i) - \frac1m \sum_j \phi(z_j) \Big\|^2
        \quad \text{subject to} \quad 0 \le w_i \le B, \quad
        \Big| \frac1n \sum_i w_i - 1 \Big| \le \varepsilon

    for source samples x and target samples z. The weights estimate the ratio of the
    two densities at the source samples. The source must have samples wherever the target
    has: otherwise no weights can compensate, the few nearest source samples get large
    weights, and the ``effective_sample_size`` of the result falls.

    If several weightings match equally well, as with a flat kernel, one near uniform
    weights is returned: only the objective is determined to within ``tol``.

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
    tol : float, default=1e-4
        Largest ``duality_gap``, as a share of the possible gain over uniform weights. A
        KKT residual of ``tol / 100`` suffices, too: if almost nothing can be gained,
        rounding spoils the gap.
    solver : {"auto", "exact", "iterative", "low_rank"}, default="auto"
        "exact" guesses which weights lie at a bound, solves for the others, O(n^3), and
        corrects the guess. "iterative" does so by some hundred products with the kernel.
        "low_rank" replaces the kernel by a factor, and adds the error to ``duality_gap``.
        Where guesses do not come right, an interior point method takes over.

        "auto" takes "exact" with fewer than 500 source samples, a ``tol`` below 1e-5 or
        a kernel that is not known to be positive semidefinite; otherwise "low_rank" if a
        low rank is accurate enough, and if not, "iterative".
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    device : str, default=None
        torch's name of a device to solve on, "cuda" or "cpu", as "iterative" does; only
        with the RBF kernel. ``solver`` is then not used. Needs the extra ``gpu``.

    Returns
    -------
    KMMResult
        The weights, with certificates of their optimality.

    Warns
    -----
    ConvergenceWarning
        If ``tol`` is not met. The weights are feasible even then.

    References
    ----------
    .. [1] Huang, Smola, Gretton, Borgwardt, Schoelkopf, "Correcting Sample Selection
       Bias by Unlabeled Data", NIPS 2006.
    .. [2] Judice, Pires, "A Block Principal Pivoting Algorithm for Large-Scale
       Strictly Monotone Linear Complementarity Problems", Computers & Operations
       Research, 1994.
    .. [3] Mehrotra, "On the Implementation of a Primal-Dual Interior Point Method", SIAM
       Journal on Optimization, 1992.

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
    # Features are used as they are; kernels are evaluated in double precision.
    dtype = [np.float64, np.float32] if kernel == "linear" else np.float64
    source, target = (
        check_array(X, accept_sparse="csr", dtype=dtype, input_name=name)
        for X, name in ((X_source, "X_source"), (X_target, "X_target"))
    )
    n, d = source.shape
    if d != target.shape[1]:
        refuse(
            "X_target must have as many features as X_source. "
            f"Got {target.shape[1]} and {d}."
        )
    bounds = _check_bounds(n, gamma, upper, slack, tol)
    if solver not in SOLVERS:
        refuse(f"solver must be one of {SOLVERS}. Got {solver!r}.")
    arrays = None if device is None else open_device(device)
    if arrays is not None:
        if kernel != "rbf":
            refuse(f"kernel must be 'rbf' on a device. Got {kernel!r}.")
        source, target = as_dense(source), as_dense(target)
    params = _kernel_parameters(kernel, kernel_params, gamma, target)

    # On one thread, so that results do not depend on how many there are.
    with one_thread():
        if X_source is X_target and upper >= 1.0:
            some = source[spread_rows(n, _MOST_FOR_OBJECTIVE)]
            values = pairwise_kernels(some, metric=kernel, **params)
            return KMMResult(
                weights=np.ones(n),
                objective=-float(values.mean()),
                kkt_residual=0.0,
                band_slack=float(min(bounds.slack, upper - 1.0)),
                n_iter=0,
                converged=True,
                solver="none needed",
                gamma=params.get("gamma"),
                duality_gap=0.0,
            )
        task = Task(source, target, kernel, params, bounds, tol)
        result = solve(task, solver, arrays)
    _warn_unless_converged(result, tol)
    return result


def match_selections(
    samples: Matrix,
    selections: Sequence[Mask],
    *,
    gamma: float | None = None,
    upper: float = 1000.0,
    slack: float | None = None,
    tol: float = 1e-4,
    kernel: str | Callable[..., Any] = "rbf",
) -> list[KMMResult]:
    """Match several selections of samples to all samples, with shared computations.

    As ``kernel_mean_matching(samples[selection], samples, ...)`` for each, to within
    ``tol``, from one kernel matrix and, as a rule, one factor of it.

    Parameters
    ----------
    samples : {ndarray, sparse matrix} of shape (n, n_features)
        The samples to match.
    selections : sequence of ndarray of shape (n,)
        Masks of the samples to weight; none may be empty.
    gamma, upper, slack, tol, kernel : float, str or callable
        As in :func:`kernel_mean_matching`.

    Returns
    -------
    list of KMMResult
        One for each selection.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reweight import match_selections
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> results = match_selections(X, [X[:, 0] < 0.5, X[:, 0] < 1.0])
    >>> [result.weights.size for result in results]
    [72, 86]
    """
    chosen = np.array(selections, dtype=bool)
    if chosen.ndim != 2 or chosen.shape[1] != samples.shape[0] or chosen.size == 0:
        refuse(
            f"selections must be masks of the {samples.shape[0]} samples. "
            f"Got shape {chosen.shape}."
        )
    if not chosen.any(axis=1).all():
        refuse("selections must each choose some sample. Got one that chooses none.")
    _check_bounds(int(chosen.sum(axis=1).min()), gamma, upper, slack, tol)
    params = _kernel_parameters(kernel, None, gamma, samples)
    # Rows in every selection come first, which the solver exploits, and rows in none last.
    order = np.argsort(-chosen.sum(axis=0), kind="stable")
    used = int(np.count_nonzero(chosen.any(axis=0)))
    with one_thread():
        full = pairwise_kernels(samples[order], metric=kernel, **params)
        batch = MatchingBatch(
            kernel=full[:used, :used],
            kappa=full.mean(axis=1)[:used],
            chosen=chosen[:, order[:used]],
            upper=float(upper),
            slack=slack,
            n_target=samples.shape[0],
        )
        results = solve_batch(batch, tol, params.get("gamma"), certify=False)
    for result in results:
        _warn_unless_converged(result, tol)
    return [
        replace(result, weights=result.weights[np.argsort(order[order_mask])])
        for result, order_mask in zip(results, chosen[:, order], strict=True)
    ]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMeanMatching(BaseEstimator):
    """Weight the chosen samples so that they represent all.

    The paper's fourth step; the classifiers take it as ``reweight``. There must be chosen
    samples wherever there are samples: otherwise no weights can compensate, and a warning
    is issued.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float, default=None
        Width of the kernel; ``None`` takes the median heuristic.
    upper, slack : float
        The paper's B and epsilon, as in :func:`kernel_mean_matching`.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reweight import KernelMeanMatching
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> result = KernelMeanMatching(upper=10.0).match(X, X[:, 0] < 0.5)
    >>> result.weights.size
    72
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "upper": [Interval(Real, 0, None, closed="neither")],
        "slack": [Interval(Real, 0, None, closed="left"), None],
    }

    kernel: str | Callable[..., Any] = "rbf"
    gamma: float | None = None
    upper: float = 1000.0
    slack: float | None = None

    def match(
        self,
        X: Matrix,
        chosen: Mask,
        *,
        weight: Vector | None = None,
        features: TrainingFeatures | None = None,
        device: str | None = None,
    ) -> KMMResult:
        """Weight the chosen samples so that their kernel mean is that of all.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_samples, n_features)
            All samples.
        chosen : ndarray of shape (n_samples,)
            Mask of the samples to weight.
        weight : ndarray of shape (n_samples,), default=None
            How many samples each one represents.
        features : TrainingFeatures, default=None
            Kernel features of the samples, whose means are then matched instead.
            Ignored with another kernel than RBF, or with ``gamma``.
        device : str, default=None
            As in :func:`kernel_mean_matching`.

        Returns
        -------
        KMMResult
            The weights with their certificates; a warning if they rest on few samples.
        """
        everything, weighed = bool(chosen.all()), chosen
        usual = self.kernel == "rbf" and self.gamma is None and not everything
        if usual and features is not None:
            result = self._match_features(features, chosen, weight)
            weighed = chosen[features.rows]
        else:
            result = kernel_mean_matching(
                X if everything else X[chosen],
                X if weight is None else X[_rows_for_all(weight)],
                **self.get_params(),
                device=device,
            )
        n_weighed = int(np.count_nonzero(weighed))
        if result.effective_sample_size < _FEWEST_EFFECTIVE * n_weighed:
            warn(
                "Kernel mean matching puts most weight on few samples: the effective "
                f"sample size is {result.effective_sample_size:.1f} out of {n_weighed}. "
                "The chosen samples do not cover those left out. Use a smaller upper, or "
                "reweight=None."
            )
        return result

    def match_each(self, X: Matrix, selections: Sequence[Mask]) -> list[KMMResult]:
        """Match selections of samples to all by :func:`match_selections`.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n, n_features)
            The samples to match.
        selections : sequence of ndarray of shape (n,)
            Masks of the samples to weight; none may be empty.

        Returns
        -------
        list of KMMResult
            One for each selection.
        """
        return match_selections(X, selections, **self.get_params())

    def _match_features(
        self, features: TrainingFeatures, chosen: Mask, weight: Vector | None
    ) -> KMMResult:
        """Match means of features. Samples without features in memory get weight 0."""
        last = features.map.n_components
        values = features.values[:, max(0, last - _MOST_FEATURES) : last]
        counts = np.ones(len(values)) if features.weight is None else features.weight
        represents = counts if weight is None else counts * weight[features.rows]
        mean = np.average(values, axis=0, weights=represents)
        here = chosen[features.rows]
        # With a linear kernel the target matters only through its mean.
        bounds: dict[str, Any] = {"upper": self.upper, "slack": self.slack}
        result = kernel_mean_matching(
            values[here], mean[None], kernel="linear", **bounds
        )
        if features.weight is None:
            return result
        weights = np.zeros(chosen.size)
        share = counts[here] / counts[here].mean()
        weights[np.arange(chosen.size)[features.rows][here]] = result.weights / share
        return replace(result, weights=weights[chosen])


def _rows_for_all(weight: Vector) -> NDArray[np.intp]:
    """Resample n rows systematically, each in proportion to its weight."""
    ends = np.cumsum(weight)
    levels = (np.arange(weight.size) + 0.5) * (ends[-1] / weight.size)
    return np.searchsorted(ends, levels).astype(np.intp)


def _kernel_parameters(
    kernel: str | Callable[..., Any],
    kernel_params: Mapping[str, Any] | None,
    gamma: float | None,
    target: Matrix,
) -> dict[str, Any]:
    params = dict(kernel_params or {})
    if gamma is not None:
        if "gamma" in params or "gamma" not in KERNEL_PARAMS.get(kernel, ()):
            refuse(
                "gamma must be left at None where kernel_params has one or the kernel "
                f"takes none. Got gamma={gamma!r}, kernel={kernel!r}."
            )
        params["gamma"] = gamma
    elif kernel in _KERNELS_OF_DISTANCE:
        params.setdefault("gamma", median_gamma(target))
    return params


def _check_bounds(n: int, gamma: Any, upper: Any, slack: Any, tol: Any) -> Bounds:
    """Return the bounds of n weights; refuse numbers out of range."""
    if gamma is not None:
        _require_positive("gamma", gamma, "a positive number or None")
    _require_positive("upper", upper)
    if slack is not None and slack != 0.0:
        _require_positive("slack", slack, "a number not below 0, or None")
    _require_positive("tol", tol)
    bounds = Bounds.of(n, upper, slack)
    if upper < 1.0 - bounds.slack:
        refuse(
            "upper must be at least 1 - slack, or no weights satisfy both bounds. "
            f"Got upper={upper!r}, slack={bounds.slack!r}."
        )
    return bounds


def _require_positive(name: str, value: Any, rule: str = "a positive number") -> None:
    if not (isinstance(value, Real) and 0.0 < float(value) < float("inf")):
        refuse(f"{name} must be {rule}. Got {value!r}.")


def _warn_unless_converged(result: KMMResult, tol: float) -> None:
    if not result.converged:
        warn(
            f"Kernel mean matching did not meet tol={tol:g}: the KKT residual is "
            f"{result.kkt_residual:.2g}, and the weights may be far from the best ones. "
            "Use a larger tol, a smaller upper, or scaled features.",
            ConvergenceWarning,
        )
