"""The machine in kernel features against scikit-learn's linear one."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import LinearSVC

from probgap._core.kernels import KernelFeatures, TrainingFeatures
from probgap._core.svm import NystroemSVM


@pytest.fixture
def data(rng):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] ** 2 + 0.5 * rng.normal(size=300) > 0.5).astype(int)
    return X, y, rng.uniform(0.2, 2.0, 300)


def peer_decision(machine, X, y, weight, new):
    """Fit scikit-learn's machine in scikit-learn's features, with the same landmarks."""
    features = machine.feature_map_
    size = features.landmarks.shape[0]
    peer = Nystroem(gamma=features.gamma, n_components=size, random_state=0)
    peer.fit(features.landmarks)
    linear = LinearSVC(C=machine.C, dual=False, tol=1e-8, intercept_scaling=100.0)
    linear.fit(peer.transform(X), y, sample_weight=weight)
    return linear.decision_function(peer.transform(new))


@pytest.mark.parametrize("C", [0.3, 1.0, 30.0])
def test_it_is_a_linear_machine_in_nystroem_features(data, C):
    X, y, weight = data
    machine = NystroemSVM(n_components=25, C=C, random_state=0)
    machine.fit(X, y)
    expected = peer_decision(machine, X, y, np.ones(300), X)
    assert_allclose(machine.decision_function(X), expected, rtol=5e-3, atol=1e-2)
    sure = np.abs(expected) > 1e-2
    assert_array_equal(machine.predict(X)[sure], (expected > 0.0)[sure])
    assert machine.feature_map_.gamma == pytest.approx(1.0 / (2 * X.var()))
    assert machine.score(X, y) > 0.8
    kernel = machine.feature_map_
    features = TrainingFeatures(kernel, kernel.transform(X), slice(None), None)
    machine.fit_on_features(features, y.astype(float), weight)
    weighted = peer_decision(machine, X, y, weight, X)
    assert_allclose(machine.decision_function(X), weighted, rtol=5e-3, atol=1e-2)
    assert np.abs(weighted - expected).max() > 0.02


def test_weights_that_leave_a_class_out_are_not_heeded(data):
    X, y, _ = data
    features = training_features(X)
    machines = [
        NystroemSVM().fit_on_features(features, y.astype(float), weight)
        for weight in (None, (y == 0).astype(float), (y == 1).astype(float))
    ]
    for machine in machines[1:]:
        assert_array_equal(machine.coef_, machines[0].coef_)


def test_width_and_classes_are_what_one_says(data):
    X, y, _ = data
    names = np.array(["no", "yes"])[y]
    machine = NystroemSVM(gamma=3.0, random_state=0).fit(X, names)
    assert machine.feature_map_.gamma == 3.0
    assert_array_equal(machine.classes_, ["no", "yes"])
    positive = machine.decision_function(X) > 0.0
    assert_array_equal(machine.predict(X), np.where(positive, "yes", "no"))


def test_sparse_and_single_precision_samples_give_nearly_the_same(data):
    X, y, _ = data
    decision = NystroemSVM(random_state=0).fit(X, y).decision_function(X)
    for other in (sp.csr_array(X), X.astype(np.float32)):
        machine = NystroemSVM(random_state=0).fit(other, y)
        assert_allclose(machine.decision_function(other), decision, atol=1e-2)


def training_features(X, seed=0):
    features = KernelFeatures.fit(X, 25, 0.5, seed)
    return TrainingFeatures(features, features.transform(X), slice(None), None)


def test_a_share_is_that_much_of_each_class(data, rng):
    X, _, weight = data
    share = rng.choice([0.0, 0.2, 0.9, 1.0], 300)
    machine = NystroemSVM().fit_on_features(training_features(X), share, weight)
    assert_array_equal(machine.classes_, [0, 1])
    twice = np.vstack([X, X])
    y, both = np.repeat([1, 0], 300), np.append(weight * share, weight * (1 - share))
    expected = peer_decision(machine, twice, y, both, X)
    assert_allclose(machine.decision_function(X), expected, atol=1e-2)


def test_samples_without_a_share_are_left_out(data):
    X, y, weight = data
    out = np.arange(300) % 3 == 0
    share = np.where(out, np.nan, y)
    training = training_features(X)
    machine = NystroemSVM().fit_on_features(training, share, weight)
    expected = peer_decision(machine, X[~out], y[~out], weight[~out], X)
    assert_allclose(machine.decision_function(X), expected, atol=1e-2)
    other = NystroemSVM().fit_on_features(training, y.astype(float), weight)
    assert np.abs(other.decision_function(X) - expected).max() > 0.05


def test_samples_held_in_memory_stand_for_as_many_as_they_are_said_to(data, rng):
    X, y, weight = data
    rows = np.sort(rng.choice(300, 120, replace=False))
    stands_for = rng.uniform(1.0, 4.0, 120)
    whole = training_features(X)
    some = TrainingFeatures(whole.map, whole.values[rows], rows, stands_for)
    machine = NystroemSVM().fit_on_features(some, y.astype(float), weight)
    expected = peer_decision(machine, X[rows], y[rows], weight[rows] * stands_for, X)
    assert_allclose(machine.decision_function(X), expected, atol=1e-2)


def test_a_fit_cut_short_warns(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations .* smaller C"):
        NystroemSVM(max_iter=1, random_state=0).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match=r"y must have two classes\. Got 1 class"):
        NystroemSVM().fit([[0.0], [1.0]], [1, 1])
