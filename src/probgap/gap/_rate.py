"""How the chance of a positive to be labelled goes with its score, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probgap._core.overlap import CEILING_QUANTILE

Vector = NDArray[np.float64]

_CEILING_RANGE = (0.01, 0.95)
# Clear negatives: this quantile of the unlabelled.
FLOOR_QUANTILE = 0.25
# The rate reaches its ceiling at this log-odds of being positive (a chance of 0.88).
_SCORE_AT_CEILING = 2.0
# How far the rate's level may move from what the ceiling says: 5% of the odds.
_LEVEL_FREEDOM = 0.05
# How far the boundary goes from even odds towards the least labelled positives, when
# classes do not overlap and those positives mark where the positive class begins; and
# the log-odds at which they are taken for strays instead, and followed no farther.
_TOWARDS_THE_LEAST = 0.6
N_LEAST = 3
_FARTHEST = 1.0
# Scores that a chance is traced back to: beyond, a chance says no more.
_SCORES = np.linspace(-10.0, 2.0 * _SCORE_AT_CEILING, 2001)


@dataclass(frozen=True, slots=True)
class RatePrior:
    """What is assumed of the labelling rate expit(level + slope * score).

    Attributes
    ----------
    slope : float
        How fast the rate rises with the score; 0 means that labels are missing at
        random. It is fixed: positive and unlabelled data do not identify it.
    level : float
        Where the level is expected.
    spread : float
        Standard deviation of the level about that.
    """

    slope: float
    level: float
    spread: float


def rate_prior(ceiling: float) -> RatePrior:
    """Read the rate off the chance that the clearest positives have of being labelled."""
    # The fewer of the clearest positives are labelled, the more the labelling must
    # have gone by how clear they are; the choice is a rule of thumb.
    slope = 1.0 - ceiling
    return RatePrior(
        slope=slope,
        level=float(logit(ceiling)) - slope * _SCORE_AT_CEILING,
        spread=_LEVEL_FREEDOM / (1.0 - ceiling),
    )


def ceiling_of(chance: Vector) -> float:
    """Give the chance of being labelled of the clearest among labelled positives."""
    return hold_ceiling(float(np.quantile(chance, CEILING_QUANTILE)))


def hold_ceiling(chance: float) -> float:
    """Keep a ceiling within what can be one."""
    return float(np.clip(chance, *_CEILING_RANGE))


def floor_under(low: float, ceiling: float) -> float:
    """Give the chance that clear negatives have by a score; 0 if that is a good one.

    ``low`` is the ``FLOOR_QUANTILE`` of the unlabelled.
    """
    return min(low, ceiling)


def chance_of_score(score: Vector, level: float, slope: float) -> Vector:
    """Give P(s=1 | x) of a log-odds of being positive."""
    chance: Vector = expit(score) * expit(level + slope * score)
    return chance


def score_of_chance(chance: Vector, prior: RatePrior) -> Vector:
    """Give the log-odds of being positive for which P(s=1 | x) is the given chance."""
    return np.interp(
        chance, chance_of_score(_SCORES, prior.level, prior.slope), _SCORES
    )


def blend(seen: Vector, unseen: Vector, separable: float) -> Vector:
    """Give the score of samples between that of all and that of others' labels.

    Without overlap the labels seen do no harm, and all the data give a smoother edge;
    with it they would pull each sample towards its own label.
    """
    share = 0.5 * separable
    return share * seen + (1.0 - share) * unseen


def even_score(least: Vector, separable: float) -> float:
    """Give the score at which a sample is as likely positive as not.

    ``least`` holds the ``N_LEAST`` least scores of labelled ones.
    """
    followed = float(np.clip(float(least.mean()), -_FARTHEST, 0.0))
    return _TOWARDS_THE_LEAST * separable * followed


def boundary_at(score: float, level: float, slope: float) -> float:
    """Give the observed gap at a score."""
    return float(2.0 * expit(score) * expit(level + slope * score) - 1.0)
