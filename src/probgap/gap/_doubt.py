"""How much less a score is believed where the labels say little."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probgap._core.losses import SURE, log_likelihoods
from probgap._core.values import RowValues
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


def evidence(chance: RowValues) -> float:
    """Say by how many standard errors held-out chances beat the frequency of labels."""
    return chance.map(partial(_gain, often=chance.frequency())).in_standard_errors()


def _gain(chance: Vector, labelled: Mask, *, often: float) -> Vector:
    constant = np.full(chance.size, often)
    return log_likelihoods(chance, labelled) - log_likelihoods(constant, labelled)


def doubt(
    chance: RowValues,
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
    # A weak score gives clear negatives no chance near 0; what it gives them is nothing.
    even = 0.5 * float(expit(level))
    raised = floor + (ceiling - floor) * even / ceiling
    above_floor = _score_at(raised, level, slope)
    high = chance.quantile(_HIGH_QUANTILE, labelled=False)
    rare = max(0.0, _HIGH - high / ceiling)
    faint = max(0.0, _APART - _distance(chance.map(_log_odds)))
    doubted = faint * (_FAINT_AND_RARE * rare + _FAINT_THOUGH_LABELLED * ceiling)
    expected = _ERRORS_PER_ROOT * float(np.sqrt(chance.count(labelled=True)))
    unsure = max(0.0, max(_FEWEST_ERRORS, expected) - errors)
    return max(0.0, above_floor) + doubted + unsure


def highest_even_score(level: float, slope: float) -> float:
    """Give the score above which even odds would need an observed gap above 0."""
    return _score_at(_HIGHEST_CHANCE, level, slope)


def _score_at(chance: float, level: float, slope: float) -> float:
    return float(np.interp(chance, chance_of_score(_SCORES, level, slope), _SCORES))


def _log_odds(chance: Vector, labelled: Mask) -> Vector:
    del labelled
    log_odds: Vector = logit(np.clip(chance, SURE, 1.0 - SURE))
    return log_odds


def _distance(values: RowValues) -> float:
    """Give how far apart labelled and unlabelled are, in standard deviations."""
    both = values.variance(labelled=True) + values.variance(labelled=False)
    apart = values.mean(labelled=True) - values.mean(labelled=False)
    return apart / max(float(np.sqrt(0.5 * both)), SURE)
