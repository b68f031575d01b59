"""Every solver keeps its promises, on problems that are meant to break it."""

import warnings
from dataclasses import replace

import cvxopt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap.exceptions import InvalidInputError
from probgap.reweight import kernel_mean_matching, match_selections
from probgap.reweight._pivoting import MatchingBatch, pivot
from probgap.reweight._solve import solve_batch

TIGHT = dict.fromkeys(("abstol", "reltol", "feastol"), 1e-11)


def by_cvxopt(K, kappa, upper, slack):
    n = kappa.size
    rows = np.vstack([-np.eye(n), np.eye(n), np.ones((1, n)), -np.ones((1, n))])
    edges = [n * min(1 + slack, upper), -n * max(0.0, 1 - slack)]
    limits = np.hstack([np.zeros(n), np.full(n, upper), edges])
    peer = cvxopt.solvers.qp(
        *map(cvxopt.matrix, (K / n, -kappa, rows, limits)),
        options={"show_progress": False, **TIGHT},
    )
    weights = np.ravel(peer["x"])
    # It keeps the band to its tolerance alone, and an objective below the best would follow.
    mean = weights.mean()
    return weights * (np.clip(mean, max(0.0, 1 - slack), min(1 + slack, upper)) / mean)


def objective(K, kappa, w):
    return (w @ K @ w / w.size - 2.0 * kappa @ w) / w.size


@st.composite
def problems(draw, largest=120):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(10, largest)), draw(st.integers(10, 80))
    d = draw(st.integers(1, 30))
    source = rng.normal(size=(n, d))
    target = rng.normal(draw(st.sampled_from([0.0, 0.5, 3.0])), 1.0, size=(m, d))
    if draw(st.booleans()):
        source[n // 2 :] = source[: n - n // 2]  # twins: the kernel is singular
    gamma = draw(st.sampled_from([None, 1e-4, 0.1, 100.0]))
    upper = draw(st.sampled_from([1.2, 3.0, 1000.0]))
    slack = draw(st.sampled_from([None, 0.0, 0.1]))
    return source, target, {"gamma": gamma, "upper": upper, "slack": slack}


def check_promises(result, n, upper, slack):
    slack = 1 - 1 / np.sqrt(n) if slack is None else slack
    low, high = max(0.0, 1.0 - slack), min(1.0 + slack, upper)
    assert result.weights.shape == (n,)
    assert np.isfinite(result.weights).all()
    assert result.weights.min() >= 0.0
    assert result.weights.max() <= upper
    assert low - 1e-12 <= result.weights.mean() <= high + 1e-12
    assert result.band_slack >= 0.0
    assert result.duality_gap >= 0.0
    assert result.converged


@pytest.mark.parametrize("solver", ["auto", "exact", "low_rank", "iterative"])
@settings(max_examples=25)
@given(problem=problems())
def test_every_solver_keeps_the_bounds_and_finds_the_optimum(solver, problem):
    source, target, options = problem
    result = kernel_mean_matching(source, target, solver=solver, **options)
    n, upper, slack = len(source), options["upper"], options["slack"]
    check_promises(result, n, upper, slack)
    K = rbf_kernel(source, gamma=result.gamma)
    kappa = rbf_kernel(source, target, gamma=result.gamma).mean(axis=1)
    slack = 1 - 1 / np.sqrt(n) if slack is None else slack
    peer = by_cvxopt(K, kappa, upper, slack)
    least = objective(K, kappa, peer)
    gain = objective(K, kappa, np.ones(n)) - least
    known = 1e-12 + (result.duality_gap if result.solver == "low_rank" else 0.0)
    assert result.objective == pytest.approx(
        objective(K, kappa, result.weights), abs=known
    )
    # Within a ten-thousandth of what can be gained, and known to be. Where next to
    # nothing can, solvers stop at a KKT residual of 1e-6: a gradient that small over the
    # way to the optimum.
    small = 2.0 * min(result.kkt_residual, 1e-6)
    left = small * np.abs(result.weights - peer).mean()
    assert result.objective - least <= 1e-4 * gain + left + 1e-9
    assert result.objective - least <= result.duality_gap + 1e-10


@pytest.mark.slow
@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 400),
    d=st.sampled_from([1, 2, 3, 8, 30]),
    shift=st.sampled_from([0.0, 0.5, 3.0, 8.0]),
    gamma=st.sampled_from([None, 1e-8, 1e-4, 0.1, 1.0, 100.0]),
    upper=st.sampled_from([1.0, 1.2, 3.0, 1000.0]),
    slack=st.sampled_from([None, 0.0, 1e-6, 0.01, 0.1]),
    distinct=st.sampled_from([None, 1, 5]),
)
def test_problems_are_solved_or_say_so(
    seed, n, d, shift, gamma, upper, slack, distinct
):
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(n, d))
    if distinct is not None:  # a kernel of few different rows, or constant
        source = source[rng.integers(0, min(n, distinct), n)]
    target = rng.normal(shift, 1.0, size=(rng.integers(1, 200), d))
    options = {"gamma": gamma, "upper": upper, "slack": slack}
    for solver in ("auto", "iterative"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = kernel_mean_matching(source, target, solver=solver, **options)
        named = any("did not meet tol" in str(one.message) for one in said)
        assert result.converged != named
        check_promises(replace(result, converged=True), n, upper, slack)


@pytest.mark.parametrize("seed", [1, 29, 31])
def test_far_targets_and_a_narrow_band_are_solved_by_products(seed):
    """The multiplier of the band is large, and bounds bind at both ends."""
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(62, 1)), rng.normal(3.0, 1.0, (10, 1))
    options = {"gamma": 100.0, "upper": 1.2, "slack": 0.1}
    result = kernel_mean_matching(source, target, solver="iterative", **options)
    exact = kernel_mean_matching(source, target, solver="exact", **options)
    check_promises(result, 62, upper=1.2, slack=0.1)
    assert result.objective - exact.objective <= result.duality_gap + 1e-10


@pytest.mark.parametrize("d", [1, 2, 8, 20])
@pytest.mark.parametrize("shift", [0.3, 1.5])
def test_the_certificate_is_close_at_size(d, shift):
    rng = np.random.default_rng(d)
    source = rng.normal(size=(600, d))
    target = rng.normal(shift / np.sqrt(d), 0.8, size=(500, d))
    result = kernel_mean_matching(source, target)
    exact = kernel_mean_matching(source, target, solver="exact")
    assert result.solver in ("low_rank", "iterative")
    K = rbf_kernel(source, gamma=result.gamma)
    kappa = rbf_kernel(source, target, gamma=result.gamma).mean(axis=1)
    gain = objective(K, kappa, np.ones(600)) - result.objective
    assert result.objective <= exact.objective + 1e-4 * gain
    assert result.duality_gap <= 1.001e-4 * gain
    assert exact.kkt_residual <= 1e-6


def test_row_order_does_not_matter_at_size(rng):
    for d in (2, 12):
        source, target = rng.normal(size=(400, d)), rng.normal(0.4, 1.0, (300, d))
        order = rng.permutation(400)
        straight = kernel_mean_matching(source, target)
        shuffled = kernel_mean_matching(source[order], target)
        assert_allclose(shuffled.weights, straight.weights[order], atol=1e-3)
        assert shuffled.objective == pytest.approx(straight.objective, abs=1e-10)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.sampled_from([1, 2, 10, 25]),
    upper=st.sampled_from([1.3, 1000.0]),
    slack=st.sampled_from([None, 0.0]),
)
def test_selections_together_are_as_each_by_itself(seed, d, upper, slack):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, d))
    selections = [X[:, 0] < limit for limit in (0.5, 1.0, 1.5)]
    selections += [np.ones(150, dtype=bool)]
    # Where next to nothing is to be gained, a small share of it may not be reached: that
    # is said, and the objective is as good.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        together = match_selections(X, selections, upper=upper, slack=slack)
    for chosen, result in zip(selections, together, strict=True):
        if not result.converged:
            alone = kernel_mean_matching(X[chosen], X, upper=upper, slack=slack)
            assert result.objective == pytest.approx(alone.objective, abs=1e-5)
            continue
        check_promises(result, int(chosen.sum()), upper, slack)
        alone = kernel_mean_matching(X[chosen], X, upper=upper, slack=slack)
        assert result.objective == pytest.approx(alone.objective, abs=1e-6)
        # Means differ by at most the root of what objectives do. Weights may differ along
        # directions that the kernel does not see.
        K = rbf_kernel(X, X[chosen], gamma=result.gamma)
        n = chosen.sum()
        assert_allclose(K @ result.weights / n, K @ alone.weights / n, atol=1e-3)


def test_many_large_selections_share_one_factor(rng):
    """Although many bounds bind, where one problem would be factorised by itself."""
    X = rng.normal(size=(2200, 10))
    selections = [X[:, 0] < limit for limit in np.linspace(0.8, 1.8, 10)]
    results = match_selections(X, selections)
    alone = kernel_mean_matching(X[selections[0]], X, solver="exact")
    assert np.mean(alone.weights == 0.0) > 0.1
    assert results[0].objective == pytest.approx(alone.objective, abs=1e-9)
    assert_allclose(results[0].weights, alone.weights, atol=1e-4)


def test_the_same_bits_every_time(rng):
    X = rng.normal(size=(300, 2))
    first, second = (match_selections(X, [X[:, 0] < 1.0])[0] for _ in range(2))
    assert_array_equal(first.weights, second.weights)


@pytest.fixture
def batch():
    """One problem of 60 samples in 12 dimensions, where bounds bind."""
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(60, 12)), rng.normal(0.5, 1.0, (50, 12))
    kappa = rbf_kernel(source, target, gamma=0.1).mean(axis=1)
    everything = np.ones((1, 60), dtype=bool)
    return MatchingBatch(
        rbf_kernel(source, gamma=0.1), kappa, everything, 3.0, None, 50
    )


def test_what_pivoting_does_not_solve_goes_on_to_products(batch, monkeypatch):
    [plain] = solve_batch(batch, 1e-4, None, certify=True)
    assert plain.solver == "exact"
    monkeypatch.setattr("probgap.reweight._pivoting._MAX_STEPS", 0)
    [rescued] = solve_batch(batch, 1e-4, None, certify=True)
    assert (rescued.solver, rescued.converged) == ("iterative", True)
    assert abs(rescued.objective - plain.objective) <= 1e-6


def test_one_guess_at_a_time_gets_there_too():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(40, 6)), rng.normal(0.7, 0.5, (50, 6))
    kappa = rbf_kernel(source, target).mean(axis=1)
    everything = np.ones((1, 40), dtype=bool)
    batch = MatchingBatch(rbf_kernel(source), kappa, everything, 3.0, 0.05, 50)
    [plain] = pivot(batch, certify=False)
    [patient] = pivot(batch, certify=False, patience=0)
    assert patient.steps > plain.steps
    assert_allclose(patient.weights, plain.weights, atol=1e-6)


def test_what_is_no_kernel_is_not_passed_over_in_silence():
    def no_kernel(x, z):
        return float(np.cos(3.0 * x @ z) - 0.5)

    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    with pytest.warns(ConvergenceWarning, match=r"did not meet tol"):
        result = kernel_mean_matching(X, Z, kernel=no_kernel, upper=5.0)
    assert not result.converged
    assert 0.0 <= result.weights.min() <= result.weights.max() <= 5.0


@pytest.mark.parametrize(
    ("selections", "message"),
    [
        ([], "must be masks of the 30 samples"),
        ([np.ones(20, dtype=bool)], "must be masks of the 30 samples"),
        ([np.zeros(30, dtype=bool)], "must each choose some sample"),
    ],
)
def test_selections_that_fit_no_sample_are_refused(selections, message):
    with pytest.raises(InvalidInputError, match=message):
        match_selections(np.zeros((30, 2)), selections)
