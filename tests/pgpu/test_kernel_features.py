"""Kernel features in place of kernels, from end to end."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.checks import in_double
from probgap._core.kernels import (
    KernelFeatures,
    TrainingFeatures,
    default_n_landmarks,
    map_training_samples,
)
from probgap._core.svm import FastSVC, NystroemSVM
from probgap.datasets import make_square
from probgap.gap import ObservedGapEstimator
from probgap.pgpu.steps import choose_steps
from probgap.reweight import KernelMeanMatching, kernel_mean_matching

GRID = [-0.8, -0.6]
# The mixture of the default is slow and uses no kernel features; the last test has it.
GAP = LogisticRegression()
MODELS = {
    "fixed": PGPUClassifier(
        gap_estimator=GAP, boundary=-0.6, reweight=KernelMeanMatching(), random_state=0
    ),
    "paper": PGPUClassifier.paper(strict=False, random_state=0),
    "search": PGPUClassifierCV(
        gap_estimator=GAP,
        boundaries=GRID,
        cv=2,
        reweight=KernelMeanMatching(),
        random_state=0,
    ),
    "the paper's search": PGPUClassifierCV.paper(
        boundaries=GRID, cv=2, strict=False, random_state=0
    ),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture
def many(set_defaults):
    """Let few samples be many: features of 60 landmarks stand in for kernels."""
    set_defaults(most_rows=50, landmark_range=(60, 60))


@pytest.fixture(scope="module")
def new():
    X, y, _ = make_square(1000, random_state=7)
    return X, y


@pytest.fixture
def no_kernel_matrix(monkeypatch):
    """Fail where kernel mean matching is asked to make a kernel matrix of samples."""
    match = kernel_mean_matching

    def refuse(*args, **settings):
        if settings.get("kernel") == "linear":
            return match(*args, **settings)
        return pytest.fail("a kernel matrix of samples was made")

    monkeypatch.setattr("probgap.reweight._kmm.kernel_mean_matching", refuse)
    monkeypatch.setattr("probgap.reweight._kmm.match_selections", refuse)


@pytest.mark.parametrize(
    ("boundary", "n", "expected"),
    [
        (-0.6, 6000, None),
        (-0.6, 6001, 300),
        (-0.6, 40_000, 600),
        (-0.6, 10**6, 1000),
        ("auto", 10**6, None),
    ],
)
def test_the_number_of_features(boundary, n, expected):
    model = PGPUClassifier(boundary=boundary)
    assert choose_steps(model, n, boundary=boundary).n_landmarks == expected
    assert expected is None or default_n_landmarks(n) == expected


def test_a_device_has_exact_kernels_at_any_size():
    model = PGPUClassifier.paper(device="cpu")
    steps = choose_steps(model, 10**6, boundary=-0.6)
    assert steps.n_landmarks is None
    assert steps.gap.device == steps.device == "cpu"


@each_model
def test_it_switches_beyond_a_number_of_samples_and_is_as_accurate(
    square, new, set_defaults, model
):
    X, _, _, s = square
    set_defaults(most_rows=400, landmark_range=(30, 1000))
    exact = clone(model).fit(X, s)
    assert isinstance(exact.estimator_, FastSVC)
    set_defaults(most_rows=399, landmark_range=(30, 1000))
    fitted = clone(model).fit(X, s)
    assert isinstance(fitted.estimator_, NystroemSVM)
    assert fitted.estimator_.n_components == 60  # 3 sqrt(400)
    assert fitted.score(*new) == pytest.approx(exact.score(*new), abs=0.03)


@each_model
@pytest.mark.usefixtures("many", "no_kernel_matrix")
def test_it_classifies_without_a_kernel_matrix(square, new, model):
    X, _, _, s = square
    fitted = clone(model).fit(X, s)
    assert isinstance(fitted.estimator_, NystroemSVM)
    assert not fitted.relabelling_.decided.all()
    assert fitted.kmm_ is not None
    decision = fitted.decision_function(new[0])
    assert_array_equal(fitted.predict(new[0]), np.where(decision > 0.0, 1, 0))
    proba = fitted.predict_proba(new[0])[:, 1]
    assert_array_equal(proba > 0.5, decision > 0.0)
    assert fitted.score(*new) > 0.9


@pytest.mark.parametrize("name", ["fixed", "paper", "the paper's search"])
def test_single_precision_is_not_copied_and_changes_little(square, new, name, request):
    X, _, _, s = square
    single = X.astype(np.float32)
    assert in_double(single).dtype == np.float64
    request.getfixturevalue("many")
    model = clone(MODELS[name])
    assert in_double(single) is single
    double = clone(model).fit(single.astype(np.float64), s)
    fitted = model.fit(single, s)
    decision = double.decision_function(new[0])
    in_single = fitted.decision_function(new[0].astype(np.float32))
    assert_allclose(in_single, decision, atol=0.02)
    assert (fitted.predict(new[0]) == double.predict(new[0])).mean() > 0.995


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", ["fixed", "paper"])
def test_sparse_samples_are_taken(square, new, name):
    X, _, _, s = square
    fitted = clone(MODELS[name]).fit(sp.csr_array(X), s)
    assert fitted.score(sp.csr_array(new[0]), new[1]) > 0.9
    assert_allclose(
        fitted.decision_function(sp.csr_array(new[0])),
        fitted.decision_function(new[0]),
        atol=2e-4,
    )


@each_model
def test_with_memory_for_some_samples_the_rest_is_not_missed(
    square, new, model, monkeypatch, request
):
    X, _, _, s = square
    request.getfixturevalue("many")
    width = 30  # about what the kernel of the square has room for

    def map_some(*arguments):
        return map_training_samples(*arguments, most_values=width * 200)

    monkeypatch.setattr("probgap.pgpu.steps.map_training_samples", map_some)
    fitted = clone(model).fit(X, s)
    assert fitted.sample_weight_.shape == (400,)
    assert fitted.score(*new) > 0.88
    chosen = fitted.relabelling_.decided
    assert fitted.kmm_.weights.shape == (chosen.sum(),)
    assert_array_equal(fitted.sample_weight_[chosen], fitted.kmm_.weights)
    assert (fitted.kmm_.weights == 0.0).any()


@pytest.mark.usefixtures("many")
def test_features_are_for_the_svms_of_the_paper_alone(square):
    X, _, _, s = square
    fitted = clone(MODELS["paper"]).fit(X, s)
    assert isinstance(fitted.gap_estimator_, ObservedGapEstimator)
    machine = fitted.gap_estimator_.estimator.estimator
    assert isinstance(machine, NystroemSVM)
    assert machine.n_components == 60
    own = clone(MODELS["paper"]).set_params(gap_estimator=LogisticRegression())
    assert isinstance(own.fit(X, s).gap_estimator_.estimator, LogisticRegression)
    assert isinstance(own.estimator_, NystroemSVM)
    final = clone(MODELS["fixed"]).set_params(estimator=LogisticRegression())
    assert final.fit(X, s).estimator_.n_features_in_ == 2


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("settings", [{"kernel": "laplacian"}, {"gamma": 1.0}])
def test_a_kernel_of_ones_own_is_matched_by_itself(square, settings):
    X, _, _, s = square
    model = clone(MODELS["paper"]).set_params(reweight=KernelMeanMatching(**settings))
    chosen = model.fit(X, s).relabelling_.decided
    expected = kernel_mean_matching(X[chosen], X, **settings)
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
    result = KernelMeanMatching().match(X, chosen, features=whole)
    assert result.weights.shape == (chosen.sum(),)

    # The same problem, written with all samples in place of their mean.
    doubles = values.astype(np.float64)
    peer = kernel_mean_matching(doubles[chosen], doubles, kernel="linear")
    mean = values.mean(axis=0)
    ours, theirs, plain = (
        np.linalg.norm(weights @ values[chosen] / chosen.sum() - mean)
        for weights in (result.weights, peer.weights, np.ones(chosen.sum()))
    )
    assert plain > 0.1
    assert ours < 0.05 * plain
    assert ours == pytest.approx(theirs, abs=0.01 * plain)
    matching = KernelMeanMatching(upper=1.5, slack=0.1)
    bounded = matching.match(X, chosen, features=whole)
    assert bounded.weights.max() <= 1.5 + 1e-9


def test_matching_what_memory_holds_stands_for_all():
    X, chosen, kernel = skewed()
    labelled = X[:, 0] + X[:, 1] > 1.5
    most = kernel.n_components * 150
    some = map_training_samples(kernel, X, labelled, 0, most_values=most)
    result = KernelMeanMatching().match(X, chosen, features=some)
    weight = np.zeros(300)
    weight[chosen] = result.weights
    held = np.isin(np.arange(300), some.rows)
    assert (weight[~held] == 0.0).all()
    assert (weight[held & chosen] > 0.0).any()
    # A machine multiplies these by what each row stands for; the mean then fits.
    final = (weight[some.rows] * some.weight)[chosen[some.rows]]
    held_values = some.values[chosen[some.rows]].astype(np.float64)
    mean = np.average(some.values, axis=0, weights=some.weight)
    peer = kernel_mean_matching(held_values, mean[None, :], kernel="linear")
    matched, best = (
        np.linalg.norm(np.average(held_values, axis=0, weights=w) - mean)
        for w in (final, peer.weights)
    )
    plain = np.linalg.norm(kernel.transform(X)[chosen].mean(axis=0) - mean)
    assert matched == pytest.approx(best, abs=0.01 * plain)
    assert matched < 0.2 * plain


@pytest.mark.parametrize("by_features", [True, False])
def test_samples_that_stand_for_several_are_matched_as_if_repeated(by_features):
    X, chosen, kernel = skewed()
    weight = np.where(X[:, 1] > 0.0, 3.0, 1.0)
    rows = np.repeat(np.arange(300), weight.astype(int))
    features = TrainingFeatures(kernel, kernel.transform(X), slice(None), None)
    result = KernelMeanMatching().match(
        X, chosen, weight=weight, features=features if by_features else None
    )
    values = kernel.transform(X).astype(np.float64)
    mean = values[rows].mean(axis=0)
    ours, plain = (
        np.linalg.norm(w @ values[chosen] / chosen.sum() - mean)
        for w in (result.weights, np.ones(chosen.sum()))
    )
    assert ours < 0.1 * plain


@pytest.mark.parametrize(
    ("model", "stages"),
    [
        (
            MODELS["paper"],
            [
                "who is labelled",
                "kernel features",
                "kernel mean matching",
                "final classifier",
            ],
        ),
        (
            PGPUClassifier(gap_estimator=GAP, random_state=0),
            ["who is labelled", "final classifier"],
        ),
    ],
    ids=["paper", "default"],
)
@pytest.mark.usefixtures("many")
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
