"""Step 1 where columns say who was looked at: rates of groups, and the gap of all alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import hstack as sparse_columns
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import clone

from probgap._core.newton import log_likelihood
from probgap._core.types import Vector
from probgap.labelling import (
    LabellingFit,
    Rates,
    equal_rates,
    fit_clear_rates,
    fit_rates,
)
from probgap.reading import read

if TYPE_CHECKING:
    from probgap.gap import GapClassifier
    from probgap.pgpu.steps import TrainingRows

# How often the gap is fitted anew where columns say who was looked at: with one more the
# average precision of hidden positives changed by less than 0.1 on the choosing tables.
_N_REFITS = 2
# Rates are taken for equal unless they explain held-out labels better, by a standard error,
# than the same columns do as features; or the evidence for rates is more than columns have by
# which nobody looked.
_MOST_BY_CHANCE = 50.0
# As features, the columns declared have at most so many columns; held-out labels are much
# better explained by so many natural units, and so many standard errors.
_MOST_AS_FEATURES = 60
_CLEARLY, _CLEAR_ERRORS = 15.0, 3.0


def fit_labelling(
    gap: GapClassifier, rows: TrainingRows, seed: int
) -> tuple[GapClassifier, LabellingFit]:
    """Fit rates of groups, and the gap to who would be labelled, in turn.

    ``gap`` is fitted to who is labelled. With columns in both roles it has learnt their
    rates; the others alone then tell the clearest rows, and rates are kept.
    """
    assert rows.looked is not None
    samples, labelled, declared = rows.samples, rows.labelled, rows.looked
    weight = np.ones(labelled.size) if rows.weight is None else rows.weight
    own, observed = (rows.weight, rows.group), _chance_by(gap)

    def given(rates: Rates, chance: Vector) -> LabellingFit:
        if rows.negative is not None:  # looked at, and rightly without a label
            chance = np.where(rows.negative, 0.0, chance)
        return LabellingFit(rates, chance, declared, labelled, weight)

    def refit(found: LabellingFit) -> GapClassifier:
        return clone(gap)._fit_checked(
            samples, labelled, weight, rows.group, found.missed
        )

    if declared.kept:
        others = np.setdiff1d(np.arange(samples.shape[1]), declared.kept_at)
        by_others = clone(gap)._fit_checked(samples[:, others], labelled, *own)
        known = _chance_by(by_others), observed, labelled, weight, seed
        rates = fit_clear_rates(declared, *known)
        found = given(rates, rates.first_chance(observed, declared))
        if rates.evidence == 0.0:
            return gap, found
        fitted = refit(found)
        return fitted, given(rates, _chance_by(fitted))
    rates = fit_rates(declared, observed, labelled, weight, seed)
    fitted, found = gap, given(rates, rates.first_chance(observed, declared))
    for _ in range(_N_REFITS if rates.evidence > 0.0 else 0):
        fitted = refit(found)
        rates = fit_rates(declared, _chance_by(fitted), labelled, weight, seed)
        found = given(rates, rates.first_chance(_chance_by(fitted), declared))
    return _doubted(gap, fitted, found, rows)


def _chance_by(gap: GapClassifier) -> Vector:
    return expit(gap._training_log_odds())


def _doubted(
    gap: GapClassifier, fitted: GapClassifier, found: LabellingFit, rows: TrainingRows
) -> tuple[GapClassifier, LabellingFit]:
    """Take rates for equal unless they explain labels better than the columns as features.

    Where columns say who was looked at, held-out labels had 8 to 60 more units of
    log-likelihood by rates (24 fits of the choosing tables, ``looked.py``). Where they do
    not, a feature explained them as well in three of four. If it explains them much better,
    the count by features is kept beside the other, for a warning: of 24 fits to columns on
    which the truth depended that is said of two, which could not tell the truth without the
    column, of 32 to columns that said only who was looked at of none.
    """
    declared, weight = found.declared, found.weight / found.weight.mean()
    columns = declared.as_features(_MOST_AS_FEATURES)
    if columns is None:
        return fitted, found
    samples, labelled = rows.samples, rows.labelled
    beside = sparse_columns if issparse(samples) else np.hstack
    both, own = [samples, columns.astype(samples.dtype)], (rows.weight, rows.group)
    other = clone(gap)._fit_checked(beside(both), labelled, *own)
    scores = other._training_log_odds()
    by_rates = found.chance * np.exp(found.rates.log_rate())
    gain = log_likelihood(expit(scores), labelled)
    gain = weight * (gain - log_likelihood(by_rates, labelled))
    error = np.sqrt(gain.size) * gain.std()
    sure = found.rates.evidence > _MOST_BY_CHANCE
    if gain.sum() > (_CLEARLY if sure else -error):
        fitted, found = (
            gap,
            replace(found, rates=equal_rates(found.rates), chance=_chance_by(gap)),
        )
    if gain.sum() < max(_CLEARLY, _CLEAR_ERRORS * error):
        return fitted, found
    count = read(scores, labelled, sample_weight=rows.weight).n_hidden_interval
    return fitted, replace(found, as_features=count)
