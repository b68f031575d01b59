"""How much less a score is believed where the labels say little."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probgap._core.losses import SURE, in_standard_errors, log_likelihoods
from probgap.gap._rate import chance_of_score

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Labelled and unlabelled samples whose log-odds lie less apart than this, in standard
# deviations, may come from classes that hardly part. If moreover the upper tenth of the
# unlabelled does not reach this share of the ceiling, positives may be rare: then a low
# chance may well mean few positives instead of few labels. And the higher the ceiling,
# the fewer labels are missing, and the less can a faint score be blamed on that.
_APART = 1.5
_HIGH_QUANTILE = 0.9
_HIGH = 1.1
_FAINT_AND_RARE = 4.0
_FAINT_THOUGH_LABELLED = 1.0
# Held-out labels should be better predicted than by their frequency, by so many standard
# errors; and the more labels, the better.
_FEWEST_ERRORS = 1.5
_ERRORS_PER_ROOT = 0.25
# The boundary lies below an observed gap of 0: a chance of one half.
_HIGHEST_CHANCE = 0.495
_SCORES = np.linspace(-10.0, 10.0, 2001)


def evidence(chance: Vector, labelled: Mask, weight: Vector | None) -> float:
    """Say by how many standard errors held-out chances beat the frequency of labels."""
    often = np.full(chance.size, np.average(labelled, weights=weight))
    gain = log_likelihoods(chance, labelled) - log_likelihoods(often, labelled)
    return in_standard_errors(gain, weight)


def doubt(
    chance: Vector,
    labelled: Mask,
    *,
    ceiling: float,
    floor: float,
    level: float,
    slope: float,
    errors: float,
) -> float:
    """Give the log-odds by which even odds are put higher than the score says.

    The score takes the clearest positives for positives whatever their chance of being
    labelled. That goes wrong where nothing is clear: ``chance``, on samples held out,
    then hardly varies.
    """
    unlabelled = chance[~labelled]
    # A weak score gives clear negatives no chance near 0; what it gives them is nothing.
    even = 0.5 * float(expit(level))
    raised = floor + (ceiling - floor) * even / ceiling
    above_floor = _score_at(raised, level, slope)
    log_odds = logit(np.clip(chance, SURE, 1.0 - SURE))
    rare = max(0.0, _HIGH - float(np.quantile(unlabelled, _HIGH_QUANTILE)) / ceiling)
    faint = max(0.0, _APART - _distance(log_odds[labelled], log_odds[~labelled]))
    doubted = faint * (_FAINT_AND_RARE * rare + _FAINT_THOUGH_LABELLED * ceiling)
    expected = _ERRORS_PER_ROOT * float(np.sqrt(np.count_nonzero(labelled)))
    unsure = max(0.0, max(_FEWEST_ERRORS, expected) - errors)
    return max(0.0, above_floor) + doubted + unsure


def highest_even_score(level: float, slope: float) -> float:
    """Give the score above which even odds would need an observed gap above 0."""
    return _score_at(_HIGHEST_CHANCE, level, slope)


def _score_at(chance: float, level: float, slope: float) -> float:
    return float(np.interp(chance, chance_of_score(_SCORES, level, slope), _SCORES))


def _distance(first: Vector, second: Vector) -> float:
    spread = np.sqrt(0.5 * (first.var() + second.var()))
    apart = float(first.mean() - second.mean())
    return apart / float(max(spread, SURE))
