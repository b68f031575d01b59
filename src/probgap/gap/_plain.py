"""Who is labelled, by kernels alone: what models say of samples they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from probgap._core.losses import Logistic, log_likelihoods
from probgap._core.newton import Ridge, fit_rows
from probgap._core.values import RowValues, difference
from probgap.gap._folds import LabelledRows

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]
Values = TypeVar("Values", bound=RowValues)

# Inverse strengths of the ridge penalty; where labels are few or say little, a strong
# one predicts others better.
_LEAST_PENALTY = 10.0
_SHRINKAGES = (1.0, 0.1, 0.01)
# So many standard errors of the difference the stronger must be better with many labels,
# and may be worse with few, which follow any flexible score; and what few and many are.
_MARGIN = 1.0
_FEW, _MANY = 20, 60


@dataclass(frozen=True, slots=True, eq=False)
class PlainFit(Generic[Values]):
    """A logistic model of the labels.

    Attributes
    ----------
    chance : RowValues
        P(s=1 | x) by the model of the fold that holds the row out.
    start : ndarray of shape (n_components + 1,)
        Coefficients and intercept of the model fitted on all rows.
    shrinkage : float
        How much stronger than the weakest the penalty is, as a factor of C.
    converged : bool
        Whether the fit converged.
    """

    chance: Values
    start: Vector
    shrinkage: float
    converged: bool


def fit_plain(rows: LabelledRows[Values]) -> PlainFit[Values]:
    """Fit with the penalty that predicts held-out labels best, from weak to strong."""
    best: tuple[PlainFit[Values], Values] | None = None
    for shrinkage in _SHRINKAGES:
        fits = fit_rows(rows, Logistic(), Ridge(1.0 / (_LEAST_PENALTY * shrinkage)))
        chance = rows.held_out(fits).map(_chance)
        likelihood = chance.map(log_likelihoods)
        if best is not None:
            gain = likelihood.map(difference, best[1])
            if gain.in_standard_errors() <= _margin(chance.count(labelled=True)):
                return best[0]
        start = np.append(fits.coef[:, 0], fits.intercept[0])
        best = PlainFit(chance, start, shrinkage, fits.converged), likelihood
    assert best is not None  # there are shrinkages
    return best[0]


def _margin(n_labelled: int) -> float:
    """Give by how many standard errors a stronger penalty must be better."""
    return float(np.interp(n_labelled, (_FEW, _MANY), (-_MARGIN, _MARGIN)))


def _chance(score: Vector, labelled: Mask) -> Vector:
    del labelled
    chance: Vector = expit(score)
    return chance
