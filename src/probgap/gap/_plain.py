"""Who is labelled, by kernels alone: what models say of samples they have not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from probgap._core.features import TrainingFeatures
from probgap._core.losses import Logistic, in_standard_errors, log_likelihoods
from probgap._core.newton import Ridge, fit_linear
from probgap.gap._folds import HeldOutBy

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

# Inverse strengths of the ridge penalty; where labels are few or say little, a strong
# one predicts others better.
_LEAST_PENALTY = 10.0
_SHRINKAGES = (1.0, 0.1, 0.01)
# So many standard errors of the difference the stronger must be better with many labels,
# and may be worse with few, which follow any flexible score; and what few and many are.
_MARGIN = 1.0
_FEW, _MANY = 20, 60


@dataclass(frozen=True, slots=True, eq=False)
class PlainFit:
    """A logistic model of the labels.

    Attributes
    ----------
    chance : ndarray of shape (n_rows,)
        P(s=1 | x) by the model of the fold that holds the row out.
    start : ndarray of shape (n_components + 1,)
        Coefficients and intercept of the model fitted on all rows.
    shrinkage : float
        How much stronger than the weakest the penalty is, as a factor of C.
    converged : bool
        Whether the fit converged.
    """

    chance: Vector
    start: Vector
    shrinkage: float
    converged: bool


def fit_plain(
    features: TrainingFeatures, observed: Mask, held_out_by: HeldOutBy
) -> PlainFit:
    """Fit with the penalty that predicts held-out labels best, from weak to strong."""
    margin = _margin(int(np.count_nonzero(observed)))
    best: PlainFit | None = None
    best_likelihood = np.empty(0)
    for shrinkage in _SHRINKAGES:
        fits = fit_linear(
            features.values,
            observed.astype(np.float64),
            Logistic(),
            Ridge(1.0 / (_LEAST_PENALTY * shrinkage)),
            weight=features.weight,
            trained=held_out_by.trained,
        )
        chance: Vector = expit(held_out_by.scores(fits, features.values))
        likelihood = log_likelihoods(chance, observed)
        if best is not None:
            gain = likelihood - best_likelihood
            if in_standard_errors(gain, features.weight) <= margin:
                return best
        start = np.append(fits.coef[:, 0], fits.intercept[0])
        best = PlainFit(chance, start, shrinkage, fits.converged)
        best_likelihood = likelihood
    assert best is not None  # there are shrinkages
    return best


def _margin(n_labelled: int) -> float:
    """Give by how many standard errors a stronger penalty must be better."""
    return float(np.interp(n_labelled, (_FEW, _MANY), (-_MARGIN, _MARGIN)))
