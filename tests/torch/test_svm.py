"""SVMs on a device against scikit-learn's SVC: the same optimum, and its proof."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from probgap._core.kernels import scale_gamma

pytest.importorskip("torch", reason="needs torch: make test-torch")

from probgap._device.estimators import DeviceSVM
from probgap._device.kernel import DeviceKernel, DevicePoints, Traffic, multiply_part
from probgap._device.plan import plan_memory
from probgap._device.svm import solve_svms

GAMMA = 0.25


def dual_of(svc, X, positive):
    """Return the dual objective of a fitted SVC."""
    coef = svc.dual_coef_[0]
    kernel = rbf_kernel(svc.support_vectors_, gamma=svc._gamma)
    return np.abs(coef).sum() - 0.5 * coef @ kernel @ coef


def primal_of(X, positive, caps, solved, column):
    """Return the primal objective of a solution, from scratch."""
    coef = solved.coef[:, column]
    inner = rbf_kernel(X, gamma=GAMMA) @ coef
    decision = inner + solved.intercept[column]
    sign = np.where(positive, 1.0, -1.0)
    loss = np.maximum(0.0, 1.0 - sign * decision)
    return 0.5 * coef @ inner + caps[:, column] @ loss


def assert_as_svc(solved, svc, X, positive, column=0):
    theirs = svc.decision_function(X)
    ours = solved.decision[:, column]
    away = np.abs(theirs) > 1e-3
    agree = (theirs > 0.0)[away] == (ours > 0.0)[away]
    assert agree.mean() >= 0.999
    dual = dual_of(svc, X, positive)
    assert solved.dual_objective[column] == pytest.approx(dual, rel=1e-4)
    assert solved.duality_gap[column] <= 1e-4
    assert 0.0 <= solved.kkt_residual[column] < 0.05
    assert solved.converged[column]


@pytest.mark.parametrize("smallest", [10_000, 150], ids=["whole", "parts"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_svms_are_those_of_scikit_learn(device, overlapping, smallest, weighted):
    X, positive = overlapping
    weight = np.ones(len(X))
    if weighted:
        weight = np.random.default_rng(1).exponential(size=len(X))
    without = weight.copy()
    without[::5] = 0.0
    caps = np.column_stack([weight, without])
    solved = solve_svms(
        device, X, positive, caps, gamma=GAMMA, tol=1e-4, smallest=smallest
    )
    for column in (0, 1):
        used = caps[:, column] > 0.0
        svc = SVC(gamma=GAMMA, tol=1e-5).fit(
            X[used], positive[used], sample_weight=caps[used, column]
        )
        assert_as_svc(solved, svc, X, positive, column)
    assert_array_equal(solved.coef[::5, 1], 0.0)
    assert (solved.plan.n_rows < len(X)) if smallest < len(X) else solved.plan.stored


@pytest.mark.parametrize("smallest", [10_000, 150], ids=["whole", "parts"])
def test_the_duality_gap_is_that_of_the_whole_problem(device, overlapping, smallest):
    X, positive = overlapping
    caps = np.ones((len(X), 1))
    solved = solve_svms(
        device, X, positive, caps, gamma=GAMMA, tol=1e-4, smallest=smallest
    )
    primal = primal_of(X, positive, caps, solved, 0)
    gap = (primal - solved.dual_objective[0]) / primal
    assert -1e-6 <= gap <= 1e-4 + 1e-6
    assert solved.duality_gap[0] == pytest.approx(gap, abs=1e-6)
    sign = np.where(positive, 1.0, -1.0)
    alpha = sign * solved.coef[:, 0]
    assert alpha.min() >= 0.0
    assert alpha.max() <= 1.0
    assert abs(solved.coef.sum()) < 1e-8


def test_parts_take_fewer_kernel_values(device, overlapping):
    X, positive = overlapping
    whole, parts = (
        solve_svms(
            device,
            X,
            positive,
            np.ones((len(X), 1)),
            gamma=GAMMA,
            tol=1e-4,
            smallest=smallest,
        )
        for smallest in (10_000, 150)
    )
    assert parts.n_passes < 0.7 * whole.n_passes


@pytest.mark.parametrize("rounds", [0, 1])
def test_where_parts_do_not_close_the_gap_everything_is_one(
    device, overlapping, rounds
):
    X, positive = overlapping
    solved = solve_svms(
        device,
        X,
        positive,
        np.ones((len(X), 1)),
        gamma=GAMMA,
        tol=1e-4,
        smallest=150,
        max_rounds=rounds,
    )
    assert solved.converged.all()
    assert solved.plan.n_rows == len(X)


def test_a_class_too_rare_to_be_drawn_is_solved_whole(device):
    X = np.random.default_rng(0).normal(size=(400, 3))
    svc = SVC(gamma=0.3, tol=1e-5)
    for rare in range(0, 400, 50):  # of some of these, no part has a positive
        positive = np.arange(400) == rare
        solved = solve_svms(
            device, X, positive, np.ones((400, 1)), gamma=0.3, tol=1e-4, smallest=30
        )
        assert_as_svc(solved, svc.fit(X, positive), X, positive)


@pytest.mark.parametrize("smallest", [10_000, 150], ids=["whole", "parts"])
def test_a_sample_may_count_for_both_classes(device, overlapping, smallest):
    """As two copies of it, whose kernel is singular."""
    X, positive = overlapping[0][:500], overlapping[1][:500]
    share = np.where(positive, 1.0, np.where(np.arange(500) % 3 == 0, 0.3, 0.0))
    rows = np.concatenate([np.flatnonzero(share > 0), np.flatnonzero(share < 1)])
    labels = np.repeat([True, False], [(share > 0).sum(), (share < 1).sum()])
    weights = np.concatenate([share[share > 0], 1.0 - share[share < 1]])
    svc = SVC(gamma=GAMMA, tol=1e-5).fit(X[rows], labels, sample_weight=weights)
    solved = solve_svms(
        device,
        X[rows],
        labels,
        weights[:, None],
        gamma=GAMMA,
        tol=1e-4,
        smallest=smallest,
    )
    assert_as_svc(solved, svc, X[rows], labels)


def test_kernels_that_are_not_kept_give_the_same_svm(device, overlapping):
    X, positive = overlapping
    caps = np.ones((len(X), 1))
    plans = []
    kept = solve_svms(device, X, positive, caps, gamma=GAMMA, tol=1e-4)
    # As much as is needed besides the kernel, with few landmarks.
    free = solve_svms(
        device,
        X,
        positive,
        caps,
        gamma=GAMMA,
        tol=1e-4,
        budget=1.7e7,
        report=plans.append,
    )
    assert kept.plan.stored
    assert not free.plan.stored
    assert plans == [free.plan]
    assert free.converged.all()
    assert free.dual_objective == pytest.approx(kept.dual_objective, rel=1e-4)
    away = np.abs(kept.decision) > 1e-3
    agree = (kept.decision > 0.0)[away] == (free.decision > 0.0)[away]
    assert agree.mean() >= 0.999


@pytest.mark.parametrize("far", [0.0, 40.0], ids=["single", "double"])
def test_products_have_the_digits_that_decide(device, far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    X[0] += far  # an outlier: exponents need double precision
    exact = rbf_kernel(X, gamma=0.2)
    vectors = rng.normal(size=(700, 3))
    points = DevicePoints.of(device, X, 0.2)
    assert points.single == (far == 0.0)
    for stored, budget in ((True, 1e9), (False, 9.5e6)):
        plan = plan_memory(700, 3, 3, budget)
        assert plan.stored == stored
        kernel = DeviceKernel(points, plan)
        put = device.put(vectors)
        for careful, error in ((False, 1e-4), (True, 2e-5)):
            product = device.get(kernel.product(put, careful=careful))
            assert_allclose(product, exact @ vectors, atol=error)
        single = device.get(kernel.product(put[:, :1], careful=False))
        assert_allclose(single, exact @ vectors[:, :1], atol=1e-4)
        assert kernel.traffic.passes == pytest.approx(3.0)
    some = device.put_rows(np.array([3, 5, 600]))
    traffic = Traffic(700)
    part = multiply_part(points, some, device.put(vectors[:3]), 256, traffic)
    expected = exact[:, [3, 5, 600]] @ vectors[:3]
    assert_allclose(device.get(part), expected, atol=1e-5)
    assert traffic.passes == pytest.approx(3 / 700)


def test_storage_in_single_precision_changes_no_decision(
    device, overlapping, monkeypatch
):
    """The kernel in double precision, put in its place, gives the same decisions."""
    X, positive = overlapping
    caps = np.ones((len(X), 1))
    single = solve_svms(device, X, positive, caps, gamma=GAMMA, tol=1e-6)
    exact = device.put(rbf_kernel(X, gamma=GAMMA))
    monkeypatch.setattr(
        DeviceKernel,
        "product",
        lambda _self, vectors, careful=False: exact @ vectors,  # noqa: ARG005
    )
    double = solve_svms(device, X, positive, caps, gamma=GAMMA, tol=1e-6)
    assert_array_equal(single.decision > 0.0, double.decision > 0.0)
    assert_allclose(single.decision, double.decision, atol=1e-3)
    assert single.dual_objective == pytest.approx(double.dual_objective, rel=1e-6)


def test_scale_is_that_of_scikit_learn(device, overlapping):
    X, positive = overlapping[0][:300], overlapping[1][:300]
    svm = DeviceSVM().fit(X, positive)
    svc = SVC(tol=1e-5).fit(X, positive)
    assert svm.gamma_ == pytest.approx(svc._gamma)
    assert svm.gamma_ == pytest.approx(scale_gamma(X))
    assert_allclose(svm.decision_function(X), svc.decision_function(X), atol=0.02)


def test_where_nothing_can_be_rounded_the_inside_is_good(device):
    """Labels mean nothing and one column counts: hardly a sample is at a bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * np.logspace(-2, 2, 6)
    positive = rng.random(2000) < 0.25
    gamma = 1.0 / (6.0 * X.var())
    solved = solve_svms(device, X, positive, np.ones((2000, 1)), gamma=gamma, tol=1e-4)
    assert solved.converged[0]
    assert solved.duality_gap[0] <= 1e-4
    svc = SVC(gamma=gamma, tol=1e-6, cache_size=500).fit(X, positive)
    assert solved.dual_objective[0] == pytest.approx(
        dual_of(svc, X, positive), rel=1e-4
    )
