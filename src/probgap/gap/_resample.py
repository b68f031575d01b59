"""How far the share of positives moves when the rows are others of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from probgap._core.kernels import spread_rows
from probgap._core.newton import LinearFits
from probgap._core.rows import HeldRows, RowBlock, Rows
from probgap._core.values import least_of
from probgap.gap._doubt import highest_even_score
from probgap.gap._product import moved_scores
from probgap.gap._rate import (
    N_LEAST,
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


@dataclass(frozen=True, slots=True, eq=False)
class SomeOfEach:
    """Rows to resample: labelled ones, then others.

    Attributes
    ----------
    block : RowBlock
        Their features and labels.
    score : ndarray of shape (n_rows,)
        The log-odds of being positive.
    chance : ndarray of shape (n_rows,)
        The chance of being labelled by models that have not seen the row.
    stands_for : ndarray of shape (n_rows,)
        How many samples each of them stands for.
    """

    block: RowBlock
    score: Vector
    chance: Vector
    stands_for: Vector

    @classmethod
    def of(cls, held: HeldRows, score: Vector, chance: Vector) -> Self:
        """Choose among rows in memory."""
        counts = np.ones(held.n_rows) if held.weight is None else held.weight
        rows, stands_for = [], []
        for kind in (True, False):
            group = np.flatnonzero((held.target > 0.5) == kind)
            kept = group[ranks_to_resample(group.size)]
            rows.append(kept)
            stands_for.append(np.full(kept.size, counts[group].sum() / kept.size))
        chosen = np.concatenate(rows)
        return cls(
            held.block(chosen),
            score[chosen],
            chance[chosen],
            np.concatenate(stands_for),
        )


def ranks_to_resample(n_rows: int) -> NDArray[np.intp]:
    """Give the ranks, among rows of a kind, of those that are resampled."""
    return spread_rows(n_rows, min(n_rows, _MOST_OF_EACH))


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
    rows: Rows,
    some: SomeOfEach,
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
    drawn = rng.poisson(1.0, (some.score.size, _N_RESAMPLES)).astype(np.int64)
    # So few rows make for as much luck as those that they stand for.
    more = (drawn - 1).astype(np.float64) * np.sqrt(some.stands_for)[:, None]
    moved = moved_scores(
        rows,
        some.block,
        product,
        more,
        C=C,
        prior=rate_prior(placed.ceiling),
    )
    shares = [
        _share_of_positives(
            some.score + moved[:, i],
            some.chance,
            some.block.target > 0.5,
            drawn[:, i],
            placed,
            some.stands_for,
        )
        for i in range(_N_RESAMPLES)
    ]
    return float(np.std(np.log(shares)))


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
    even = (
        even_score(least_of(score[among], N_LEAST), placed.separability) + placed.doubt
    )
    even = min(even, highest_even_score(prior.level, prior.slope))
    posterior = expit(score - even)
    counted = np.where(labelled, 1.0, posterior)
    called = labelled | (posterior > 0.5)
    total = stands_for.sum()
    return float(
        np.sqrt((counted @ stands_for / total) * (called @ stands_for / total))
    )
