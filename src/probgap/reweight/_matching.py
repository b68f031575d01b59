"""Kernel mean matching as a parameter of the classifiers."""

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

# Warn if the effective sample size is below this share of the samples.
_FEWEST_EFFECTIVE = 0.02
# Kernel features come in ascending order of their eigenvalues; all but the last so many
# contribute little to a mean.
_MOST_FEATURES = 300


class KernelMeanMatching(BaseEstimator):
    """Weight the chosen samples so that they represent all.

    The paper's fourth step, as settings of :func:`kernel_mean_matching`; the classifiers
    take it as ``reweight``. There must be chosen samples wherever there are samples:
    otherwise no weights can compensate, and a warning is issued.

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
            How many samples each one represents.
        features : TrainingFeatures, default=None
            Kernel features of the samples, whose means are then matched instead.
            Ignored with another kernel than RBF, or with ``gamma``.
        device : str, default=None
            torch's name of a device to solve on.
        verbose : int, default=0
            With 1, reports on standard error what a device keeps in memory.

        Returns
        -------
        KMMResult
            The weights with their certificates.

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
                "Kernel mean matching puts most weight on few samples: the effective "
                f"sample size is {result.effective_sample_size:.1f} out of {n_weighed}. "
                "The chosen samples do not cover those left out. Use a smaller upper, or "
                "reweight=None.",
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
        """Match means of features. Samples without features in memory get weight 0."""
        last = features.map.n_components
        values = features.values[:, max(0, last - _MOST_FEATURES) : last]
        counts = np.ones(len(values)) if features.weight is None else features.weight
        represents = counts if weight is None else counts * weight[features.rows]
        mean = np.average(values, axis=0, weights=represents)
        here = chosen[features.rows]
        # With a linear kernel the target matters only through its mean.
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
    """Resample n rows systematically, each in proportion to its weight."""
    ends = np.cumsum(weight)
    levels = (np.arange(weight.size) + 0.5) * (ends[-1] / weight.size)
    return np.searchsorted(ends, levels).astype(np.intp)
