"""How many are positive: the estimate, its interval, and where they come from."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.values import HeldValues
from probgap.datasets import make_square
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.pgpu import _base, _prior

MODELS = {
    "default": PGPUClassifier(random_state=0),
    "paper": PGPUClassifier.paper(random_state=0),
    "quantile": PGPUClassifier(boundary="quantile", random_state=0),
    "fixed": PGPUClassifier(boundary=-0.6, random_state=0),
    "platt": PGPUClassifier(gap_estimator="platt", random_state=0),
    "own": PGPUClassifier(gap_estimator=LogisticRegression(), random_state=0),
    "probabilities": PGPUClassifier(estimator=LogisticRegression(), random_state=0),
    "labelling": PGPUClassifier(gap_estimator="labelling", random_state=0),
    "features": PGPUClassifier(
        gap_estimator="labelling", kernel_features=50, random_state=0
    ),
    "cv": PGPUClassifierCV(boundaries=[-0.8, -0.6], cv=3, random_state=0),
}


@pytest.fixture(scope="module")
def square():
    """The square with six in ten positives labelled at random."""
    X, y_true, _ = make_square(400, random_state=3)
    seen = np.random.default_rng(5).random(400) < 0.6
    return X, y_true, seen & (y_true == 1)


@pytest.fixture(scope="module")
def fitted(square):
    X, _, s = square
    return {name: clone(model).fit(X, s) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_how_many_are_positive(square, fitted, name):
    _, y_true, s = square
    model = fitted[name]
    assert model.estimated_class_prior_ == pytest.approx(y_true.mean(), abs=0.12)
    low, high = model.estimated_class_prior_interval_
    assert s.mean() <= low <= model.estimated_class_prior_ <= high <= 1.0
    assert low <= y_true.mean() <= high


@pytest.mark.parametrize("name", MODELS)
def test_the_labelling_rate_is_the_other_side_of_it(square, fitted, name):
    s, model = square[2], fitted[name]
    low, high = model.estimated_class_prior_interval_
    product = model.estimated_labelling_rate_ * model.estimated_class_prior_
    assert product == pytest.approx(s.mean())
    assert_allclose(
        model.estimated_labelling_rate_interval_, (s.mean() / high, s.mean() / low)
    )
    assert all(type(end) is float for end in model.estimated_class_prior_interval_)


def test_the_same_seed_gives_the_same_bits(square, fitted):
    X, _, s = square
    for name in ("default", "paper"):
        again = clone(MODELS[name]).fit(X, s)
        before = fitted[name].estimated_class_prior_interval_
        assert again.estimated_class_prior_interval_ == before


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_few_labels_leave_more_room_than_many(square, fitted):
    X, _, s = square
    few = np.isin(np.arange(s.size), np.flatnonzero(s)[::10])
    model = PGPUClassifier(random_state=0).fit(X, few)
    width = np.diff(np.log(model.estimated_class_prior_interval_))
    before = np.diff(np.log(fitted["default"].estimated_class_prior_interval_))
    assert width > 1.5 * before


def test_rows_that_no_one_was_asked_about_count_by_their_posterior(square, monkeypatch):
    X, y_true, s = square
    order = np.argsort(~s, kind="stable")
    monkeypatch.setattr(_base, "MOST_ASKED", 1)
    model = clone(MODELS["labelling"]).fit(X[order], s[order])
    assert model.estimated_class_prior_ == pytest.approx(y_true.mean(), abs=0.1)


def test_of_many_rows_some_are_drawn_again(square, fitted, monkeypatch):
    s, model = square[2], fitted["paper"]
    observed = HeldValues(model.observed_gap_, s)
    arguments = (model.gap_estimator_, observed, model.boundary_, 0)
    spread = _prior.spread_of_share(*arguments)
    assert spread > 0.0
    monkeypatch.setattr(_prior, "_MOST_OF_EACH", 60)
    assert spread < _prior.spread_of_share(*arguments) < 4.0 * spread


def test_a_boundary_that_moves_more_leaves_more_room(square):
    X, _, s = square
    gap = ObservedGapEstimator(LogisticRegression(), random_state=0).fit(X, s)
    boundary = PGPUClassifier.paper(random_state=0).fit(X, s).boundary_
    spreads = [
        _prior._spread_by_gap(HeldValues(gap.observed_gap_, s), moved, 0)
        for moved in (replace(boundary, spread=spread) for spread in (0.0, 0.3))
    ]
    assert spreads[1] > spreads[0]


def test_the_luck_of_true_labels_counts():
    rng = np.random.default_rng(0)
    labelled = np.arange(400) < 100
    gap = HeldValues(np.where(labelled, 0.8, -0.9), labelled)
    sure = HeldValues(np.where(labelled, 1.0, 0.0), labelled)
    settings = {"frequencies": (0.9, 0.9), "spread": 0.0}
    narrow = _prior.estimate_prior(gap, sure, 0.25, **settings)
    unsure = HeldValues(np.where(labelled, 1.0, 0.3 + 0.4 * rng.random(400)), labelled)
    wide = _prior.estimate_prior(gap, unsure, 0.6, **settings)
    assert narrow.value == 0.25
    assert narrow.interval == pytest.approx((0.25, 0.25 / 0.9))
    assert wide.interval[1] > wide.value


def test_a_model_of_labels_says_how_far_the_share_moves(square):
    X, _, s = square
    model = LabellingModel(random_state=0).fit(X, s)
    assert 0.0 < model.class_prior_spread_ < 0.1
    assert 0.5 < model.mean_labelled_chance_ <= model.high_labelled_chance_ <= 1.0


def test_the_boundary_keeps_what_was_weighed(square, fitted):
    boundary = fitted["default"].boundary_
    assert boundary.names == ("auto", "mean_smallest", "quantile")
    assert boundary.value == boundary.candidates[0]
    model = clone(MODELS["labelling"]).fit(square[0], square[2])
    boundary, steps = model.boundary_, model.gap_estimator_.boundary_steps_
    assert boundary.names == (*steps, "mean_smallest", "quantile")
    assert boundary.candidates[: len(steps)] == tuple(steps.values())
    assert boundary.value in boundary.candidates
    assert len(boundary.scores) == len(boundary.candidates)
    searched = fitted["cv"]
    assert searched.boundary_.candidates == (-0.8, -0.6)
    assert_allclose(searched.boundary_.scores, searched.cv_results_["mean_test_score"])
