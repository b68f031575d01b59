"""Linear models by Newton's method, against scipy, scikit-learn and fits fold by fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from probgap._core.kernels import KernelFeatures
from probgap._core.newton import Logistic, SquaredHinge, fit_penalised

PENALTY = 0.5
each_loss = pytest.mark.parametrize(
    "loss", [Logistic(), SquaredHinge()], ids=lambda loss: type(loss).__name__
)


@each_loss
def test_derivatives_are_those_of_finite_differences(rng, loss):
    target = rng.choice([0.0, 0.3, 1.0], 200)
    score = rng.normal(scale=2.0, size=200)
    # Not where a hinge has its kink.
    score[np.abs(np.abs(score) - 1.0) < 1e-3] = 0.0
    h = 1e-6
    above, below = (loss.slopes(target, score + e) for e in (h, -h))
    slope, curvature = loss.slopes(target, score)[1], loss.curvature(target, score)
    assert_allclose(slope, (above[0] - below[0]) / (2 * h), atol=1e-7)
    assert_allclose(curvature, (above[1] - below[1]) / (2 * h), atol=1e-7)
    assert curvature.max() > 0.1
    assert curvature.min() >= 0.0


def problem(rng, n=300, r=4):
    features = rng.normal(size=(n, r)).astype(np.float32)
    score = features @ np.array([1.5, -1.0, 0.5, 0.0])[:r] + 0.4
    target = (rng.random(n) < expit(score) * 0.7).astype(np.float64)
    return features, target


def objective(loss, features, target, penalty, weight=1.0):
    """Return in double precision what is to be minimised."""

    def value(v):
        score = features.astype(np.float64) @ v[:-1] + v[-1]
        losses = weight * loss.slopes(target, score)[0]
        return losses.sum() + 0.5 * penalty * v[:-1] @ v[:-1]

    return value


def parameters(fits, model=0):
    return np.append(fits.coef[:, model], fits.intercept[model])


@each_loss
def test_the_fit_is_the_minimum_that_scipy_finds(rng, loss):
    features, target = problem(rng)
    weight = rng.uniform(0.0, 2.0, target.size)
    fits = fit_penalised(features, target, loss, PENALTY, weight=weight)
    value = objective(loss, features, target, PENALTY, weight)
    peer = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-4})
    assert fits.converged
    assert value(parameters(fits)) <= peer.fun + 1e-5
    assert_allclose(parameters(fits), peer.x, atol=2e-3)
    assert np.abs(peer.x[:2]).min() > 0.1


def test_the_fit_is_scikit_learns_logistic_regression(rng):
    features, target = problem(rng)
    fits = fit_penalised(features, target, Logistic(), 1 / 3.0)
    peer = LogisticRegression(C=3.0, tol=1e-8).fit(features.astype(float), target)
    assert_allclose(fits.coef[:, 0], peer.coef_[0], atol=2e-3)
    assert fits.intercept[0] == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_the_fit_is_scikit_learns_support_vector_machine(rng):
    features, target = problem(rng)
    weight = rng.uniform(0.1, 2.0, target.size)
    fits = fit_penalised(features, target, SquaredHinge(), 1 / 3.0, weight=weight)
    peer = LinearSVC(C=3.0, tol=1e-9, dual=False, intercept_scaling=1000.0)
    peer.fit(features.astype(float), target, sample_weight=weight)
    assert_allclose(fits.coef[:, 0], peer.coef_[0], atol=1e-3)
    assert fits.intercept[0] == pytest.approx(peer.intercept_[0], abs=1e-3)


def test_few_support_vectors_are_found_though_the_first_step_counts_all_rows(rng):
    # A factor made at the start would make steps too short, without end.
    X = rng.uniform(-1.0, 1.0, size=(2000, 2))
    target = (X[:, 0] * X[:, 1] > 0.0).astype(np.float64)
    features = KernelFeatures.fit(X, 60, 1.5, 0).transform(X)
    fits = fit_penalised(features, target, SquaredHinge(), 0.1)
    assert fits.converged
    assert fits.n_iter < 50
    peer = LinearSVC(C=10.0, tol=1e-9, dual=False, intercept_scaling=1000.0)
    peer.fit(features.astype(float), target)
    value = objective(SquaredHinge(), features, target, 0.1)
    best = value(np.append(peer.coef_[0], peer.intercept_[0]))
    assert value(parameters(fits)) <= best + 1e-3


@pytest.mark.parametrize("complements", [True, False], ids=["k-fold", "any rows"])
@each_loss
def test_folds_fitted_together_are_fits_on_their_rows_alone(rng, loss, complements):
    features, target = problem(rng)
    weight = rng.uniform(0.5, 1.5, target.size)
    if complements:
        trained = np.arange(target.size)[:, None] % 4 != np.arange(4)
    else:
        trained = rng.random((target.size, 3)) < [0.9, 0.5, 0.2]
    start = rng.normal(size=5)
    together = fit_penalised(
        features, target, loss, PENALTY, weight=weight, trained=trained, start=start
    )
    assert together.converged
    assert together.coef.shape == (4, 1 + trained.shape[1])
    whole = fit_penalised(features, target, loss, PENALTY, weight=weight)
    assert_allclose(parameters(together), parameters(whole), atol=1e-3)
    for k, rows in enumerate(trained.T):
        alone = fit_penalised(
            features[rows], target[rows], loss, PENALTY, weight=weight[rows]
        )
        found = parameters(together, 1 + k)
        assert_allclose(found, parameters(alone), atol=1e-3)
        # The folds' models differ by more than they are allowed to be wrong.
        assert np.abs(found - parameters(whole)).max() > 5e-3


def test_some_of_many_rows_are_enough_for_a_hessian(rng):
    features, target = problem(rng, n=20_000)
    trained = np.arange(target.size)[:, None] % 2 != np.arange(2)
    fits = fit_penalised(features, target, Logistic(), PENALTY, trained=trained)
    assert fits.converged
    for k, rows in enumerate([slice(None), *trained.T]):
        peer = LogisticRegression(C=1.0 / PENALTY, tol=1e-8)
        peer.fit(features[rows].astype(float), target[rows])
        assert_allclose(fits.coef[:, k], peer.coef_[0], atol=2e-3)


@each_loss
def test_a_weight_is_a_number_of_repeats(rng, loss):
    features, target = problem(rng)
    counts = rng.integers(0, 4, target.size)
    weighted = fit_penalised(
        features, target, loss, PENALTY, weight=counts.astype(float)
    )
    repeated = fit_penalised(
        np.repeat(features, counts, axis=0), np.repeat(target, counts), loss, PENALTY
    )
    plain = fit_penalised(features, target, loss, PENALTY)
    assert_allclose(parameters(weighted), parameters(repeated), atol=2e-3)
    assert np.abs(parameters(weighted) - parameters(plain)).max() > 1e-2


@each_loss
def test_the_start_changes_the_number_of_steps_alone(rng, loss):
    features, target = problem(rng)
    near = fit_penalised(features, target, loss, PENALTY)
    start = rng.normal(scale=5.0, size=5)
    far = fit_penalised(features, target, loss, PENALTY, start=start)
    assert far.converged
    assert_allclose(parameters(far), parameters(near), atol=3e-3)
    again = fit_penalised(features, target, loss, PENALTY, start=parameters(near))
    assert again.n_iter == 1


class Uphill:
    """A loss whose derivative has the wrong sign."""

    def slopes(self, target, score):
        return (score - target) ** 2, -2.0 * (score - target)

    def curvature(self, target, score):
        del target
        return np.full_like(score, 2.0)


def test_where_no_step_leads_down_none_is_taken_for_a_solution(rng):
    features, target = problem(rng)
    fits = fit_penalised(features, target, Uphill(), PENALTY, max_iter=5)
    assert not fits.converged
    assert fits.n_iter == 5
    assert np.abs(fits.coef).max() < 1e-3  # steps were cut down to nothing


@pytest.mark.parametrize("steps", [1, 2])
def test_a_fit_that_is_cut_short_is_not_called_converged(rng, steps):
    features, target = problem(rng)
    fits = fit_penalised(features, target, Logistic(), PENALTY, max_iter=steps)
    assert not fits.converged
    assert fits.n_iter == steps


def test_a_start_beyond_every_margin_has_no_curvature_and_is_left_all_the_same():
    features = np.array([[1.0], [2.0], [-1.0], [-2.0]], dtype=np.float32)
    target = np.array([1.0, 1.0, 0.0, 0.0])
    start = np.array([9.0, 0.0])
    far = fit_penalised(features, target, SquaredHinge(), 0.1, start=start)
    near = fit_penalised(features, target, SquaredHinge(), 0.1)
    assert far.converged
    assert_allclose(far.coef, near.coef, rtol=1e-2)


def test_rounding_that_leaves_no_definite_hessian_is_made_up_for(rng):
    # Two features and the intercept that are the same but for rounding, on many rows.
    n = 8000
    features = np.ones((n, 2), dtype=np.float32) * np.float32([-1.0, 2.4])
    target = (rng.random(n) < 0.4).astype(float)
    fits = fit_penalised(features, target, Logistic(), 1e-9)
    assert fits.converged
    score = features @ fits.coef[:, 0] + fits.intercept[0]
    assert_allclose(expit(score), target.mean(), rtol=0.05)
