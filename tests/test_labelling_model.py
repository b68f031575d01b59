import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from probgap._core import features as features_room
from probgap._core import newton
from probgap._core.kernels import scale_gamma
from probgap._core.rows import HeldRows
from probgap.datasets import hide_labels, make_square
from probgap.gap import LabellingModel
from probgap.gap._product import fit_product
from probgap.gap._rate import (
    RatePrior,
    chance_of_score,
    rate_prior,
    score_of_chance,
)


@parametrize_with_checks([LabellingModel()])
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_with_every_positive_labelled_it_is_logistic_regression(rng):
    features = rng.normal(size=(400, 3)).astype(np.float32)
    labelled = rng.random(400) < expit(features @ [1.0, -2.0, 0.5] + 0.3)
    # A rate of expit(30), sloping nowhere, is 1.
    rows = HeldRows(features, labelled.astype(float))
    fitted = fit_product(rows, C=2.0, prior=RatePrior(0.0, 30.0, 1e-3))
    peer = LogisticRegression(C=2.0, tol=1e-8).fit(features, labelled)
    assert_allclose(fitted.coef[:, 0], peer.coef_[0], atol=1e-3)
    assert fitted.intercept[0] == pytest.approx(peer.intercept_[0], abs=1e-3)
    assert fitted.converged


def test_the_truth_is_recovered_when_the_rate_is_known(rng):
    features = rng.normal(size=(20000, 2)).astype(np.float32)
    score = features @ [2.0, -1.0] + 0.5
    chance = expit(score) * expit(-0.5 + 0.6 * score)
    labelled = rng.random(20000) < chance
    rows = HeldRows(features, labelled.astype(float))
    fitted = fit_product(rows, C=1e6, prior=RatePrior(0.6, -0.5, 0.01))
    assert_allclose(fitted.coef[:, 0], [2.0, -1.0], atol=0.2)
    assert fitted.intercept[0] == pytest.approx(0.5, abs=0.2)
    assert fitted.level[0] == pytest.approx(-0.5, abs=0.05)
    by_hand = features @ fitted.coef[:, 0] + fitted.intercept[0]
    assert_allclose(fitted.score(features), by_hand, atol=1e-5)


def test_gap_posterior_and_boundary_agree_with_one_another(square):
    X, y_true, _, s = square
    model = LabellingModel(random_state=0).fit(X, s)
    assert -1.0 < model.boundary_ < 0.0
    assert_array_equal(model.observed_gap_ > model.boundary_, model.posterior_ > 0.5)
    # A labelled sample is positive: P(s=1 | x) never exceeds P(Y=1 | x).
    assert (0.5 * (1.0 + model.observed_gap_) <= model.posterior_ + 1e-12).all()
    assert ((model.posterior_ > 0.5) == (y_true == 1)).mean() > 0.95
    assert model.boundary_spread_ >= 0.0
    new = model.predict_posterior(X[:7])
    assert new.shape == (7,)
    assert ((new > 0.5) == (model.decision_function(X[:7]) > model.boundary_)).all()


def test_overlap_is_noticed(rng):
    X = rng.normal(size=(400, 2))
    apart = (X[:, 0] > 0).astype(int)
    mixed = (rng.random(400) < expit(1.5 * X[:, 0])).astype(int)
    assert LabellingModel(random_state=0).fit(X, apart).separability_ > 0.5
    assert LabellingModel(random_state=0).fit(X, mixed).separability_ < 0.3


def test_fewer_labels_lower_the_ceiling_and_the_boundary(square, rng):
    X, y_true, _, _ = square
    few = (y_true == 1) & (rng.random(len(y_true)) < 0.2)
    many = LabellingModel(random_state=0).fit(X, y_true)
    sparse = LabellingModel(random_state=0).fit(X, few)
    assert sparse.ceiling_ < 0.5 < many.ceiling_
    assert sparse.boundary_ < many.boundary_


def test_in_sample_scores_are_those_of_the_fitted_model(square):
    X, _, _, s = square
    model = LabellingModel(method="in_sample", random_state=0).fit(X, s)
    # Two roads to the same score, each rounded to single precision on its way.
    assert_allclose(model.observed_gap_, model.decision_function(X), atol=1e-4)
    assert_allclose(model.posterior_, model.predict_posterior(X), atol=1e-4)


def test_same_seed_same_bits_whatever_n_jobs(square):
    X, _, _, s = square
    model = LabellingModel(n_components=50, random_state=3)
    first = clone(model).fit(X, s).observed_gap_
    assert_array_equal(first, clone(model).set_params(n_jobs=2).fit(X, s).observed_gap_)


def test_a_fit_cut_short_is_said_aloud(square, monkeypatch):
    X, _, _, s = square
    monkeypatch.setattr(newton, "_MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations .* smaller C"):
        model = LabellingModel(random_state=0).fit(X, s)
    assert not model.converged_


def test_gaps_out_of_fold_are_those_of_models_fitted_on_the_train_part_alone(rng):
    # Labels at random, so that what a model has seen is all that it can know.
    X = rng.normal(size=(240, 2))
    s = (rng.random(240) < 0.4).astype(int)
    # Each third is held out, and one of the other two trains.
    thirds = np.arange(240).reshape(-1, 3).T
    folds = [(thirds[(k + 1) % 3], thirds[k]) for k in range(3)]
    fitted = LabellingModel(n_components=30, forest=False, cv=folds, random_state=0)
    gap = fitted.fit(X, s).observed_gap_
    assert fitted.separability_ == 0.0  # no share of the model fitted on all
    values = fitted.feature_map_.transform(X)
    prior = rate_prior(fitted.ceiling_)
    levels, score = [], np.empty(240)
    for train, test in folds:
        C = fitted.C * fitted.shrinkage_
        rows = HeldRows(values[train], s[train].astype(float))
        alone = fit_product(rows, C=C, prior=prior)
        score[test] = alone.score(values[test])
        levels.append(alone.level[0])
    chance = chance_of_score(score, float(np.mean(levels)), prior.slope)
    assert_allclose(gap, 2.0 * chance - 1.0, atol=5e-3)


@pytest.mark.parametrize("method", ["out_of_fold", "in_sample"])
def test_with_memory_for_some_samples_the_others_are_scored_all_the_same(
    square, monkeypatch, method
):
    X, y_true, _, s = square
    model = LabellingModel(n_components=40, method=method, random_state=0)
    full = clone(model).fit(X, s)
    monkeypatch.setattr(features_room, "_MOST_VALUES", 40 * 250)
    some = clone(model).fit(X, s)
    assert np.isfinite(some.observed_gap_).all()
    assert some.observed_gap_.shape == (400,)
    assert not np.array_equal(some.coef_, full.coef_)
    right = (some.posterior_ > 0.5) == (y_true == 1)
    assert right.mean() > 0.93
    if method == "in_sample":
        assert_allclose(some.observed_gap_, some.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("ceiling", [0.05, 0.4, 0.95])
def test_a_score_is_found_again_from_its_chance(ceiling):
    prior = rate_prior(ceiling)
    score = np.linspace(-9.0, 3.5, 50)
    chance = chance_of_score(score, prior.level, prior.slope)
    assert_allclose(score_of_chance(chance, prior), score, atol=1e-3)
    assert_array_equal(score_of_chance(np.array([0.0, 1.0]), prior), [-10.0, 4.0])


def test_progress_is_told_only_to_those_who_ask(square, capsys):
    X, _, _, s = square
    LabellingModel(n_components=20, random_state=0).fit(X, s)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    LabellingModel(n_components=20, random_state=0, verbose=1).fit(X, s)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.rpartition(" ... ")[0] for line in lines] == [
        "[probgap] kernel features",
        "[probgap] who is labelled, by kernels",
        "[probgap] who is labelled, by a forest",
        "[probgap] who is positive",
    ]
    assert all(re.search(r" \d+\.\d s$", line) for line in lines)


def test_folds_must_be_a_partition(square):
    X, _, _, s = square
    with pytest.raises(ValueError, match=r"cv must hold out every sample exactly once"):
        LabellingModel(cv=ShuffleSplit(3, random_state=0)).fit(X, s)


def test_spread_is_of_the_size_of_what_other_samples_would_give():
    def fit(seed):
        X, y, posterior = make_square(400, random_state=seed)
        gap = 2.0 * posterior - 1.0
        s = hide_labels(X, y, gap, ("linear", 0.6), random_state=seed + 100)
        return LabellingModel(random_state=0).fit(X, s)

    models = [fit(seed) for seed in range(12)]
    truth = np.std([model.boundary_ for model in models])
    said = np.mean([model.boundary_spread_ for model in models])
    assert truth / 4 < said < 4 * truth


def test_width_is_scikit_learns_scale(rng):
    X = rng.normal(size=(30, 4))
    assert scale_gamma(X) == pytest.approx(1.0 / (4 * X.var()))
    assert scale_gamma(sp.csr_array(X)) == pytest.approx(1.0 / (4 * X.var()))
    assert scale_gamma(X + 1e7) == pytest.approx(scale_gamma(X), rel=1e-6)
    assert scale_gamma(np.ones((3, 2))) == 1.0
    given_width = LabellingModel(gamma=0.7, random_state=0).fit(X, np.arange(30) % 2)
    basis = given_width.feature_map_
    approximated = basis.transform(X) @ basis.transform(X).T
    assert_allclose(approximated, rbf_kernel(X, gamma=0.7), atol=1e-6)
