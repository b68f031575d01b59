"""SVMs as quadratic programmes, against scikit-learn's SVC: the same optimum, and its proof."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from probgap._core import kernel_svm
from probgap._core.arrays import Arrays
from probgap._core.kernel_svm import KernelSVM, PlattTask, fit_platt, solve_svms
from probgap._core.kernels import scale_gamma
from probgap.exceptions import InvalidInputError

GAMMA = 0.25


@pytest.fixture(scope="module")
def overlapping():
    """Samples whose classes overlap along a curved border."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7 + 0.5 * X[:, 2] * X[:, 3]
    return X, rng.random(900) < expit(3.0 * score)


def dual_of(svc):
    """Return the dual objective of a fitted SVC."""
    coef = svc.dual_coef_[0]
    kernel = rbf_kernel(svc.support_vectors_, gamma=svc._gamma)
    return np.abs(coef).sum() - 0.5 * coef @ kernel @ coef


def assert_as_svc(solved, svc, X, column=0):
    theirs = svc.decision_function(X)
    ours = solved.decision[:, column]
    away = np.abs(theirs) > 1e-3
    assert ((theirs > 0.0)[away] == (ours > 0.0)[away]).mean() >= 0.999
    assert solved.dual_objective[column] == pytest.approx(dual_of(svc), rel=1e-4)
    assert solved.duality_gap[column] <= 1e-4
    assert 0.0 <= solved.kkt_residual[column] < 0.05
    assert solved.converged[column]


@pytest.mark.parametrize("weighted", [False, True])
def test_svms_are_those_of_scikit_learn(overlapping, weighted):
    X, positive = overlapping
    weight = np.ones(len(X))
    if weighted:
        weight = np.random.default_rng(1).exponential(size=len(X))
    without = weight.copy()
    without[::5] = 0.0
    caps = np.column_stack([weight, without])
    solved = solve_svms(X, positive, caps, gamma=GAMMA)
    for column in (0, 1):
        used = caps[:, column] > 0.0
        svc = SVC(gamma=GAMMA, tol=1e-5).fit(
            X[used], positive[used], sample_weight=caps[used, column]
        )
        assert_as_svc(solved, svc, X, column)
    assert_array_equal(solved.coef[::5, 1], 0.0)


def test_the_duality_gap_is_that_of_the_problem(overlapping):
    X, positive = overlapping
    solved = solve_svms(X, positive, np.ones((len(X), 1)), gamma=GAMMA)
    coef, sign = solved.coef[:, 0], np.where(positive, 1.0, -1.0)
    inner = rbf_kernel(X, gamma=GAMMA) @ coef
    loss = np.maximum(0.0, 1.0 - sign * (inner + solved.intercept[0]))
    primal = 0.5 * coef @ inner + loss.sum()
    gap = (primal - solved.dual_objective[0]) / primal
    assert -1e-6 <= gap <= 1e-4 + 1e-6
    assert (sign * coef).min() >= 0.0
    assert (sign * coef).max() <= 1.0
    assert abs(coef.sum()) < 1e-8


def test_a_class_of_one_sample():
    X = np.random.default_rng(0).normal(size=(400, 3))
    positive = np.arange(400) == 50
    solved = solve_svms(X, positive, np.ones((400, 1)), gamma=0.3)
    assert_as_svc(solved, SVC(gamma=0.3, tol=1e-5).fit(X, positive), X)


def test_a_sample_may_count_for_both_classes(overlapping):
    """As two copies of it, whose kernel is singular."""
    X, positive = overlapping[0][:500], overlapping[1][:500]
    share = np.where(positive, 1.0, np.where(np.arange(500) % 3 == 0, 0.3, 0.0))
    rows = np.concatenate([np.flatnonzero(share > 0), np.flatnonzero(share < 1)])
    labels = np.repeat([True, False], [(share > 0).sum(), (share < 1).sum()])
    weights = np.concatenate([share[share > 0], 1.0 - share[share < 1]])
    svc = SVC(gamma=GAMMA, tol=1e-5).fit(X[rows], labels, sample_weight=weights)
    solved = solve_svms(X[rows], labels, weights[:, None], gamma=GAMMA)
    assert_as_svc(solved, svc, X[rows])


@pytest.mark.parametrize("far", [0.0, 40.0])  # exponents need double precision
def test_a_kernel_that_is_not_kept_gives_the_same(overlapping, monkeypatch, far):
    X, positive = overlapping[0][:400].copy(), overlapping[1][:400]
    X[0] += far
    kept = solve_svms(X, positive, np.ones((400, 1)), gamma=GAMMA)
    monkeypatch.setattr(Arrays, "memory", 0.0)
    free = solve_svms(X, positive, np.ones((400, 1)), gamma=GAMMA)
    assert free.dual_objective == pytest.approx(kept.dual_objective, rel=1e-4)
    assert_allclose(free.decision, kept.decision, atol=0.02)


def test_where_nothing_can_be_rounded_the_inside_is_good():
    """Labels mean nothing and one column counts: hardly a sample is at a bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * np.logspace(-2, 2, 6)
    positive = rng.random(2000) < 0.25
    gamma = 1.0 / (6.0 * X.var())
    solved = solve_svms(X, positive, np.ones((2000, 1)), gamma=gamma)
    assert solved.converged[0]
    svc = SVC(gamma=gamma, tol=1e-6, cache_size=500).fit(X, positive)
    assert solved.dual_objective[0] == pytest.approx(dual_of(svc), rel=1e-4)


def test_the_estimator_is_an_svc(overlapping):
    X, positive = overlapping[0][:300], overlapping[1][:300]
    svm, svc = KernelSVM().fit(X, positive), SVC(tol=1e-5).fit(X, positive)
    assert svm.gamma_ == pytest.approx(svc._gamma)
    assert svm.gamma_ == pytest.approx(scale_gamma(X))
    assert_allclose(svm.decision_function(X), svc.decision_function(X), atol=0.02)
    assert svm.converged_
    assert svm.duality_gap_ <= 1e-4


def test_what_did_not_converge_says_so(overlapping):
    X, positive = overlapping[0][:200], overlapping[1][:200]
    svm = KernelSVM(tol=1e-18)
    with pytest.warns(ConvergenceWarning, match=r"did not meet tol=1e-18: the rel"):
        svm.fit(X, positive)
    assert not svm.converged_


def test_weights_and_classes_are_checked(overlapping):
    X, positive = overlapping[0][:50], overlapping[1][:50]
    with pytest.raises(ValueError, match=r"y must have two classes.*Got 1"):
        KernelSVM().fit(X, np.ones(50))
    with pytest.raises(InvalidInputError, match=r"positive for some sample of each"):
        KernelSVM().fit(X, positive, sample_weight=positive.astype(float))


def test_folds_are_solved_in_batches(overlapping, monkeypatch):
    X, positive = overlapping[0][:300], overlapping[1][:300]
    folds = [np.arange(300) % 3 == k for k in range(3)]
    tasks = [
        PlattTask(~fold, [~fold & (np.arange(300) // 3 % 2 == k) for k in range(2)])
        for fold in folds
    ]
    fitted, together = fit_platt(X, positive, tasks, device=None)
    monkeypatch.setattr(kernel_svm, "_MOST", 4)
    apart = fit_platt(X, positive, tasks, device=None)[1]
    assert len(together) == len(apart) == 3
    assert_allclose(together, apart, atol=0.01)
    chance = fitted.predict_proba(X)
    assert_allclose(chance.sum(axis=1), 1.0)
    assert_allclose(chance[:, 1], together[0], atol=1e-5)
