"""Every solver keeps its promises, on problems that are meant to break it."""

import warnings

import cvxopt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap.exceptions import InvalidInputError
from probgap.reweight import _pivoting, _solvers, kernel_mean_matching, match_selections
from probgap.reweight._guess import AT_UPPER, FREE, first_guess
from probgap.reweight._low_rank import factorise
from probgap.reweight._problem import Bounds, MatchingBatch
from probgap.reweight._solvers import solve_batch

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
    return np.ravel(peer["x"])


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
    low, high = Bounds(n, upper, 1 - 1 / np.sqrt(n) if slack is None else slack).band
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
    bounds = Bounds(n, upper, slack)
    best = bounds.project(by_cvxopt(K, kappa, upper, slack))
    least = objective(K, kappa, best)
    gain = objective(K, kappa, bounds.project(np.ones(n))) - least
    known = 1e-12 + (result.duality_gap if result.solver == "low_rank" else 0.0)
    assert result.objective == pytest.approx(
        objective(K, kappa, result.weights), abs=known
    )
    # Within a ten-thousandth of what can be gained, and known to be. Where next to
    # nothing can, the interior point method stops at a KKT residual of 1e-6.
    least_gain = 1e-9 if result.solver == "pivoting" else 1e-7
    assert result.objective - least <= 1e-4 * gain + least_gain
    assert result.objective - least <= result.duality_gap + 1e-12


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


def test_the_same_bits_every_time(rng):
    X = rng.normal(size=(300, 2))
    first, second = (match_selections(X, [X[:, 0] < 1.0])[0] for _ in range(2))
    assert_array_equal(first.weights, second.weights)


def test_a_thin_factor_is_the_kernel_or_is_not_given(rng):
    K = rbf_kernel(rng.normal(size=(400, 1)), gamma=0.5)
    thin = factorise(K, 100, 1e-8)
    assert thin.shape[1] <= 100
    assert_allclose(thin @ thin.T, K, atol=1e-7)
    assert factorise(np.eye(50), 20, 1e-8) is None
    assert factorise(rng.normal(size=(2, 2)) * 0 + [[1, 2], [2, 1]], 8, 1e-8) is None


def indefinite(n=30):
    rng = np.random.default_rng(1)
    K = rng.normal(size=(n, n))
    K = K + K.T + 3.0 * np.eye(n)
    return MatchingBatch(K, rng.normal(size=n), np.ones((1, n), bool), 5.0, 0.5, n)


def test_what_is_no_kernel_is_not_passed_over_in_silence():
    with pytest.warns(ConvergenceWarning, match=r"must meet tol"):
        result = solve_batch(indefinite(), "auto", 1e-4, None)[0]
    assert not result.converged
    assert 0.0 <= result.weights.min() <= result.weights.max() <= 5.0


def test_what_pivoting_cannot_solve_goes_to_the_exact_solver(rng, monkeypatch):
    source, target = rng.normal(size=(60, 12)), rng.normal(0.5, 1.0, (50, 12))
    plain = kernel_mean_matching(source, target)
    assert plain.solver == "pivoting"
    monkeypatch.setattr(_pivoting, "_MAX_STEPS", 0)
    monkeypatch.setattr(_pivoting, "_MAX_THIN_STEPS", 0)
    rescued = kernel_mean_matching(source, target)
    assert rescued.solver == "exact"
    assert rescued.objective == pytest.approx(plain.objective, abs=1e-9)
    with pytest.warns(ConvergenceWarning, match="KKT residual"):
        alone = kernel_mean_matching(source, target, solver="pivoting")
    assert_array_equal(alone.weights, 1.0)
    monkeypatch.setattr(_solvers, "LARGEST_FOR_EXACT", 10)
    assert kernel_mean_matching(source, target).solver == "iterative"


def test_one_guess_at_a_time_gets_there_too(monkeypatch, rng):
    source, target = rng.normal(size=(40, 2)), rng.normal(1.0, 0.5, (50, 2))
    plain = kernel_mean_matching(source, target, upper=3.0)
    monkeypatch.setattr("probgap.reweight._guess._PATIENCE", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patient = kernel_mean_matching(source, target, upper=3.0)
    assert_allclose(patient.weights, plain.weights, atol=1e-6)


def test_the_sum_is_mended_before_single_weights_are():
    guess = first_guess(Bounds(3, 5.0, 0.1), np.arange(3), certify=False)
    guess.fewest, guess.patience = 0, 0
    guess.mend(np.array([0.9, 0.9, -0.1]), np.zeros(3), 0.0)
    assert (guess.band, guess.answer) == (AT_UPPER, None)
    assert_array_equal(guess.state, FREE)


def test_the_better_of_two_answers_is_kept(rng, monkeypatch):
    source, target = rng.normal(size=(50, 9)), rng.normal(0.5, 1.0, (40, 9))
    monkeypatch.setattr(
        _solvers, "_exactly", lambda *_: _solvers._Answer(np.ones(50), 1, "exact")
    )
    with pytest.warns(ConvergenceWarning):
        assert kernel_mean_matching(source, target, tol=1e-18).solver == "pivoting"


def test_the_exact_solver_sees_that_uniform_weights_are_the_answer(rng):
    X = rng.normal(size=(40, 3))
    result = kernel_mean_matching(X, X.copy(), solver="exact")
    assert_array_equal(result.weights, 1.0)
    assert result.n_iter == 0


def test_beyond_the_reach_of_the_exact_solver_products_do(monkeypatch):
    monkeypatch.setattr(_solvers, "LARGEST_FOR_EXACT", 0)
    monkeypatch.setattr(_pivoting, "_MAX_STEPS", 0)
    monkeypatch.setattr(_pivoting, "_MAX_THIN_STEPS", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    chosen = X[:, 0] < 0.7
    result = match_selections(X, [chosen])[0]
    best = kernel_mean_matching(X[chosen], X, solver="exact")
    uniform = kernel_mean_matching(X[chosen], X, solver="exact", upper=1.0, slack=0.0)
    assert result.solver == "iterative"
    assert result.converged
    gain = uniform.objective - best.objective
    assert result.objective - best.objective <= 1e-4 * gain


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
