"""Large problems: the rule of "auto", what solvers promise, and what certificates mean."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.arrays import Arrays
from probgap._core.hessian import Blocks, GrowingFactor, Hessian, factorise
from probgap.reweight import _search, _solve, kernel_mean_matching
from probgap.reweight._result import Bounds
from probgap.reweight._search import search


def shifted(seed, n=700, m=600, d=2, shift=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(shift / np.sqrt(d), 0.9, (m, d))


def objective(source, target, weights, gamma):
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)
    n = weights.size
    return (weights @ K @ weights / n - 2.0 * kappa @ weights) / n


@pytest.mark.parametrize(
    ("d", "solver"),
    [(1, "low_rank"), (2, "low_rank"), (3, "iterative"), (10, "iterative")],
)
@pytest.mark.parametrize("upper", [1000.0, 3.0])
def test_auto_goes_by_the_spectrum_and_proves_what_it_gives(d, solver, upper):
    source, target = shifted(d, d=d)
    result = kernel_mean_matching(source, target, upper=upper)
    exact = kernel_mean_matching(source, target, upper=upper, solver="exact", tol=1e-5)
    assert (result.solver, result.converged) == (solver, True)
    true = objective(source, target, result.weights, result.gamma)
    uniform = objective(source, target, np.ones(len(source)), result.gamma)
    assert true - exact.objective <= 1e-4 * (uniform - exact.objective)
    assert true - exact.objective <= result.duality_gap
    assert result.weights.max() <= upper


def test_auto_is_exact_for_small_samples_and_small_tolerances():
    source, target = shifted(0, n=499, d=10)
    assert kernel_mean_matching(source, target).solver == "exact"
    source, target = shifted(0, n=500, d=10)
    assert kernel_mean_matching(source, target).solver == "iterative"
    fine = kernel_mean_matching(source, target, tol=1e-7)
    assert fine.solver == "exact"
    assert fine.kkt_residual <= 1e-7


def test_auto_leaves_kernels_of_unknown_sign_to_the_dense_solvers():
    source, target = shifted(0, n=500, d=3)
    result = kernel_mean_matching(source, target, kernel=np.dot, upper=5.0)
    assert result.solver in ("exact", "iterative")


@pytest.mark.parametrize("d", [2, 10])
def test_the_same_bits_every_time(d):
    source, target = shifted(2, d=d)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (that nobody draws from it)
    first, second = (kernel_mean_matching(source, target) for _ in range(2))
    assert_array_equal(first.weights, second.weights)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_beyond_its_memory_products_are_evaluated_anew(monkeypatch, shift):
    source, target = shifted(3, n=1600, d=10, shift=shift)
    plain = kernel_mean_matching(source, target, solver="iterative")
    monkeypatch.setattr(Arrays, "memory", 1e5)
    tight = kernel_mean_matching(source, target, solver="iterative")
    assert tight.converged
    assert tight.objective == pytest.approx(plain.objective, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_single_precision_loses_nothing_that_matters(scale):
    # Far from the centre, exponents are differences of large numbers.
    source, target = shifted(11, n=1600, d=3)
    source[0] = target[0] = scale
    options = {"gamma": 0.4, "upper": 5.0}
    exact = kernel_mean_matching(source, target, **options, solver="exact")
    single = kernel_mean_matching(
        source + 1e3, target + 1e3, **options, solver="iterative"
    )
    assert single.converged
    assert single.objective == pytest.approx(exact.objective, abs=2e-6)


def matrix_of(K, single=False):
    return Blocks(K, K, "precomputed", {}, Arrays(), single=single)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), single=st.booleans())
def test_a_growing_factor_never_takes_too_much(seed, single):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 2))
    X[40:] = X[:40]
    K = rbf_kernel(X, gamma=0.5)
    growing = GrowingFactor(matrix_of(K, single), np.ones(80))
    growing.grow(10, lambda rest: rest.max() < 0.1)
    assert growing.factor.shape[1] <= 10
    growing.grow(200, lambda rest: rest.mean() < 1e-9)
    rest = K - growing.factor @ growing.factor.T
    tiny = 1e-4 if single else 1e-9
    assert_allclose(rest.diagonal(), growing.rest, atol=tiny)
    assert np.linalg.eigvalsh(rest).min() > -tiny


def test_a_factor_of_what_is_no_kernel_ends():
    growing = GrowingFactor(matrix_of(-np.eye(6) + 0.5), np.full(6, 0.5))
    growing.grow(6, lambda rest: not rest.any())
    assert growing.exhausted


@pytest.mark.parametrize("matrix", [np.ones((5, 5)), -np.eye(5)])
def test_rounding_does_not_stop_a_preconditioner(matrix):
    assert np.isfinite(np.linalg.inv(factorise(Arrays(), matrix))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_matched_as_they_are(dtype):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 40)).astype(dtype)
    chosen = X[:, 0] + rng.normal(size=2000) > 0.0
    result = kernel_mean_matching(X[chosen], X, kernel="linear", upper=20.0)
    assert (result.solver, result.converged) == ("low_rank", True)
    before = np.linalg.norm(X[chosen].mean(axis=0) - X.mean(axis=0))
    after = np.average(X[chosen], axis=0, weights=result.weights)
    after = np.linalg.norm(after * result.weights.mean() - X.mean(axis=0))
    assert after < 0.02 * before


@pytest.mark.parametrize("kernel", ["laplacian", "polynomial", "cosine", "linear"])
@pytest.mark.parametrize("solver", ["auto", "low_rank", "iterative"])
def test_other_kernels_at_size(kernel, solver):
    rng = np.random.default_rng(5)
    source, target = rng.normal(size=(520, 2)), rng.normal(0.3, 1.0, (300, 2))
    result = kernel_mean_matching(
        source, target, kernel=kernel, solver=solver, upper=20.0
    )
    assert result.converged
    best = kernel_mean_matching(
        source, target, kernel=kernel, solver="exact", upper=20.0
    )
    assert result.objective == pytest.approx(best.objective, abs=1e-4)


@pytest.mark.parametrize("d", [2, 12])
def test_sparse_input_at_size(d):
    source, target = shifted(6, n=520, m=300, d=d)
    dense = kernel_mean_matching(source, target)
    sparse = kernel_mean_matching(sp.csr_array(source), sp.csr_array(target))
    assert sparse.converged
    assert sparse.solver == dense.solver
    assert sparse.objective == pytest.approx(dense.objective, abs=1e-5)


def test_sparse_features_are_a_kernel_like_any_other():
    source, target = shifted(6, n=520, m=300)
    sparse = kernel_mean_matching(
        sp.csr_array(source), sp.csr_array(target), kernel="linear", upper=5.0
    )
    dense = kernel_mean_matching(source, target, kernel="linear", upper=5.0)
    assert sparse.objective == pytest.approx(dense.objective, abs=1e-4)


def test_low_rank_is_tried_whatever_the_tolerance():
    source, target = shifted(10, n=60, m=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = kernel_mean_matching(source, target, solver="low_rank", tol=1e-12)
    assert result.solver == "low_rank"


def test_what_does_not_meet_the_tolerance_goes_on_to_pivoting():
    """Neither a low rank nor products in low precision give six digits here."""
    rng = np.random.default_rng(2)
    source, target = rng.normal(size=(520, 2)), rng.normal(0.5, 0.9, (300, 2))
    result = kernel_mean_matching(source, target, tol=1e-6)
    assert result.converged


def test_what_products_do_not_solve_goes_on_to_pivoting(monkeypatch):
    monkeypatch.setattr(_search, "_MAX_BARRIER_STEPS", 1)
    monkeypatch.setattr(_solve, "search", partial(search, max_steps=0))
    result = kernel_mean_matching(*shifted(2, d=10))
    assert (result.solver, result.converged) == ("exact", True)


def test_a_kernel_of_nothing():
    result = kernel_mean_matching(
        np.zeros((600, 2)), np.zeros((50, 2)), kernel="linear", upper=2.0
    )
    assert_allclose(result.weights, 1.0)


def solve_hard(slack, upper=2.0, tol=1e-4, pull=1.0, **options):
    """Solve a problem of 60 samples by products with its Cholesky factor."""
    rng = np.random.default_rng(3)
    source, target = rng.normal(size=(60, 2)), rng.normal(0.8, 1.0, (50, 2))
    factor = np.linalg.cholesky(rbf_kernel(source) + 1e-10 * np.eye(60))
    kappa = pull * rbf_kernel(source, target).mean(axis=1)
    bounds = Bounds(60, upper, slack)
    best = bounds.best(kappa, tol)
    hessian = Hessian(Arrays(), None, factor, np.zeros(60), 1.0 / 60)
    steps = search(hessian, best, 1.0, **options)
    return bounds.result(best, "", steps, None)


@pytest.mark.parametrize("upper", [1.0, 2.0, 1000.0])
@pytest.mark.parametrize("slack", [0.0, 1e-12, 0.01, 0.5])
def test_the_interior_point_alone_gets_there(slack, upper):
    found = solve_hard(slack, upper, max_steps=0)
    assert found.n_iter <= 25
    if upper > 1.0:
        assert found.converged
        assert found.duality_gap < np.inf
        other = solve_hard(slack, upper)
        gap = found.duality_gap + other.duality_gap
        assert abs(found.objective - other.objective) <= gap
    elif slack == 0.0:  # there is but one answer
        assert_array_equal(found.weights, 1.0)


def test_a_band_at_its_edge_is_held_there():
    # The larger kappa pulls the sum up.
    found = solve_hard(0.01, 1000.0, tol=1e-6, pull=3.0)
    assert found.weights.mean() == pytest.approx(1.01, abs=1e-9)
    assert found.converged


def test_what_cannot_be_reached_ends_all_the_same():
    found = solve_hard(0.5, 1000.0, tol=1e-23)
    assert not found.converged
    assert 0 < found.n_iter <= 70
    assert found.objective <= solve_hard(0.5, 1000.0).objective
