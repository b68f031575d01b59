import warnings
from itertools import pairwise

import cvxopt
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap.reweight import KMMResult, kernel_mean_matching


def shifted(rng, n=120, m=100, d=2):
    return rng.normal(size=(n, d)), rng.normal(0.5, 0.8, size=(m, d))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    d=st.integers(1, 5),
    scale=st.floats(-3.0, 3.0),
    upper=st.floats(1.0, 1000.0),
    slack=st.one_of(st.none(), st.just(0.0), st.floats(0.01, 2.0)),
    coarse=st.booleans(),
)
def test_box_band_and_optimality_hold_for_any_input(
    seed, n, m, d, scale, upper, slack, coarse
):
    rng = np.random.default_rng(seed)
    source = 10.0**scale * rng.normal(size=(n, d))
    target = rng.normal(1.0, 1.0, size=(m, d))
    if coarse:  # many rows coincide: the kernel matrix is singular
        source = np.round(source)
    result = kernel_mean_matching(source, target, upper=upper, slack=slack)
    band = 1.0 - 1.0 / np.sqrt(n) if slack is None else slack
    assert np.isfinite(result.weights).all()
    assert result.weights.min() >= 0.0
    assert result.weights.max() <= upper
    assert abs(result.weights.mean() - 1.0) <= band + 1e-12
    assert result.band_slack >= -1e-12
    assert result.converged
    # Where a weight only just reaches its bound, the residual falls more slowly than the gap.
    assert min(result.kkt_residual, result.duality_gap) <= 1e-6


def test_a_sample_matched_to_itself_is_left_alone(rng):
    X = rng.normal(size=(300, 3))
    assert_allclose(kernel_mean_matching(X, X).weights, 1.0, atol=1e-10)
    assert_allclose(kernel_mean_matching(X, X[::-1]).weights, 1.0, atol=1e-5)
    bounded = kernel_mean_matching(X, X, upper=0.5)
    assert bounded.weights.max() <= 0.5


@pytest.mark.parametrize(("upper", "slack"), [(1000.0, None), (1.5, 0.2), (3.0, 0.0)])
def test_an_independent_solver_agrees(rng, upper, slack):
    source, target = shifted(rng)
    n = len(source)
    result = kernel_mean_matching(source, target, upper=upper, slack=slack, gamma=0.7)
    eps = 1.0 - 1.0 / np.sqrt(n) if slack is None else slack
    K = rbf_kernel(source, gamma=0.7)
    kappa = n * rbf_kernel(source, target, gamma=0.7).mean(axis=1)
    constraints = np.vstack([-np.eye(n), np.eye(n), np.ones((1, n)), -np.ones((1, n))])
    bounds = np.hstack(
        [np.zeros(n), np.full(n, upper), n * (1 + eps), -n * max(0.0, 1 - eps)]
    )
    exact = dict.fromkeys(("abstol", "reltol", "feastol"), 1e-12)
    peer = cvxopt.solvers.qp(
        *map(cvxopt.matrix, (K, -kappa, constraints, bounds)),
        options={"show_progress": False, **exact},
    )
    weights = np.ravel(peer["x"])

    def objective(w):
        return (w @ K @ w - 2.0 * kappa @ w) / n**2

    assert result.objective == pytest.approx(objective(result.weights), abs=1e-12)
    assert result.objective == pytest.approx(objective(weights), abs=1e-9)
    assert_allclose(K @ result.weights / n, K @ weights / n, atol=1e-5)


def test_the_known_density_ratio_is_recovered():
    rng = np.random.default_rng(5)
    source, target = rng.normal(size=(1500, 1)), rng.normal(0.5, 0.8, size=(1500, 1))
    result = kernel_mean_matching(source, target, gamma=1.0, upper=10.0)
    x = source[:, 0]
    truth = norm.pdf(x, 0.5, 0.8) / norm.pdf(x)
    edges = np.linspace(-1.0, 2.0, 7)
    for low, high in pairwise(edges):
        inside = (x >= low) & (x < high)
        assert result.weights[inside].mean() == pytest.approx(
            truth[inside].mean(), abs=0.25
        )
    assert np.average(x, weights=result.weights) == pytest.approx(0.5, abs=0.05)


def test_row_order_does_not_matter(rng):
    source, target = shifted(rng)
    order = rng.permutation(len(source))
    straight = kernel_mean_matching(source, target)
    shuffled = kernel_mean_matching(source[order], target[::-1])
    assert_allclose(shuffled.weights, straight.weights[order], atol=1e-4)


def test_twins_get_the_same_weight(rng):
    source, target = shifted(rng)
    weights = kernel_mean_matching(np.vstack([source, source]), target).weights
    assert_allclose(weights[: len(source)], weights[len(source) :], atol=1e-4)


@pytest.mark.parametrize("kernel", ["laplacian", "linear", "cosine", np.dot])
def test_any_kernel_will_do(rng, kernel):
    source, target = shifted(rng)
    result = kernel_mean_matching(source, target, kernel=kernel, upper=20.0)
    assert result.converged
    assert (result.gamma is not None) == (kernel == "laplacian")


def test_kernel_parameters_are_passed_on_and_left_alone(rng):
    source, target = shifted(rng)
    params = {"degree": 2, "gamma": 0.5}
    given_result = kernel_mean_matching(
        source, target, kernel="polynomial", kernel_params=params, upper=5.0
    )
    assert params == {"degree": 2, "gamma": 0.5}
    assert given_result.kkt_residual <= 1e-6
    assert given_result.gamma == 0.5
    by_name = kernel_mean_matching(
        source,
        target,
        kernel="polynomial",
        gamma=0.5,
        kernel_params={"degree": 2},
        upper=5.0,
    )
    assert_allclose(by_name.weights, given_result.weights)


def test_sparse_input_gives_the_same_weights(rng):
    source, target = shifted(rng)
    dense = kernel_mean_matching(source, target).weights
    sparse = kernel_mean_matching(sp.csr_array(source), sp.csr_array(target)).weights
    assert_allclose(sparse, dense, atol=1e-4)


def test_the_median_heuristic_is_the_default():
    target = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    result = kernel_mean_matching(np.array([[0.5], [2.0]]), target)
    assert result.gamma == pytest.approx(1.0 / (2.0 * 2.0**2))


def test_a_result_shows_its_evidence(rng):
    shown = kernel_mean_matching(*shifted(rng))._repr_html_()
    for fact in ("120, largest", "duality gap", "KKT residual", "(iterations"):
        assert fact in shown


def test_effective_sample_size():
    uniform = KMMResult(np.ones(10), 0.0, 0.0, 0.0, 0, True, "exact", None)
    assert uniform.effective_sample_size == pytest.approx(10.0)
    none = KMMResult(np.zeros(3), 0.0, 0.0, 0.0, 0, True, "exact", None)
    assert none.effective_sample_size == 0.0


def test_a_tolerance_out_of_reach_is_said_aloud(rng):
    source, target = shifted(rng)
    with pytest.warns(
        ConvergenceWarning,
        match=r"did not meet tol=1e-18: the KKT residual is .* larger tol",
    ):
        result = kernel_mean_matching(source, target, tol=1e-18)
    assert not result.converged
    assert result.kkt_residual < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": 0.0}, r"gamma must be a positive number or None\. Got 0\.0"),
        ({"gamma": np.inf}, r"gamma must be a positive number"),
        ({"upper": -1.0}, r"upper must be a positive number\. Got -1\.0"),
        ({"upper": np.nan}, r"upper must be a positive number"),
        ({"upper": 0.5, "slack": 0.1}, r"upper must be at least 1 - slack"),
        ({"slack": -0.1}, r"slack must be a number not below 0, or None\. Got -0\.1"),
        ({"tol": 0.0}, r"tol must be a positive number\. Got 0\.0"),
        ({"upper": None}, r"upper must be a positive number\. Got None"),
        ({"slack": "a"}, r"slack must be a number not below 0, or None\. Got 'a'"),
        ({"gamma": 1.0, "kernel": "linear"}, r"gamma must be left at None .*'linear'"),
        (
            {"gamma": 1.0, "kernel_params": {"gamma": 2.0}},
            r"gamma must be left at None",
        ),
        ({"solver": "magic"}, r"solver must be one of .* Got 'magic'"),
        ({"device": "nowhere"}, r"device must be 'cuda'.*Got 'nowhere'"),
        ({"X_source": [[np.nan, 1.0]]}, r"X_source contains NaN"),
        ({"X_target": [[1.0]]}, r"as many features as X_source\. Got 1 and 2"),
    ],
)
def test_bad_input_is_refused(rng, arguments, message):
    source, target = shifted(rng, n=20, m=20)
    call = {"X_source": source, "X_target": target, **arguments}
    with pytest.raises(ValueError, match=message):
        kernel_mean_matching(**call)


def test_one_sample_of_each_is_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = kernel_mean_matching([[0.0]], [[5.0]])
    assert_allclose(result.weights, 1.0)
