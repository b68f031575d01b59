"""What held-out chances say of the labelling rate, and where the boundary goes by it."""

from __future__ import annotations

from dataclasses import dataclass

from probgap._core.overlap import CEILING_QUANTILE, HIGH_QUANTILE, separability
from probgap._core.values import RowValues
from probgap.gap._doubt import doubt, evidence, highest_even_score
from probgap.gap._rate import (
    FLOOR_QUANTILE,
    N_LEAST,
    boundary_at,
    even_score,
    floor_under,
    hold_ceiling,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read off the chance of being labelled.

    Attributes
    ----------
    ceiling : float
        That of the clearest positives.
    mean, high : float
        That of labelled positives, on average, and of the very clearest.
    low : float
        A low quantile of the unlabelled, which are clear negatives there.
    separability : float
        From 0, classes overlap, to 1, they do not.
    """

    ceiling: float
    mean: float
    high: float
    low: float
    separability: float

    @property
    def floor(self) -> float:
        """The chance that clear negatives have."""
        return floor_under(self.low, self.ceiling)


def read_chances(chance: RowValues, n_unlabelled: int) -> Reading:
    """Read ceiling, floor and overlap off the chances of samples held out."""
    ceiling = hold_ceiling(chance.quantile(CEILING_QUANTILE, labelled=True))
    low = chance.quantile(FLOOR_QUANTILE, labelled=False)
    middle = 0.5 * (floor_under(low, ceiling) + ceiling)
    n_astray = chance.count_at_most(middle, labelled=True)
    apart = separability(n_astray, chance.count(labelled=True), n_unlabelled)
    mean = chance.mean(labelled=True)
    high = chance.quantile(HIGH_QUANTILE, labelled=True)
    return Reading(ceiling, mean, high, low, apart)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the boundary goes, and why.

    Attributes
    ----------
    evidence : float
        By how many standard errors held-out labels are predicted better than by their
        frequency.
    doubt : float
        How far doubts move even odds up.
    even_score : float
        The score at which a sample is as likely positive as not.
    steps : dict of float
        The boundary at even odds of the model, after it moved towards the least labelled
        positives, and ("auto") after doubts moved it up.
    """

    evidence: float
    doubt: float
    even_score: float
    steps: dict[str, float]

    @property
    def boundary(self) -> float:
        """The observed gap at which the true gap is 0."""
        return self.steps["auto"]


def place_boundary(
    chance: RowValues, score: RowValues, reading: Reading, level: float, slope: float
) -> Placement:
    """Place the boundary at even odds: lower without overlap, higher with doubts."""
    errors = evidence(chance)
    moved = doubt(
        chance,
        ceiling=reading.ceiling,
        floor=reading.floor,
        level=level,
        slope=slope,
        errors=errors,
    )
    least = even_score(score.least(N_LEAST, labelled=True), reading.separability)
    even = min(least + moved, highest_even_score(level, slope))
    scores = {"even odds": 0.0, "least labelled": least, "auto": even}
    steps = {name: boundary_at(at, level, slope) for name, at in scores.items()}
    return Placement(errors, moved, even, steps)
