"""How far the boundary moves with the labelled positives it is placed by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probgap._core.overlap import separability
from probgap.gap._doubt import highest_even_score
from probgap.gap._rate import boundary_at, ceiling_of, even_score, floor_of, rate_prior

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_N_RESAMPLES = 100


def spread_of_boundary(
    score: Vector,
    chance: Vector,
    labelled: Mask,
    n_unlabelled: int,
    *,
    off_prior: float,
    doubt: float,
    seed: int,
) -> float:
    """Place the boundary by resampled labelled positives, and see how it moves.

    ``off_prior`` is how far the rate's level lies from where the ceiling expects it.
    """
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(labelled)
    boundaries = np.empty(_N_RESAMPLES)
    for i in range(_N_RESAMPLES):
        drawn = rng.choice(rows, rows.size)
        ceiling = ceiling_of(chance[drawn])
        prior = rate_prior(ceiling)
        level = prior.level + off_prior
        floor = floor_of(chance[~labelled], ceiling)
        astray = chance[drawn] <= 0.5 * (floor + ceiling)
        apart = separability(astray, n_unlabelled)
        even = even_score(score[drawn], apart) + doubt
        even = min(even, highest_even_score(level, prior.slope))
        boundaries[i] = boundary_at(even, level, prior.slope)
    return float(boundaries.std())
