"""Trees beside kernels: a score of its own where those predict the labels better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils import gen_batches

from probgap._core.features import FeatureMap, Single, TrainingFeatures
from probgap._core.folds import RowFolds
from probgap._core.kernels import Matrix, spread_rows
from probgap._core.losses import log_likelihoods
from probgap._core.overlap import CEILING_QUANTILE
from probgap._core.threads import one_thread
from probgap._core.values import HeldValues, RowValues, difference
from probgap.gap._rate import RatePrior, hold_ceiling, rate_prior, score_of_chance

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]
Parts = NDArray[np.int8]

# Boosting costs little beside a million rows of features; two parts are cheapest.
_PARTS = 2
_BLOCK_ROWS = 2**16
# More rows hardly make better trees; and numbers that rows may have together.
_MOST_ROWS = 400_000
_MOST_VALUES = 64_000_000
NO_PART = -1


@dataclass(frozen=True, slots=True, eq=False)
class BoostedChance:
    """P(s=1 | x) by boosted trees, the mean of models fitted on parts of the samples.

    ``shift`` is what to add to their log-odds, where labelled samples were taken more
    often than others. (Weights would do worse: trees fit the few others too closely.)
    """

    parts: tuple[HistGradientBoostingClassifier, ...]
    shift: float = 0.0

    def __call__(self, samples: Matrix) -> Vector:
        """Give the chance of each sample to be labelled."""
        return self.held_out(samples, np.full(samples.shape[0], NO_PART, np.int8))

    def held_out(self, samples: Matrix, part: Parts) -> Vector:
        """Give the chance by the model of the part that holds a sample out.

        ``part`` is ``NO_PART`` for samples that no model has seen: they get the mean.
        """
        chance = np.empty(part.size)
        with one_thread():
            for rows in gen_batches(part.size, _BLOCK_ROWS):
                block, held_out_by = samples[rows], part[rows]
                found = np.zeros(held_out_by.size)
                for k, model in enumerate(self.parts):
                    for which, share in ((k, 1.0), (NO_PART, 1.0 / len(self.parts))):
                        asked = np.flatnonzero(held_out_by == which)
                        if asked.size:
                            found[asked] += share * self._ask(model, block[asked])
                chance[rows] = found
        return chance

    def _ask(self, model: HistGradientBoostingClassifier, samples: Matrix) -> Vector:
        chance: Vector = model.predict_proba(samples)[:, 1]
        return chance if self.shift == 0.0 else expit(logit(chance) + self.shift)


def ranks_for_trees(
    n_labelled: int, n_unlabelled: int, n_columns: int
) -> tuple[Positions, Positions]:
    """Give the ranks, among labelled and other rows, of those that trees are grown of.

    Labelled ones, which are scarce, take up to half of the room.
    """
    most = max(_PARTS**2, min(_MOST_ROWS, _MOST_VALUES // n_columns))
    few = min(n_labelled, max(most // 2, most - n_unlabelled))
    others = min(n_unlabelled, most - few)
    return spread_rows(n_labelled, few), spread_rows(n_unlabelled, others)


def boost(
    samples: Matrix,
    labelled: Mask,
    numbers: tuple[int, int],
    seed: int,
    n_jobs: int | None = None,
) -> tuple[BoostedChance, Parts]:
    """Fit boosted trees on parts of rows; give them, and the part that holds a row out.

    ``numbers`` says for how many labelled and how many other rows they stand.
    """
    part = RowFolds(_PARTS, seed).fold_of(labelled, 0, 0)
    jobs = (
        delayed(_boost_part)(samples[part != k], labelled[part != k], seed)
        for k in range(_PARTS)
    )
    parts = tuple(Parallel(n_jobs)(jobs))
    n_labelled = np.count_nonzero(labelled)
    taken = n_labelled / (labelled.size - n_labelled)
    return BoostedChance(parts, float(np.log(numbers[0] / numbers[1] / taken))), part


def _boost_part(
    samples: Matrix, labelled: Mask, seed: int
) -> HistGradientBoostingClassifier:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 (slow to load, and seldom needed)

    # One thread, as everywhere: more would change the last bits.
    with one_thread():
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        return model.fit(samples, labelled)


def rate_by_trees(by_trees: RowValues, by_kernels: RowValues) -> RatePrior | None:
    """Give the rate by what trees say, or None if kernels predict labels as well."""
    one, other = (chance.map(log_likelihoods) for chance in (by_trees, by_kernels))
    if one.map(difference, other).in_standard_errors() <= 0.0:
        return None
    clearest = by_trees.quantile(CEILING_QUANTILE, labelled=True)
    return rate_prior(hold_ceiling(clearest))


def start_with_trees(n_kernel_features: int) -> Vector:
    """Give where a fit begins: the score of the trees, and no intercept."""
    return np.append(np.zeros(n_kernel_features), [1.0, 0.0])


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
    kinds = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    numbers = kinds[0].size, kinds[1].size
    ranks = ranks_for_trees(*numbers, samples.shape[1])
    grown = np.sort(np.concatenate([kinds[0][ranks[0]], kinds[1][ranks[1]]]))
    part = np.full(labelled.size, NO_PART, dtype=np.int8)
    boosted, part[grown] = boost(samples[grown], labelled[grown], numbers, seed, n_jobs)
    rows, observed = features.rows, labelled[features.rows]
    chance = boosted.held_out(samples[rows], part[rows])
    by_trees = HeldValues(chance, observed, features.weight)
    prior = rate_by_trees(by_trees, HeldValues(plain.chance, observed, features.weight))
    if prior is None:
        without = replace(features, values=features.values[:, :-1])
        return Stack(without, plain.chance, np.delete(plain.start, -2))
    features.values[:, -1] = score_of_chance(chance, prior)
    stacked = replace(features, map=StackedFeatures(features.map, boosted, prior))
    start = start_with_trees(plain.start.size - 2)
    return Stack(stacked, chance, start, used=True)
