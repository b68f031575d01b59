"""How far the boundary moves with the labelled positives it is placed by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probgap._core.overlap import separability
from probgap._core.values import least_of
from probgap.gap._doubt import highest_even_score
from probgap.gap._rate import (
    N_LEAST,
    boundary_at,
    ceiling_of,
    even_score,
    floor_under,
    rate_prior,
)

Vector = NDArray[np.float64]

_N_RESAMPLES = 100


def spread_of_boundary(
    score: Vector,
    chance: Vector,
    n_unlabelled: int,
    *,
    low: float,
    off_prior: float,
    doubt: float,
    seed: int,
) -> float:
    """Place the boundary by resampled labelled positives, and see how it moves.

    ``score`` and ``chance`` are those of the labelled positives, ``low`` is the chance of
    clear negatives, and ``off_prior`` how far the rate's level lies from where the
    ceiling expects it.
    """
    rng = np.random.default_rng(seed)
    n_labelled = score.size
    boundaries = np.empty(_N_RESAMPLES)
    for i in range(_N_RESAMPLES):
        drawn = rng.choice(n_labelled, n_labelled)
        ceiling = ceiling_of(chance[drawn])
        prior = rate_prior(ceiling)
        level = prior.level + off_prior
        astray = chance[drawn] <= 0.5 * (floor_under(low, ceiling) + ceiling)
        apart = separability(int(np.count_nonzero(astray)), n_labelled, n_unlabelled)
        even = even_score(least_of(score[drawn], N_LEAST), apart) + doubt
        even = min(even, highest_even_score(level, prior.slope))
        boundaries[i] = boundary_at(even, level, prior.slope)
    return float(boundaries.std())
