"""Trees beside kernels: a score of its own where those predict the labels better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import gen_batches

from probgap._core.features import FeatureMap, Single, TrainingFeatures
from probgap._core.folds import Fold
from probgap._core.kernels import Matrix
from probgap._core.losses import log_loss
from probgap._core.threads import one_thread
from probgap.gap._rate import RatePrior, ceiling_of, rate_prior, score_of_chance

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Boosting costs little beside a million rows of features; two parts are cheapest.
_PARTS = 2
_BLOCK_ROWS = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class BoostedChance:
    """P(s=1 | x) by boosted trees, the mean of models fitted on parts of the samples."""

    parts: tuple[HistGradientBoostingClassifier, ...]

    def __call__(self, samples: Matrix) -> Vector:
        """Give the chance of each sample to be labelled."""
        mean = np.zeros(samples.shape[0])
        with one_thread():
            for rows in gen_batches(mean.size, _BLOCK_ROWS):
                for part in self.parts:
                    mean[rows] += part.predict_proba(samples[rows])[:, 1]
        return mean / len(self.parts)


def boost(
    samples: Matrix, labelled: Mask, seed: int, n_jobs: int | None
) -> tuple[BoostedChance, Vector]:
    """Fit boosted trees on parts; give them, and the chance of each sample held out."""
    splitter = StratifiedKFold(_PARTS, shuffle=True, random_state=seed)
    folds = list(splitter.split(labelled, labelled))
    jobs = (delayed(_boost_part)(samples, labelled, fold, seed) for fold in folds)
    chance = np.full(labelled.size, np.nan)
    parts = []
    for (_, test), (part, held_out) in zip(folds, Parallel(n_jobs)(jobs), strict=True):
        chance[test] = held_out
        parts.append(part)
    return BoostedChance(tuple(parts)), chance


def _boost_part(
    samples: Matrix, labelled: Mask, fold: Fold, seed: int
) -> tuple[HistGradientBoostingClassifier, Vector]:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 (slow to load, and seldom needed)

    train, test = fold
    # One thread, as everywhere: more would change the last bits.
    with one_thread():
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        model.fit(samples[train], labelled[train])
        return model, model.predict_proba(samples[test])[:, 1]


@dataclass(frozen=True, slots=True, eq=False)
class StackedFeatures:
    """Kernel features, and the log-odds of being positive that boosted trees suggest."""

    kernel: FeatureMap
    chance: BoostedChance
    prior: RatePrior

    @property
    def n_inputs(self) -> int:
        """Number of features of a sample before."""
        return self.kernel.n_inputs

    @property
    def n_components(self) -> int:
        """Number of kernel features, which come first."""
        return self.kernel.n_components

    def transform(self, samples: Matrix) -> Single:
        """Give the features of samples."""
        score = self.boosted_score(samples)[:, None].astype(np.float32)
        return np.hstack([self.kernel.transform(samples), score])

    def score(self, samples: Matrix, coef: Vector) -> Vector:
        """Give the product of the features with coefficients."""
        boosted = self.boosted_score(samples)
        return self.kernel.score(samples, coef[:-1]) + coef[-1] * boosted

    def boosted_score(self, samples: Matrix) -> Vector:
        """Give the log-odds of being positive that boosted trees suggest."""
        return score_of_chance(self.chance(samples), self.prior)


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Features with room for one more, what they say, and where a fit may begin."""

    features: TrainingFeatures
    chance: Vector
    start: Vector
    used: bool = False


def stack_trees(
    samples: Matrix, labelled: Mask, plain: Stack, seed: int, n_jobs: int | None
) -> Stack:
    """Put the trees' score into the spare column, if they predict labels better."""
    features = plain.features
    observed = labelled[features.rows]
    boosted, of_all = boost(samples, labelled, seed, n_jobs)
    by_trees = of_all[features.rows]
    if log_loss(by_trees, observed) >= log_loss(plain.chance, observed):
        without = replace(features, values=features.values[:, :-1])
        return Stack(without, plain.chance, np.delete(plain.start, -2))
    prior = rate_prior(ceiling_of(by_trees[observed]))
    features.values[:, -1] = score_of_chance(by_trees, prior)
    stacked = replace(features, map=StackedFeatures(features.map, boosted, prior))
    start = np.append(np.zeros(plain.start.size - 2), [1.0, 0.0])
    return Stack(stacked, by_trees, start, used=True)
