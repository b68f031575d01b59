"""A forest beside kernels: the mean of two scores that err differently errs less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probgap._core.kernels import Matrix
from probgap._core.losses import SURE
from probgap.gap._rate import RatePrior, score_of_chance

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Of fewer samples trees have little to split, and growing them takes longer than all the
# rest; with more they take long, and kernels have enough to learn from.
_FOR_FOREST = range(100, 6001)
_N_TREES = 100
_SMALLEST_LEAF = 3
# How much of the score is the forest's, at most.
_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class ForestChance:
    """P(s=1 | x) by randomised trees, drawn a little towards the frequency of labels."""

    trees: ExtraTreesClassifier
    frequency: float

    def __call__(self, samples: Matrix) -> Vector:
        """Give the chance of each sample to be labelled."""
        return self._drawn(self.trees.predict_proba(samples)[:, 1])

    def held_out(self) -> Vector:
        """Give the chance of each training sample by the trees that have not seen it."""
        return self._drawn(self.trees.oob_decision_function_[:, 1])

    def _drawn(self, chance: Vector) -> Vector:
        return (_N_TREES * chance + self.frequency) / (_N_TREES + 1)


def deserves_forest(n_samples: int) -> bool:
    """Say whether there are enough samples for a forest, and not too many."""
    return n_samples in _FOR_FOREST


def grow_forest(samples: Matrix, labelled: Mask, seed: int) -> ForestChance:
    """Grow trees that tell labelled from unlabelled samples."""
    from sklearn.ensemble import ExtraTreesClassifier  # noqa: PLC0415 (slow to load)

    # One process: sums of trees in another order would change the last bits.
    trees = ExtraTreesClassifier(
        _N_TREES,
        min_samples_leaf=_SMALLEST_LEAF,
        bootstrap=True,
        oob_score=True,
        n_jobs=1,
        random_state=seed,
    )
    return ForestChance(trees.fit(samples, labelled), float(labelled.mean()))


def mix_chances(
    chance: Vector, forest: ForestChance | None, rows: NDArray[np.intp] | slice
) -> Vector:
    """Give the chance whose log-odds lie between those of kernels and of a forest."""
    if forest is None:
        return chance
    by_kernels, by_forest = (
        logit(np.clip(p, SURE, 1.0 - SURE)) for p in (chance, forest.held_out()[rows])
    )
    mixed: Vector = expit((1.0 - _SHARE) * by_kernels + _SHARE * by_forest)
    return mixed


@dataclass(frozen=True, slots=True, eq=False)
class ForestScore:
    """The log-odds of being positive that a forest suggests, and how far to heed them."""

    chance: ForestChance
    share: float
    prior: RatePrior


def heed(
    forest: ForestChance | None, separability: float, prior: RatePrior
) -> ForestScore | None:
    """Heed a forest as far as classes overlap: where they part, its edge is rough."""
    share = _SHARE * (1.0 - separability)
    return None if forest is None or share == 0.0 else ForestScore(forest, share, prior)


def mix_scores(
    score: Vector, forest: ForestScore | None, samples: Matrix | None = None
) -> Vector:
    """Give a score between that of kernels and that of a forest.

    Without samples they are those of training, and the trees that have not seen a
    sample score it.
    """
    if forest is None:
        return score
    chance = forest.chance.held_out() if samples is None else forest.chance(samples)
    by_forest = score_of_chance(chance, forest.prior)
    return (1.0 - forest.share) * score + forest.share * by_forest
