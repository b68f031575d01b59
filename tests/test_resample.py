"""How far the share of positives moves over resamples, by one Newton step."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from probgap._core.rows import HeldRows
from probgap.datasets import hide_labels, make_square
from probgap.gap import LabellingModel, _resample
from probgap.gap._product import fit_product, moved_scores
from probgap.gap._rate import rate_prior
from probgap.gap._resample import Placed, _share_of_positives


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 6)).astype(np.float32)
    labelled = rng.random(300) < 0.6 / (1.0 + np.exp(-2.0 * values[:, 0]))
    return HeldRows(values, labelled.astype(np.float64))


def test_one_step_goes_where_a_fit_with_those_counts_would(rows, rng):
    settings = {"C": 1.0, "prior": rate_prior(0.6)}
    fits = fit_product(rows, **settings)
    more = 0.1 * rng.normal(size=(300, 2))
    moved = moved_scores(rows, rows.block(slice(None)), fits, more, **settings)
    for i in range(2):
        again = fit_product(replace(rows, weight=1.0 + more[:, i]), **settings)
        truth = again.score(rows.features) - fits.score(rows.features)
        assert_allclose(moved[:, i], truth, atol=0.1 * np.abs(truth).max())


def test_nobody_counted_otherwise_moves_nothing(rows):
    settings = {"C": 1.0, "prior": rate_prior(0.6)}
    fits = fit_product(rows, **settings)
    moved = moved_scores(
        rows, rows.block(slice(20)), fits, np.zeros((20, 3)), **settings
    )
    assert_allclose(moved, 0.0)


def test_a_resample_without_a_labelled_row_keeps_them_all():
    score = np.linspace(-4.0, 4.0, 40)
    labelled, chance = score > 2.0, 0.6 / (1.0 + np.exp(-score))
    prior = rate_prior(0.6)
    placed = Placed(prior.level, prior.slope, 0.6, 0.0, 0.0)
    share = [
        _share_of_positives(score, chance, labelled, drawn, placed, np.ones(40))
        for drawn in (np.zeros(40, dtype=np.int64), np.ones(40, dtype=np.int64))
    ]
    assert share[0] == share[1]
    assert 0.25 < share[0] < 0.75


def test_some_rows_stand_for_all(monkeypatch):
    X, y, posterior = make_square(600, random_state=0)
    s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.6), random_state=1)
    settings = {"forest": False, "random_state": 0}
    every = LabellingModel(**settings).fit(X, s).class_prior_spread_
    monkeypatch.setattr(_resample, "_MOST_OF_EACH", 60)
    some = LabellingModel(**settings).fit(X, s).class_prior_spread_
    assert 0.4 * every < some < 2.5 * every
