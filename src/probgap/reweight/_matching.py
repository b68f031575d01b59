"""Kernel mean matching with its settings: one way to reweight."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from probgap._core.errors import ProbgapWarning
from probgap._core.kernels import TrainingFeatures
from probgap._core.types import Mask, Matrix, Vector
from probgap.reweight._kmm import kernel_mean_matching, match_selections
from probgap.reweight._problem import KMMResult

# Weights that rest on a smaller share of the samples than this are no estimate.
_FEWEST_EFFECTIVE = 0.02
# Kernel features come in ascending order of what they hold of the kernel; all but the
# last so many hold little of a mean.
_MOST_FEATURES = 300


class KernelMeanMatching(BaseEstimator):
    """Weight the samples that were chosen so that they stand for all.

    The paper's fourth step, as settings of :func:`kernel_mean_matching`; the classifiers
    take it as ``reweight``. It needs chosen samples wherever there are samples: where
    there are none, no weight can make up for it, and a warning says so.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float, default=None
        Width of the kernel; ``None`` takes the median heuristic.
    upper : float, default=1000.0
        The paper's B, the largest weight.
    slack : float, default=None
        The paper's epsilon, the half-width of the band for the mean weight. ``None`` takes
        1 - 1 / sqrt(n).

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

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | None = None,
        upper: float = 1000.0,
        slack: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.upper = upper
        self.slack = slack

    def match(
        self,
        X: Matrix,
        chosen: Mask,
        *,
        weight: Vector | None = None,
        features: TrainingFeatures | None = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> KMMResult:
        """Weight the chosen samples so that their kernel mean is that of all.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_samples, n_features)
            All samples.
        chosen : ndarray of shape (n_samples,)
            Mask of the samples to weight.
        weight : ndarray of shape (n_samples,), default=None
            How many samples each stands for.
        features : TrainingFeatures, default=None
            Kernel features of the samples, to match means of instead of a kernel.
            Not used with another kernel, or a width of one's own.
        device : str, default=None
            torch's name of a device to solve on.
        verbose : int, default=0
            With 1, says on standard error what a device keeps in memory.

        Returns
        -------
        KMMResult
            The weights and the evidence for them.

        Warns
        -----
        ProbgapWarning
            If the weights rest on few samples.
        """
        usual = self.kernel == "rbf" and self.gamma is None and not chosen.all()
        if usual and features is not None:
            result = self._match_features(features, chosen, weight)
            n_weighed = int(np.count_nonzero(chosen[features.rows]))
        else:
            result = kernel_mean_matching(
                X if chosen.all() else X[chosen],
                X if weight is None else X[_rows_for_all(weight)],
                **self.get_params(),
                device=device,
                verbose=verbose,
            )
            n_weighed = int(np.count_nonzero(chosen))
        if result.effective_sample_size < _FEWEST_EFFECTIVE * n_weighed:
            warnings.warn(
                "Kernel mean matching must spread its weight over many samples. Got an "
                f"effective sample size of {result.effective_sample_size:.1f} out of "
                f"{n_weighed}: what was chosen does not cover what was left "
                "out. Use a smaller upper, or reweight=None.",
                ProbgapWarning,
                stacklevel=2,
            )
        return result

    def match_each(self, X: Matrix, selections: Sequence[Mask]) -> list[KMMResult]:
        """Match selections of samples to all, as :func:`match_selections` does.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_samples, n_features)
            All samples.
        selections : sequence of ndarray of shape (n_samples,)
            Masks of the samples to weight.

        Returns
        -------
        list of KMMResult
            One for each selection.
        """
        return match_selections(X, selections, **self.get_params())

    def _match_features(
        self, features: TrainingFeatures, chosen: Mask, weight: Vector | None
    ) -> KMMResult:
        """Match means of features. Samples whose features are not in memory get no weight."""
        last = features.map.n_components
        values = features.values[:, max(0, last - _MOST_FEATURES) : last]
        counts = np.ones(len(values)) if features.weight is None else features.weight
        stands_for = counts if weight is None else counts * weight[features.rows]
        mean = np.average(values, axis=0, weights=stands_for)
        here = chosen[features.rows]
        # All that a linear kernel knows of a target is its mean.
        result = kernel_mean_matching(
            values[here],
            mean[None, :],
            kernel="linear",
            upper=self.upper,
            slack=self.slack,
        )
        if features.weight is None:
            return result
        weights = np.zeros(chosen.size)
        share = counts[here] / counts[here].mean()
        weights[np.arange(chosen.size)[features.rows][here]] = result.weights / share
        return replace(result, weights=weights[chosen])


def _rows_for_all(weight: Vector) -> NDArray[np.intp]:
    """Return as many rows as there are, each as often as it stands for others."""
    ends = np.cumsum(weight)
    levels = (np.arange(weight.size) + 0.5) * (ends[-1] / weight.size)
    return np.searchsorted(ends, levels).astype(np.intp)
