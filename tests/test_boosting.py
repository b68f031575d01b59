"""Boosted trees beside kernel features: taken where they predict labels better."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import log_loss as peer_log_loss
from sklearn.metrics import roc_auc_score

from probgap._core import features as features_room
from probgap._core.losses import log_loss
from probgap.gap import LabellingModel, _boosting
from probgap.gap._boosting import StackedFeatures, boost, ranks_for_trees


def steps(n, seed):
    """Positive by two thresholds out of ten features; most positives are labelled."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    positive = (X[:, 0] > 0.0) & (X[:, 1] > -0.5)
    return X, positive, (positive & (rng.random(n) < 0.8)).astype(int)


def smooth(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    positive = rng.random(n) < expit(2.0 * X[:, 0])
    return X, positive, (positive & (rng.random(n) < 0.8)).astype(int)


@pytest.fixture(scope="module")
def stepwise():
    X, positive, s = steps(1500, 0)
    model = LabellingModel(n_components=60, trees=True, forest=False, random_state=0)
    return X, positive, s, model.fit(X, s)


def test_steps_along_axes_are_left_to_trees(stepwise):
    X, _, s, model = stepwise
    assert model.trees_used_
    assert isinstance(model.feature_map_, StackedFeatures)
    assert model.coef_.size == model.feature_map_.n_components + 1
    assert model.feature_map_.n_inputs == 10
    assert model.coef_[-1] > 0.0
    new, positive, _ = steps(1000, 1)
    plain = LabellingModel(n_components=60, forest=False, random_state=0).fit(X, s)
    assert not plain.trees_used_
    right, right_without = (
        ((fitted.predict_posterior(new) > 0.5) == positive).mean()
        for fitted in (model, plain)
    )
    assert right > 0.95
    assert right > right_without + 0.03


def test_the_score_is_the_product_of_stacked_features_and_coefficients(stepwise):
    X, _, _, model = stepwise
    stacked = model.feature_map_.transform(X)
    assert stacked.shape == (1500, model.coef_.size)
    assert stacked.dtype == np.float32
    by_hand = stacked @ model.coef_ + model.intercept_ - model.even_score_
    assert_allclose(model.predict_posterior(X), expit(by_hand), atol=1e-4)


def test_a_smooth_rate_in_few_dimensions_is_left_to_kernels():
    X, _, s = smooth(500, 0)
    model = LabellingModel(
        n_components=60, trees=True, forest=False, random_state=0
    ).fit(X, s)
    assert not model.trees_used_
    plain = LabellingModel(n_components=60, forest=False, random_state=0).fit(X, s)
    assert model.coef_.shape == plain.coef_.shape
    assert_allclose(model.observed_gap_, plain.observed_gap_, atol=5e-3)


def test_sparse_samples_get_no_trees(stepwise):
    X, _, s, _ = stepwise
    sparse = sp.csr_array(X)
    model = LabellingModel(
        n_components=60, trees=True, forest=False, random_state=0
    ).fit(sparse, s)
    plain = LabellingModel(n_components=60, forest=False, random_state=0).fit(sparse, s)
    assert not model.trees_used_
    assert_array_equal(model.observed_gap_, plain.observed_gap_)


def test_two_jobs_give_the_same_bits(stepwise):
    X, _, s, model = stepwise
    other = LabellingModel(
        n_components=60, trees=True, forest=False, random_state=0, n_jobs=2
    )
    assert_array_equal(other.fit(X, s).observed_gap_, model.observed_gap_)
    assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_with_memory_for_some_samples_trees_still_see_all(stepwise, monkeypatch):
    X, positive, s, whole = stepwise
    monkeypatch.setattr(features_room, "_MOST_VALUES", 60 * 750)
    model = LabellingModel(
        n_components=60, trees=True, forest=False, random_state=0
    ).fit(X, s)
    assert model.trees_used_
    chances = [fitted.feature_map_.chance(X) for fitted in (model, whole)]
    assert_array_equal(*chances)
    assert not np.array_equal(model.coef_, whole.coef_)
    assert ((model.posterior_ > 0.5) == positive).mean() > 0.93


def test_a_chance_held_out_knows_nothing_of_its_own_label(rng):
    X, labelled = rng.normal(size=(400, 3)), rng.random(400) < 0.5
    boosted, part = boost(X, labelled, (labelled.sum(), (~labelled).sum()), 0)
    held_out = boosted.held_out(X, part)
    assert len(boosted.parts) == 2
    # The labels are noise: who has seen them can tell them, who has not cannot.
    assert roc_auc_score(labelled, boosted(X)) > 0.8
    assert roc_auc_score(labelled, held_out) == pytest.approx(0.5, abs=0.1)
    parts = np.array([model.predict_proba(X)[:, 1] for model in boosted.parts])
    assert_allclose(boosted(X), parts.mean(axis=0))
    assert_array_equal(held_out, np.where(part == 0, *parts))
    assert abs((part == 0).sum() - 200) <= 1


def test_of_many_rows_some_are_taken_labelled_ones_first(rng, monkeypatch):
    monkeypatch.setattr(_boosting, "_MOST_ROWS", 100)
    few, others = ranks_for_trees(30, 1000, 5)
    assert_array_equal(few, np.arange(30))
    assert others.size == 70
    assert (others[0], others[-1]) == (0, 999)
    assert [ranks.size for ranks in ranks_for_trees(400, 700, 5)] == [50, 50]
    assert [ranks.size for ranks in ranks_for_trees(400, 20, 5)] == [80, 20]
    monkeypatch.setattr(_boosting, "_MOST_VALUES", 200)
    assert [ranks.size for ranks in ranks_for_trees(400, 700, 10)] == [10, 10]


def test_trees_of_some_rows_say_how_often_rows_are_labelled():
    """Labelled rows are taken more often; their odds make up for it."""
    X, _, s = steps(20_000, 0)
    labelled = (s == 1) & (np.arange(s.size) % 4 == 0)
    numbers = labelled.sum(), (~labelled).sum()
    rows = np.sort(np.r_[np.flatnonzero(labelled), np.flatnonzero(~labelled)[::3]])
    boosted, _ = boost(X[rows], labelled[rows], numbers, 0)
    assert labelled[rows].mean() > 2.0 * labelled.mean()
    assert boosted(X).mean() == pytest.approx(labelled.mean(), rel=0.25)


def test_log_loss_is_scikit_learns_and_finite(rng):
    chance, labelled = rng.uniform(0.05, 0.95, 50), rng.random(50) < 0.5
    assert log_loss(chance, labelled) == pytest.approx(peer_log_loss(labelled, chance))
    assert np.isfinite(log_loss(np.array([0.0, 1.0]), np.array([True, False])))
