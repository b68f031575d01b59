"""Algorithm 1 over a table in blocks: the stages of one machine, on sums over blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from probgap._core.features import FeatureMap, KernelFeatures, draw_landmarks
from probgap._core.kernels import gamma_of_variance, spread_rows
from probgap._core.newton import LinearFits
from probgap._core.progress import stage
from probgap.boundary import (
    Boundary,
    answer_by_rules,
    find_boundary,
    settle_boundary,
    weigh_candidates,
)
from probgap.dask._foreign import chance_of_some
from probgap.dask._rows import BlockRows
from probgap.dask._table import BlockTable
from probgap.dask._trees import BlockStack, stack_trees
from probgap.dask._values import BlockValues
from probgap.dask._wrapped import WrappedGap
from probgap.gap import LabellingModel
from probgap.gap._plain import fit_plain
from probgap.gap._product import fit_product
from probgap.gap._rate import chance_of_score, rate_prior
from probgap.gap._reading import Reading, place_boundary, read_chances
from probgap.gap._resample import Placed, spread_of_prior
from probgap.gap._spread import spread_of_boundary
from probgap.pgpu._base import MOST_ASKED
from probgap.pgpu._penalty import choose_penalty, rows_for_penalty
from probgap.pgpu._posterior import CERTAIN_QUANTILE, fit_slope, posterior_between
from probgap.pgpu._prior import (
    ClassPrior,
    estimate_prior,
    label_frequencies,
    prior_of_reading,
    share_called,
    spread_of_share,
)
from probgap.reading import read
from probgap.relabel import relabel, relabel_in_expectation

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

# Labelled positives that the spread of the boundary is told by; more are thinned out.
_MOST_FOR_SPREAD = 1_000_000
# Rows of each kind whose gaps are read, and probabilities that have log-odds of use.
_MOST_READ = 200_000
_SURE = 1e-4
# Rows that the spread of a boundary by rule is told by.
_MOST_RESAMPLED = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class BlockGap:
    """Step 1 and 2: the labelling model, and the score of every row."""

    model: LabellingModel
    rows: BlockRows
    score: BlockValues

    @property
    def feature_map(self) -> FeatureMap:
        """How features are made: by the kernel, and by trees if they help."""
        return self.model.feature_map_

    @property
    def observed_gap(self) -> BlockValues:
        """P(s=1 | x) - P(s=0 | x)."""
        model = self.model
        return self.score.map(
            partial(_gap, level=model.rate_level_, slope=model.rate_slope_)
        )


AnyGap = BlockGap | WrappedGap


def map_features(table: BlockTable, n_landmarks: int, seed: int) -> KernelFeatures:
    """Draw landmarks as one machine would, and fetch them."""
    rows = draw_landmarks(table.n_rows, n_landmarks, seed)
    landmarks = table.fetch(rows).samples.astype(np.float64)
    gamma = gamma_of_variance(table.overview.variance, landmarks.shape[1])
    return KernelFeatures.spanned_by(landmarks, gamma)


def fit_gap(
    table: BlockTable,
    kernel: KernelFeatures,
    model: LabellingModel,
    seed: int,
    verbose: int,
) -> BlockGap:
    """Fit the labelling model as it fits itself, to rows in blocks."""
    rows = BlockRows(table, kernel)
    with stage(verbose, "who is labelled, by kernels"):
        plain = fit_plain(rows)
    with stage(verbose, "who is labelled, by trees"):
        stack = stack_trees(rows, plain, seed)
    reading = read_chances(stack.chance, table.n_unlabelled)
    with stage(verbose, "who is positive"):
        product = fit_product(
            stack.rows,
            C=model.C * plain.shrinkage,
            prior=rate_prior(reading.ceiling),
            start=stack.start,
        )
        score = stack.rows.blended(product, reading.separability)
    model.shrinkage_ = plain.shrinkage
    with stage(verbose, "the boundary"):
        _place(model, stack, reading, product, score, seed)
    model.feature_map_ = stack.map
    model.coef_, model.intercept_ = product.coef[:, 0], float(product.intercept[0])
    model.trees_used_, model.forest_ = stack.rows.column is not None, None
    model.n_features_in_ = kernel.n_inputs
    model.classes_, model.positive_index_ = np.array([False, True]), 1
    model.n_iter_ = product.n_iter
    model.converged_ = plain.converged and product.converged
    return BlockGap(model, stack.rows, score)


def _place(
    model: LabellingModel,
    stack: BlockStack,
    reading: Reading,
    product: LinearFits,
    score: BlockValues,
    seed: int,
) -> None:
    rows, chance, prior = stack.rows, stack.chance, rate_prior(reading.ceiling)
    level, slope = float(product.level[1:].mean()), prior.slope
    placed = place_boundary(chance, score, reading, level, slope)
    model.ceiling_, model.separability_ = reading.ceiling, reading.separability
    model.rate_level_, model.rate_slope_ = level, slope
    model.evidence_, model.doubt_ = placed.evidence, placed.doubt
    model.even_score_, model.boundary_ = placed.even_score, placed.boundary
    model.boundary_steps_ = placed.steps
    model.mean_labelled_chance_ = reading.mean
    model.high_labelled_chance_ = reading.high
    some = score.spread(_MOST_FOR_SPREAD, labelled=True)
    model.boundary_spread_ = spread_of_boundary(
        some,
        chance.spread(_MOST_FOR_SPREAD, labelled=True),
        rows.table.n_unlabelled,
        low=reading.low,
        off_prior=level - prior.level,
        doubt=placed.doubt,
        seed=seed,
    ) * float(np.sqrt(some.size / rows.table.n_labelled))
    model.class_prior_spread_ = spread_of_prior(
        rows,
        rows.some_of_each(score, chance),
        product,
        Placed(level, slope, reading.ceiling, reading.separability, placed.doubt),
        C=model.C * model.shrinkage_,
        seed=seed,
    )


def settle(
    gap: AnyGap, value: float | None, rng: np.random.Generator
) -> tuple[Boundary, BlockValues]:
    """Give the boundary, placed by the model or given, and the posterior that it means."""
    observed = gap.observed_gap
    if value is None and isinstance(gap, BlockGap):
        model = gap.model
        spread = model.boundary_spread_
        boundary = settle_boundary(observed, model.boundary_, "auto", spread)
        boundary = replace(boundary, separability=model.separability_)
        steps, rules = model.boundary_steps_, answer_by_rules(observed)
        others = {name: rules[name] for name in rules if name not in steps}
        boundary = weigh_candidates(boundary, observed, {**steps, **others})
        if boundary.fallback is None:
            return boundary, gap.score.map(partial(_posterior, even=model.even_score_))
    else:
        rule = "auto" if value is None else value
        boundary = find_boundary(observed, rule, rng=rng, most=_MOST_RESAMPLED)
    clearest = observed.quantile(CERTAIN_QUANTILE, labelled=True)
    between = partial(_posterior_between, boundary=boundary.value, clearest=clearest)
    return boundary, observed.map(between)


def share_rows(
    gap: AnyGap, posterior: BlockValues, boundary: Boundary, rule: str
) -> BlockValues:
    """Give how much of each row counts as positive; NaN for rows left out."""
    if rule == "expectation":
        shared = partial(_expected_share, hardness=boundary.separability)
        return gap.observed_gap.map(shared, posterior).kept()
    lower = boundary.value
    upper = lower if rule == "theorem" else max(0.0, lower)
    return gap.observed_gap.map(partial(_share, lower=lower, upper=upper)).kept()


def find_penalty(
    table: BlockTable, share: BlockValues, seed: int, separability: float
) -> float:
    """Choose C of the final machine as one machine would, by the same rows."""
    rows = rows_for_penalty(table.n_rows, separability)
    some = table.fetch(rows, (share.parts,))
    return choose_penalty(
        some.samples,
        some.numbers[0],
        some.marks.labelled,
        seed,
        separability=separability,
        n_samples=table.n_rows,
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the final classifier says of some rows.

    Attributes
    ----------
    slope : float or None
        How steeply the decision turns into a probability; None for a classifier with
        probabilities of its own.
    called : ndarray
        Which of the unlabelled rows among them are called positive.
    """

    slope: float | None
    called: Mask


def ask(
    classifier: Any, table: BlockTable, posterior: BlockValues, given: Any = None
) -> Asked:
    """Ask the final classifier about rows that one machine would ask about.

    ``given`` is what the user gave as that classifier, if anything.
    """
    some = table.fetch(spread_rows(table.n_rows, MOST_ASKED), (posterior.parts,))
    if hasattr(classifier, "predict_proba"):
        hidden = some.samples[~some.marks.labelled]
        chance = chance_of_some(classifier, hidden, given)
        return Asked(None, chance > 0.5)
    decision = classifier.decision_function(some.samples)
    called = decision[~some.marks.labelled] > 0.0
    return Asked(fit_slope(decision, some.numbers[0]), called)


def read_prior(observed: BlockValues) -> ClassPrior:
    """Count positives by a reading of the gaps, thinned out where there are many."""
    groups = [observed.spread(_MOST_READ, labelled=kind) for kind in (True, False)]
    counts = [observed.count(labelled=kind) for kind in (True, False)]
    weight = [np.full(g.size, n / g.size) for g, n in zip(groups, counts, strict=True)]
    labelled = np.repeat([True, False], [group.size for group in groups])
    chance = np.clip(0.5 * (1.0 + np.concatenate(groups)), _SURE, 1.0 - _SURE)
    reading = read(logit(chance), labelled, sample_weight=np.concatenate(weight))
    return replace(prior_of_reading(reading), spread=0.0)


def find_prior(
    gap: AnyGap, posterior: BlockValues, boundary: Boundary, asked: Asked, seed: int
) -> ClassPrior:
    """Estimate how many are positive, as one machine would."""
    observed = gap.observed_gap
    return estimate_prior(
        observed,
        posterior,
        share_called(asked.called, posterior),
        frequencies=label_frequencies(gap.model, observed),
        spread=spread_of_share(gap.model, observed, boundary, seed),
    )


def both_classes(target: BlockValues, weight: BlockValues) -> bool:
    """Say whether weights leave something of both classes to learn from."""
    positive = target.map(_product, weight).total()
    return 0.0 < positive < weight.total()


def _product(one: Vector, labelled: Mask, other: Vector) -> Vector:
    del labelled
    return one * other


def without_nan(share: Vector, labelled: Mask) -> Vector:
    """Give 0 for rows left out."""
    del labelled
    return np.nan_to_num(share)


def decided(share: Vector, labelled: Mask) -> Vector:
    """Give 1 for rows that have a share, 0 for those left out."""
    del labelled
    return np.isfinite(share).astype(np.float64)


def _gap(score: Vector, labelled: Mask, *, level: float, slope: float) -> Vector:
    del labelled
    return 2.0 * chance_of_score(score, level, slope) - 1.0


def _posterior(score: Vector, labelled: Mask, *, even: float) -> Vector:
    del labelled
    posterior: Vector = expit(score - even)
    return posterior


def _posterior_between(
    gap: Vector, labelled: Mask, *, boundary: float, clearest: float
) -> Vector:
    del labelled
    return posterior_between(gap, boundary, clearest)


def _expected_share(
    gap: Vector, labelled: Mask, posterior: Vector, *, hardness: float
) -> Vector:
    if gap.size == 0:
        return gap
    found = relabel_in_expectation(gap, labelled, posterior, hardness=hardness)
    return found.positive_share


def _share(gap: Vector, labelled: Mask, *, lower: float, upper: float) -> Vector:
    if gap.size == 0:
        return gap
    return relabel(gap, labelled, lower=lower, upper=upper).positive_share
