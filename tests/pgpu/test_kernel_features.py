"""Kernel features in place of kernels, from end to end."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core import features as features_room
from probgap._core.features import (
    KernelFeatures,
    TrainingFeatures,
    map_training_samples,
)
from probgap._core.machine import FeatureMachine
from probgap._core.svm import RBFMachine
from probgap.datasets import hide_labels, make_square
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.pgpu import _base
from probgap.pgpu._matching import match_features

GRID = [-0.8, -0.6]
MODELS = {
    "labelling": PGPUClassifier(
        gap_estimator="labelling", kernel_features=40, random_state=0
    ),
    "paper": PGPUClassifier.paper(kernel_features=100, random_state=0),
    "search": PGPUClassifierCV(
        boundaries=GRID, cv=2, kernel_features=50, random_state=0
    ),
    "the paper's search": PGPUClassifierCV.paper(
        boundaries=GRID, cv=2, kernel_features=50, random_state=0
    ),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture(scope="module")
def new():
    X, y, _ = make_square(1000, random_state=7)
    return X, y


@pytest.fixture
def no_kernel_matrix(monkeypatch):
    """Fail where kernel mean matching is asked to make a kernel matrix of samples."""

    def refuse(*_args, **_kwargs):
        pytest.fail("a kernel matrix of samples was made")

    monkeypatch.setattr(_base, "kernel_mean_matching", refuse)
    monkeypatch.setattr("probgap.pgpu._search.match_selections", refuse)


@pytest.mark.parametrize(
    ("setting", "n", "expected"),
    [
        ("auto", 6000, None),
        ("auto", 6001, 300),
        ("auto", 40_000, 600),
        ("auto", 10**6, 1000),
        ("exact", 10**6, None),
        (70, 100, 70),
        (70, 10**6, 70),
    ],
)
def test_the_number_of_features(setting, n, expected):
    model = PGPUClassifier(kernel_features=setting)
    assert model._n_kernel_features(n) == expected


@pytest.mark.parametrize(
    ("n", "expected"),
    [(5, 300), (40_000, 600), (400_000, 1000), (800_000, 500), (10**8, 300)],
)
def test_where_every_sample_counts_there_are_fewer_beyond_memory(n, expected):
    assert features_room.landmarks_for_all(n) == expected


@pytest.mark.parametrize("setting", ["few", 0, -3, 2.5, None])
def test_any_other_setting_is_refused(square, setting):
    X, _, _, s = square
    with pytest.raises(ValueError, match=r"kernel_features.* must be .* Got"):
        PGPUClassifier(kernel_features=setting).fit(X, s)


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(gap_estimator="labelling", random_state=0),
        PGPUClassifierCV.paper(boundaries=GRID, cv=2, random_state=0),
    ],
    ids=["labelling", "search"],
)
def test_auto_switches_beyond_a_number_of_samples(square, monkeypatch, model):
    X, _, _, s = square
    monkeypatch.setattr(features_room, "_LANDMARK_RANGE", (30, 1000))
    monkeypatch.setattr(_base, "MOST_EXACT", 400)
    exact = clone(model).fit(X, s)
    assert isinstance(exact.estimator_, RBFMachine)
    monkeypatch.setattr(_base, "MOST_EXACT", 399)
    fitted = clone(model).fit(X, s)
    assert isinstance(fitted.estimator_, FeatureMachine)
    assert fitted.estimator_.n_components == 60  # 3 sqrt(400)
    asked = clone(model).set_params(kernel_features="exact").fit(X, s)
    assert_array_equal(asked.decision_function(X), exact.decision_function(X))


@each_model
def test_it_classifies_without_a_kernel_matrix(square, new, model, no_kernel_matrix):
    X, _, _, s = square
    # Where nothing is left out, nothing is matched.
    every = model is MODELS["labelling"]
    fitted = clone(model).set_params(reweight=not every).fit(X, s)
    assert isinstance(fitted.estimator_, FeatureMachine)
    assert fitted.relabelling_.decided.all() == every
    assert (fitted.kmm_ is None) == every
    decision = fitted.decision_function(new[0])
    assert_array_equal(fitted.predict(new[0]), np.where(decision > 0.0, 1, 0))
    proba = fitted.predict_proba(new[0])[:, 1]
    assert_array_equal(proba > 0.5, decision > 0.0)
    assert fitted.score(*new) > 0.9


@each_model
def test_its_accuracy_is_that_of_kernels(square, new, model):
    X, _, _, s = square
    by_features = clone(model).fit(X, s).score(*new)
    exact = clone(model).set_params(kernel_features="exact").fit(X, s)
    assert isinstance(exact.estimator_, RBFMachine)
    assert by_features == pytest.approx(exact.score(*new), abs=0.03)


@pytest.mark.parametrize("name", ["labelling", "the paper's search"])
def test_the_same_seed_gives_the_same_bits_whatever_n_jobs(square, name):
    X, _, _, s = square
    model = MODELS[name]
    first, again, two, other = (
        clone(model).set_params(**settings).fit(X, s).decision_function(X)
        for settings in ({}, {}, {"n_jobs": 2}, {"random_state": 1})
    )
    assert_array_equal(first, again)
    assert_array_equal(first, two)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["labelling", "paper", "the paper's search"])
def test_single_precision_is_not_copied_and_changes_little(
    square, new, name, monkeypatch
):
    X, _, _, s = square
    seen = []
    model = MODELS[name]
    learn = type(model)._learn

    def watch(self, samples, *args, **kwargs):
        seen.append(samples)
        return learn(self, samples, *args, **kwargs)

    monkeypatch.setattr(type(model), "_learn", watch)
    single = X.astype(np.float32)
    double = clone(model).fit(single.astype(np.float64), s)
    fitted = clone(model).fit(single, s)
    assert seen[-1].dtype == np.float32
    assert np.shares_memory(seen[-1], single)
    decision = double.decision_function(new[0])
    in_single = fitted.decision_function(new[0].astype(np.float32))
    assert_allclose(in_single, decision, atol=0.02)
    assert (fitted.predict(new[0]) == double.predict(new[0])).mean() > 0.995
    exact = clone(model).set_params(kernel_features="exact").fit(single, s)
    assert seen[-1].dtype == np.float64
    assert np.isfinite(exact.decision_function(single)).all()


def test_sparse_samples_are_taken(square, new):
    X, _, _, s = square
    for name in ("labelling", "paper"):
        fitted = clone(MODELS[name]).fit(sp.csr_array(X), s)
        assert fitted.score(sp.csr_array(new[0]), new[1]) > 0.9
        assert_allclose(
            fitted.decision_function(sp.csr_array(new[0])),
            fitted.decision_function(new[0]),
            atol=2e-4,
        )


@each_model
def test_with_memory_for_some_samples_the_rest_is_not_missed(
    square, new, model, monkeypatch
):
    X, _, _, s = square
    width = 30  # about what the kernel of the square has room for
    monkeypatch.setattr(features_room, "_MOST_VALUES", width * 200)
    fitted = clone(model).fit(X, s)
    assert fitted.sample_weight_.shape == (400,)
    assert fitted.score(*new) > 0.88
    chosen = fitted.relabelling_.decided
    if not chosen.all():
        assert fitted.kmm_.weights.shape == (chosen.sum(),)
        assert_array_equal(fitted.sample_weight_[chosen], fitted.kmm_.weights)
        assert (fitted.kmm_.weights == 0.0).any()


def test_gaps_come_from_a_machine_in_features_where_the_paper_has_one(square):
    X, _, _, s = square
    fitted = clone(MODELS["paper"]).fit(X, s)
    assert isinstance(fitted.gap_estimator_, ObservedGapEstimator)
    machine = fitted.gap_estimator_.estimator.estimator
    assert isinstance(machine, FeatureMachine)
    assert machine.n_components == 100
    own = clone(MODELS["paper"]).set_params(gap_estimator=LogisticRegression())
    assert isinstance(own.fit(X, s).gap_estimator_.estimator, LogisticRegression)
    assert isinstance(own.estimator_, FeatureMachine)


def test_features_of_ones_own_gap_model_are_used_again(square, no_kernel_matrix):
    X, _, _, s = square
    model = PGPUClassifier(
        gap_estimator=LabellingModel(n_components=70, gamma=2.0),
        boundary=-0.6,
        kernel_features=40,
        random_state=0,
    ).fit(X, s)
    assert model.estimator_.feature_map_ is model.gap_estimator_.feature_map_
    assert model.estimator_.feature_map_.gamma == 2.0


def test_features_leave_other_final_classifiers_alone(square):
    X, _, _, s = square
    settings = {"boundary": -0.6, "kernel_features": 40, "random_state": 0}
    fitted = PGPUClassifier(estimator=LogisticRegression(), **settings).fit(X, s)
    assert isinstance(fitted.estimator_, LogisticRegression)
    assert fitted.estimator_.n_features_in_ == 2


@pytest.mark.parametrize("settings", [{"kernel": "laplacian"}, {"gamma": 1.0}])
def test_a_kernel_of_ones_own_is_matched_by_itself(square, settings):
    X, _, _, s = square
    model = clone(MODELS["paper"]).set_params(**settings).fit(X, s)
    chosen = model.relabelling_.decided
    expected = _base.kernel_mean_matching(X[chosen], X, **settings)
    assert_allclose(model.sample_weight_[chosen], expected.weights)


def skewed(n=300, width=25):
    """Samples of which the chosen lie to one side; with their features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    chosen = rng.random(n) < np.where(X[:, 0] > 0.0, 0.9, 0.3)
    return X, chosen, KernelFeatures.fit(X, width, 0.3, 0)


def test_matching_in_features_is_matching_by_their_kernel():
    X, chosen, kernel = skewed()
    values = kernel.transform(X)
    whole = TrainingFeatures(kernel, values, slice(None), None)
    result = match_features(whole, chosen, upper=1000.0, slack=None)
    assert result.weights.shape == (chosen.sum(),)

    # The same problem, written with all samples in place of their mean.
    doubles = values.astype(np.float64)
    peer = _base.kernel_mean_matching(doubles[chosen], doubles, kernel="linear")
    mean = values.mean(axis=0)
    ours, theirs, plain = (
        np.linalg.norm(weights @ values[chosen] / chosen.sum() - mean)
        for weights in (result.weights, peer.weights, np.ones(chosen.sum()))
    )
    assert plain > 0.1
    assert ours < 0.05 * plain
    assert ours == pytest.approx(theirs, abs=0.01 * plain)
    bounded = match_features(whole, chosen, upper=1.5, slack=0.1)
    assert bounded.weights.max() <= 1.5 + 1e-9


def test_matching_leaves_out_what_only_trees_contribute():
    X, chosen, kernel = skewed()
    values = kernel.transform(X, spare=1)
    without = TrainingFeatures(kernel, values[:, :-1].copy(), slice(None), None)
    values[:, -1] = 100.0 * X[:, 0]
    stacked = TrainingFeatures(kernel, values, slice(None), None)
    one, other = (
        match_features(features, chosen, upper=1000.0, slack=None).weights
        for features in (stacked, without)
    )
    assert_allclose(one, other, atol=1e-6)


def test_matching_what_memory_holds_stands_for_all(monkeypatch):
    X, chosen, kernel = skewed()
    monkeypatch.setattr(features_room, "_MOST_VALUES", kernel.n_components * 150)
    labelled = X[:, 0] + X[:, 1] > 1.5
    some = map_training_samples(kernel, X, labelled, 0)
    result = match_features(some, chosen, upper=1000.0, slack=None)
    weight = np.zeros(300)
    weight[chosen] = result.weights
    held = np.isin(np.arange(300), some.rows)
    assert (weight[~held] == 0.0).all()
    assert (weight[held & chosen] > 0.0).any()
    # A machine multiplies these by what each row stands for; the mean then fits.
    final = (weight[some.rows] * some.weight)[chosen[some.rows]]
    held_values = some.values[chosen[some.rows]].astype(np.float64)
    mean = np.average(some.values, axis=0, weights=some.weight)
    peer = _base.kernel_mean_matching(held_values, mean[None, :], kernel="linear")
    matched, best = (
        np.linalg.norm(np.average(held_values, axis=0, weights=w) - mean)
        for w in (final, peer.weights)
    )
    plain = np.linalg.norm(kernel.transform(X)[chosen].mean(axis=0) - mean)
    assert matched == pytest.approx(best, abs=0.01 * plain)
    assert matched < 0.2 * plain


@pytest.mark.parametrize(
    ("model", "stages"),
    [
        (
            PGPUClassifier.paper(kernel_features=30, random_state=0),
            [
                "who is labelled",
                "kernel features",
                "kernel mean matching",
                "final classifier",
            ],
        ),
        (
            PGPUClassifier(reweight=False, random_state=0),
            ["who is labelled", "final classifier"],
        ),
        (
            PGPUClassifier(
                gap_estimator="labelling",
                boundary=-0.6,
                kernel_features=30,
                random_state=0,
            ),
            [
                "kernel features",
                "who is labelled, by kernels",
                "who is labelled, by trees",
                "who is positive",
                "kernel mean matching",
                "final classifier",
            ],
        ),
    ],
    ids=["paper", "default", "features"],
)
def test_progress_is_told_only_to_those_who_ask(square, capsys, model, stages):
    X, _, _, s = square
    clone(model).fit(X, s).predict(X)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    clone(model).set_params(verbose=1).fit(X, s).predict(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [
        re.fullmatch(r"\[probgap\] (.*) \.\.\. \d+\.\d s", line)[1] for line in lines
    ] == stages


def test_the_search_tells_its_progress_too(square, capsys):
    X, _, _, s = square
    clone(MODELS["search"]).set_params(verbose=1).fit(X, s)
    err = capsys.readouterr().err
    # Of the last fit: folds may run elsewhere, and at once, and are silent.
    assert err.count("[probgap] who is positive ...") == 1
    assert err.splitlines()[-1].startswith("[probgap] final classifier ...")


def test_many_samples_are_served_by_auto():
    X, y, posterior = make_square(6100, random_state=0)
    s = hide_labels(X, y, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1)
    fitted = PGPUClassifier(gap_estimator="labelling", random_state=0).fit(X, s)
    assert isinstance(fitted.estimator_, FeatureMachine)
    assert fitted.estimator_.n_components == 300
    assert fitted.score(X, y) > 0.95
