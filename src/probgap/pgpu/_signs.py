"""Warnings that the method may not work on these data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy.special import xlogy

from probgap._core.errors import UnreliableFitWarning
from probgap._core.types import Mask, Vector
from probgap.pgpu.steps import FittedSteps

# Largest share of undecided samples without a warning.
_MOST_UNDECIDED = 0.8
# Random labels stay below 1; a higher threshold would often warn of good fits to hard
# tables.
_FEWEST_ERRORS = 1.0
# Thresholds for readings; benchmarks/default.py measures how often the warnings are right.
_FEWEST_LABELLED = 12
_FARTHEST_WORLDS = 0.35
# Probabilities are clipped here, or one wrong label would decide a log-likelihood.
_LEAST_PROBABILITY = 1e-6


def warn_of_signs(
    fitted: FittedSteps, labelled: Mask, weight: Vector | None, *, stacklevel: int
) -> None:
    """Issue a warning for each sign that a fit is unreliable."""
    errors = _evidence(fitted.gap.observed_gap_, labelled, weight)
    for sign in _find_signs(fitted, errors):
        warnings.warn(sign, stacklevel=stacklevel)


def _evidence(observed_gap: Vector, labelled: Mask, weight: Vector | None) -> float:
    """Return the gain of held-out gaps over the label frequency, in standard errors."""
    frequency = np.full(labelled.size, np.average(labelled, weights=weight))
    gain = _log_likelihood(0.5 * (1.0 + observed_gap), labelled)
    gain = gain - _log_likelihood(frequency, labelled)
    share = np.ones(gain.size) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ gain)
    error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return mean / max(error, float(np.finfo(np.float64).tiny))


def _log_likelihood(chance: Vector, labelled: Mask) -> Vector:
    p = np.clip(chance, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
    return xlogy(labelled, p) + xlogy(~labelled, 1.0 - p)


def _find_signs(fitted: FittedSteps, errors: float) -> Iterator[UnreliableFitWarning]:
    reading, boundary = fitted.reading, fitted.curve.boundary
    if errors < _FEWEST_ERRORS:
        yield UnreliableFitWarning(
            "Labels look random: held-out labels are predicted "
            f"{errors:.1f} standard errors better than by their frequency, where "
            f"{_FEWEST_ERRORS:.0f} is the least to ask for. Check the label column, and "
            "add features that could tell a positive from the rest.",
            sign="indistinct",
        )
    if boundary.rule != "auto":
        undecided = boundary.n_undecided / (
            boundary.n_negative + boundary.n_undecided + boundary.n_positive
        )
        if undecided > _MOST_UNDECIDED:
            yield UnreliableFitWarning(
                "Almost everything is undecided by the gap alone, "
                f"{undecided:.0%} of the samples; label more positives, or pass a "
                "boundary nearer to 0.",
                sign="undecided",
            )
        return
    if reading.n_labelled < _FEWEST_LABELLED:
        yield UnreliableFitWarning(
            f"Only {reading.n_labelled:.0f} positives are labelled: the count rests on "
            f"the simulated tasks more than on these data. Collect at "
            f"least {_FEWEST_LABELLED} labels, or pass class_prior.",
            sign="few",
        )
    if reading.extrapolates:
        yield UnreliableFitWarning(
            "The scores look like those of no simulated task (more unusual than "
            f"{reading.strangeness:.1%} of them): boundary and count are "
            "extrapolated. Have a sample of rows checked, or pass class_prior.",
            sign="unfamiliar",
        )
    low, high = reading.worlds()
    if high - low > _FARTHEST_WORLDS * reading.n_unlabelled:
        yield UnreliableFitWarning(
            f"Two worlds fit these data: about {low:,.0f} hidden positives, if most "
            f"are labelled and classes overlap, or about {high:,.0f}, if only the clear "
            "ones are labelled. Trust the ranking, not the count; pass class_prior or "
            "have a sample of rows checked to know.",
            sign="unstable",
        )
