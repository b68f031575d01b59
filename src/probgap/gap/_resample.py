"""How far the share of positives moves when the rows are others of the same kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from probgap._core.features import TrainingFeatures
from probgap._core.kernels import spread_rows
from probgap._core.newton import LinearFits
from probgap.gap._doubt import highest_even_score
from probgap.gap._product import moved_scores
from probgap.gap._rate import (
    RatePrior,
    ceiling_of,
    chance_of_score,
    even_score,
    rate_prior,
    score_of_chance,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

_N_RESAMPLES = 50
# Rows that are resampled: so many labelled ones, and so many others.
_MOST_OF_EACH = 2000


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a model puts the rate and even odds.

    Attributes
    ----------
    level, slope : float
        The labelling rate is expit(level + slope * f).
    ceiling : float
        Chance of being labelled of the clearest positives.
    separability : float
        From 0, classes overlap, to 1, they do not.
    doubt : float
        What was added to the log-odds at which a sample is as likely positive as not.
    """

    level: float
    slope: float
    ceiling: float
    separability: float
    doubt: float


def spread_of_prior(
    features: TrainingFeatures,
    labelled: Mask,
    score: Vector,
    chance: Vector,
    product: LinearFits,
    placed: Placed,
    *,
    C: float,
    seed: int,
) -> float:
    """Give the standard deviation of the log of the share of positives over resamples.

    A resample moves the score, by one Newton step, and the ceiling that the rate is
    read off. The forest is not grown again: its part of the score is taken to move as
    the kernels' part does.
    """
    rng = np.random.default_rng(seed)
    rows, stands_for = _some_rows(labelled, features.weight)
    known = labelled[rows]
    drawn = rng.poisson(1.0, (rows.size, _N_RESAMPLES)).astype(np.int64)
    # So few rows make for as much luck as those that they stand for.
    more = (drawn - 1).astype(np.float64) * np.sqrt(stands_for)[:, None]
    moved = moved_scores(
        features.values,
        labelled,
        product,
        rows,
        more,
        C=C,
        prior=rate_prior(placed.ceiling),
        weight=features.weight,
    )
    shares = [
        _share_of_positives(
            score[rows] + moved[:, i],
            chance[rows],
            known,
            drawn[:, i],
            placed,
            stands_for,
        )
        for i in range(_N_RESAMPLES)
    ]
    return float(np.std(np.log(shares)))


def _some_rows(
    labelled: Mask, weight: Vector | None
) -> tuple[NDArray[np.intp], Vector]:
    """Give rows of both kinds, and how many samples each of them stands for."""
    counts = np.ones(labelled.size) if weight is None else weight
    rows, stands_for = [], []
    for kind in (True, False):
        group = np.flatnonzero(labelled == kind)
        kept = group[spread_rows(group.size, min(group.size, _MOST_OF_EACH))]
        rows.append(kept)
        stands_for.append(np.full(kept.size, counts[group].sum() / kept.size))
    return np.concatenate(rows), np.concatenate(stands_for)


def _share_of_positives(
    score: Vector,
    chance: Vector,
    labelled: Mask,
    drawn: NDArray[np.int64],
    placed: Placed,
    stands_for: Vector,
) -> float:
    """Place the boundary by the rows that were drawn, and count in two ways."""
    among = np.repeat(np.flatnonzero(labelled), drawn[labelled])
    if among.size == 0:
        among = np.flatnonzero(labelled)
    prior = rate_prior(ceiling_of(chance[among]))
    level = prior.level + placed.level - rate_prior(placed.ceiling).level
    prior = RatePrior(prior.slope, level, prior.spread)
    # The data say how likely a sample is to be labelled; another rate makes of it
    # another chance to be positive.
    observed = chance_of_score(score, placed.level, placed.slope)
    score = score_of_chance(observed, prior)
    even = even_score(score[among], placed.separability) + placed.doubt
    even = min(even, highest_even_score(prior.level, prior.slope))
    posterior = expit(score - even)
    counted = np.where(labelled, 1.0, posterior)
    called = labelled | (posterior > 0.5)
    total = stands_for.sum()
    return float(
        np.sqrt((counted @ stands_for / total) * (called @ stands_for / total))
    )
