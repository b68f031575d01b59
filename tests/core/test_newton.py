"""Losses against finite differences; the fits against other people's solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from probgap._core import newton
from probgap._core.features import KernelFeatures
from probgap._core.newton import Logistic, Ridge, SquaredHinge, fit_linear


class ProductLoss:
    """Minus the log-likelihood of P = expit(score) * expit(level + slope * score).

    Has a level, and is not convex.
    """

    def __init__(self, slope):
        self.slope = slope

    def slopes(self, target, score, level):
        one, two = expit(score), expit(level + self.slope * score)
        p = np.minimum(one * two, 1.0 - 1e-12)
        log_p = log_expit(score) + log_expit(level + self.slope * score)
        loss = -target * log_p - (1.0 - target) * np.log1p(-p)
        residual = (p - target) / (1.0 - p)
        by_score = residual * ((1.0 - one) + self.slope * (1.0 - two))
        return loss, by_score, residual * (1.0 - two)

    def curvatures(self, target, score, level, *, safe):
        one, two = expit(score), expit(level + self.slope * score)
        p = np.minimum(one * two, 1.0 - 1e-12)
        by_level = 1.0 - two
        by_score = (1.0 - one) + self.slope * by_level
        if safe:
            known = p / (1.0 - p)
            return known * by_score**2, known * by_score * by_level, known * by_level**2
        residual = (p - target) / (1.0 - p)
        known = p * (1.0 - target) / (1.0 - p) ** 2
        bend = two * by_level
        return (
            known * by_score**2 - residual * (one * (1.0 - one) + self.slope**2 * bend),
            known * by_score * by_level - residual * self.slope * bend,
            known * by_level**2 - residual * bend,
        )


LOSSES = [Logistic(), SquaredHinge(), ProductLoss(0.0), ProductLoss(0.7)]
RIDGE = Ridge(0.5, level=-0.4, pull=30.0)
each_loss = pytest.mark.parametrize(
    "loss", LOSSES, ids=lambda loss: type(loss).__name__
)


def points(rng, n=200):
    target = rng.choice([0.0, 0.3, 1.0], n)
    score = rng.normal(scale=2.0, size=n)
    # Not where a hinge has its kink.
    score[np.abs(np.abs(score) - 1.0) < 1e-3] = 0.0
    return target, score, -0.3


@each_loss
def test_slopes_are_those_of_finite_differences(rng, loss):
    target, score, level = points(rng)
    h = 1e-6
    _, by_score, by_level = loss.slopes(target, score, level)
    above, below = (loss.slopes(target, score + e, level)[0] for e in (h, -h))
    assert_allclose(by_score, (above - below) / (2 * h), atol=1e-7)
    above, below = (loss.slopes(target, score, level + e)[0] for e in (h, -h))
    expected = (above - below) / (2 * h)
    if by_level is None:
        assert_allclose(expected, 0.0)
    else:
        assert np.abs(by_level).max() > 0.1
        assert_allclose(by_level, expected, atol=1e-7)


@each_loss
def test_curvatures_are_those_of_finite_differences(rng, loss):
    target, score, level = points(rng)
    h = 1e-6
    twice, both, by_level = loss.curvatures(target, score, level, safe=False)
    assert np.abs(twice).max() > 0.1
    above, below = (loss.slopes(target, score + e, level) for e in (h, -h))
    assert_allclose(twice, (above[1] - below[1]) / (2 * h), atol=1e-7)
    if above[2] is None:
        assert_allclose(both, 0.0)
        assert_allclose(by_level, 0.0)
        return
    assert_allclose(both, (above[2] - below[2]) / (2 * h), atol=1e-7)
    above, below = (loss.slopes(target, score, level + e)[2] for e in (h, -h))
    assert_allclose(by_level, (above - below) / (2 * h), atol=1e-7)


@each_loss
def test_safe_curvatures_are_semidefinite(rng, loss):
    target, score, level = points(rng)
    twice, both, by_level = loss.curvatures(target, score, level, safe=True)
    assert (twice >= 0.0).all()
    assert (by_level >= 0.0).all()
    assert (twice * by_level - both**2 >= -1e-12).all()


@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_safe_curvatures_are_the_mean_of_the_true_ones_over_labels(rng, slope):
    loss, (_, score, level) = ProductLoss(slope), points(rng)
    p = expit(score) * expit(level + slope * score)
    ones, zeros = (
        np.array(loss.curvatures(np.full(200, y), score, level, safe=False))
        for y in (1.0, 0.0)
    )
    safe = loss.curvatures(zeros[0], score, level, safe=True)
    assert_allclose(safe, p * ones + (1.0 - p) * zeros, atol=1e-10)
    if slope == 0.0:
        assert zeros[0].min() < 0.0  # the true ones are not safe


def test_the_loss_of_a_certainty_is_finite():
    loss = ProductLoss(0.5)
    score = np.array([800.0, 800.0, -800.0, -800.0])
    target = np.array([0.0, 1.0, 0.0, 1.0])
    for values in loss.slopes(target, score, np.array(30.0)):
        assert np.isfinite(values).all()
    for safe in (True, False):
        for values in loss.curvatures(target, score, 30.0, safe=safe):
            assert np.isfinite(values).all()


def problem(rng, n=300, r=4):
    features = rng.normal(size=(n, r)).astype(np.float32)
    score = features @ np.array([1.5, -1.0, 0.5, 0.0])[:r] + 0.4
    target = (rng.random(n) < expit(score) * 0.7).astype(np.float64)
    return features, target


def objective(loss, features, target, ridge, weight=None):
    """Write down in double precision what is to be minimised."""
    weight = np.ones(target.size) if weight is None else weight

    def value(v):
        score = features.astype(np.float64) @ v[:-2] + v[-2]
        losses = loss.slopes(target, score, v[-1])[0]
        off = v[-1] - ridge.level
        penalty = 0.5 * ridge.coef * v[:-2] @ v[:-2] + 0.5 * ridge.pull * off**2
        return weight @ losses + penalty

    return value


def parameters(fits, model=0):
    return np.append(fits.coef[:, model], [fits.intercept[model], fits.level[model]])


@each_loss
def test_the_fit_is_the_minimum_that_scipy_finds(rng, loss):
    features, target = problem(rng)
    weight = rng.uniform(0.0, 2.0, target.size)
    fits = fit_linear(features, target, loss, RIDGE, weight=weight)
    value = objective(loss, features, target, RIDGE, weight)
    peer = minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-4})
    assert fits.converged
    assert 0.0 <= fits.decrement[0] <= 1e-5
    # The decrement is twice what is left to gain.
    assert value(parameters(fits)) <= peer.fun + 1e-5
    assert_allclose(parameters(fits), peer.x, atol=2e-3)
    assert np.abs(peer.x[:2]).min() > 0.1


def test_the_fit_is_scikit_learns_logistic_regression(rng):
    features, target = problem(rng)
    fits = fit_linear(features, target, Logistic(), Ridge(1 / 3.0))
    peer = LogisticRegression(C=3.0, tol=1e-8).fit(features.astype(float), target)
    assert_allclose(fits.coef[:, 0], peer.coef_[0], atol=2e-3)
    assert fits.intercept[0] == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_the_fit_is_scikit_learns_support_vector_machine(rng):
    features, target = problem(rng)
    weight = rng.uniform(0.1, 2.0, target.size)
    fits = fit_linear(features, target, SquaredHinge(), Ridge(1 / 3.0), weight=weight)
    peer = LinearSVC(C=3.0, tol=1e-9, dual=False, intercept_scaling=1000.0)
    peer.fit(features.astype(float), target, sample_weight=weight)
    assert_allclose(fits.coef[:, 0], peer.coef_[0], atol=1e-3)
    assert fits.intercept[0] == pytest.approx(peer.intercept_[0], abs=1e-3)


def test_few_support_vectors_are_found_though_the_first_step_counts_all_rows(rng):
    # A factor made at the start would make steps too short, without end.
    X = rng.uniform(-1.0, 1.0, size=(2000, 2))
    target = (X[:, 0] * X[:, 1] > 0.0).astype(np.float64)
    features = KernelFeatures.fit(X, 60, 1.5, 0).transform(X)
    fits = fit_linear(features, target, SquaredHinge(), Ridge(0.1))
    assert fits.converged
    assert fits.n_iter < 50
    peer = LinearSVC(C=10.0, tol=1e-9, dual=False, intercept_scaling=1000.0)
    peer.fit(features.astype(float), target)
    value = objective(SquaredHinge(), features, target, Ridge(0.1))
    best = value(np.append(peer.coef_[0], [peer.intercept_[0], 0.0]))
    assert value(parameters(fits)) <= best + 1e-3


def some_folds(rng, n, *, complements):
    if complements:
        return np.arange(n)[:, None] % 4 != np.arange(4)
    return rng.random((n, 3)) < [0.9, 0.5, 0.2]


@pytest.mark.parametrize("complements", [True, False], ids=["k-fold", "any rows"])
@pytest.mark.parametrize("hessian_rows", [8192, 60], ids=["all rows", "some rows"])
@each_loss
def test_folds_fitted_together_are_fits_on_their_rows_alone(
    rng, monkeypatch, loss, hessian_rows, complements
):
    monkeypatch.setattr(newton, "_HESSIAN_ROWS", hessian_rows)
    monkeypatch.setattr(newton, "_TOLERANCE", 1e-7)
    monkeypatch.setattr(newton, "_TOLERANCE_PER_ROW", 0.0)
    features, target = problem(rng)
    weight = rng.uniform(0.5, 1.5, target.size)
    trained = some_folds(rng, target.size, complements=complements)
    start = np.append(rng.normal(size=5), RIDGE.level)
    together = fit_linear(
        features, target, loss, RIDGE, weight=weight, trained=trained, start=start
    )
    assert together.converged
    assert together.coef.shape == (4, 1 + trained.shape[1])
    whole = fit_linear(features, target, loss, RIDGE, weight=weight)
    assert_allclose(parameters(together), parameters(whole), atol=1e-3)
    for k, rows in enumerate(trained.T):
        alone = fit_linear(
            features[rows], target[rows], loss, RIDGE, weight=weight[rows]
        )
        found = parameters(together, 1 + k)
        assert_allclose(found, parameters(alone), atol=1e-3)
        # The folds' models differ by more than they are allowed to be wrong.
        assert np.abs(found - parameters(whole)).max() > 5e-3


@each_loss
def test_a_folds_factor_is_that_of_its_rows(rng, loss):
    features, target = problem(rng)
    weight = rng.uniform(0.5, 1.5, target.size)
    trained = some_folds(rng, target.size, complements=True)
    whole = parameters(fit_linear(features, target, loss, RIDGE, weight=weight))
    held = newton.HeldRows(features, target, weight, trained)
    setting = newton._Problem(held, loss, RIDGE)
    for fold, (factor, lower) in enumerate(setting.fold_factors(whole)):
        assert lower
        expected, _ = setting.factor(whole, fold)
        assert_allclose(np.tril(factor), np.tril(expected), atol=1e-3)


@each_loss
def test_a_weight_is_a_number_of_repeats(rng, loss):
    features, target = problem(rng)
    counts = rng.integers(0, 4, target.size)
    weighted = fit_linear(
        features, target, loss, RIDGE, weight=counts.astype(np.float64)
    )
    repeated = fit_linear(
        np.repeat(features, counts, axis=0), np.repeat(target, counts), loss, RIDGE
    )
    plain = fit_linear(features, target, loss, RIDGE)
    assert_allclose(parameters(weighted), parameters(repeated), atol=2e-3)
    assert np.abs(parameters(weighted) - parameters(plain)).max() > 1e-2


def test_a_fold_with_no_definite_hessian_gets_down_all_the_same(rng):
    features, target = problem(rng, n=400)
    loss, ridge = ProductLoss(0.0), Ridge(1e-3, level=0.0, pull=1e4)
    whole = fit_linear(features, target, loss, ridge)
    score = whole.score(features)
    # Unlabelled samples that seem positive alone: the likelihood bends the wrong way.
    doubtful = (target == 0.0) & (score > np.quantile(score, 0.7))
    rows = np.flatnonzero(doubtful)
    curvature = loss.curvatures(target[rows], score[rows], 0.0, safe=False)[0]
    assert curvature.sum() < 0.0
    mask = doubtful.copy()
    mask[:3] = True
    together = fit_linear(features, target, loss, ridge, trained=mask[:, None])
    assert together.converged
    value = objective(loss, features[mask], target[mask], ridge)
    found = parameters(together, 1)
    assert value(found) < value(parameters(whole)) - 1e-3
    peer = minimize(value, found, method="BFGS", options={"gtol": 1e-4})
    assert value(found) <= peer.fun + 1e-4


@each_loss
def test_a_start_far_away_ends_where_any_other_does(rng, loss):
    features, target = problem(rng)
    far = np.append(rng.normal(scale=5.0, size=5), RIDGE.level)
    fits = fit_linear(features, target, loss, RIDGE, start=far)
    assert fits.converged
    near = fit_linear(features, target, loss, RIDGE)
    assert_allclose(parameters(fits), parameters(near), atol=3e-3)


def test_a_solution_to_begin_with_is_left_alone(rng):
    features, target = problem(rng)
    first = fit_linear(features, target, Logistic(), RIDGE)
    again = fit_linear(features, target, Logistic(), RIDGE, start=parameters(first))
    assert again.n_iter == 1
    assert_allclose(parameters(again), parameters(first))


class Uphill:
    """A loss that says it falls where it rises."""

    def slopes(self, target, score, level):
        del level
        return (score - target) ** 2, -2.0 * (score - target), None

    def curvatures(self, target, score, level, *, safe):
        del target, level, safe
        none = np.zeros_like(score)
        return np.full_like(score, 2.0), none, none


@pytest.mark.parametrize("halvings", [30, 3])
def test_where_no_step_leads_down_none_is_taken_for_a_solution(
    rng, monkeypatch, halvings
):
    monkeypatch.setattr(newton, "_HALVINGS", halvings)
    monkeypatch.setattr(newton, "_MAX_STEPS", 5)
    features, target = problem(rng)
    fits = fit_linear(features, target, Uphill(), RIDGE)
    assert not fits.converged
    assert fits.decrement[0] > 1.0
    assert fits.n_iter == 5
    if halvings == 30:  # steps were cut down to nothing
        assert np.abs(fits.coef).max() < 1e-3


@pytest.mark.parametrize("steps", [1, 2])
def test_a_fit_that_is_cut_short_says_so(rng, monkeypatch, steps):
    monkeypatch.setattr(newton, "_MAX_STEPS", steps)
    features, target = problem(rng)
    fits = fit_linear(features, target, ProductLoss(0.7), RIDGE)
    assert not fits.converged
    assert fits.n_iter == steps
    assert fits.decrement[0] > 1e-5


def test_blocks_of_rows_change_nothing(rng, monkeypatch):
    features, target = problem(rng, n=700)
    once = fit_linear(features, target, ProductLoss(0.7), RIDGE)
    monkeypatch.setattr(newton, "_BLOCK_BYTES", 1)
    blocks = fit_linear(features, target, ProductLoss(0.7), RIDGE)
    assert_allclose(parameters(blocks), parameters(once), atol=1e-4)


def test_a_start_beyond_every_margin_has_no_curvature_and_is_left_all_the_same():
    features = np.array([[1.0], [2.0], [-1.0], [-2.0]], dtype=np.float32)
    target = np.array([1.0, 1.0, 0.0, 0.0])
    far = fit_linear(
        features, target, SquaredHinge(), Ridge(0.1), start=np.array([9.0, 0.0, 0.0])
    )
    near = fit_linear(features, target, SquaredHinge(), Ridge(0.1))
    assert far.converged
    assert_allclose(far.coef, near.coef, rtol=1e-2)


def test_rounding_that_leaves_no_definite_hessian_is_made_up_for(rng):
    # Two features and the intercept that are the same but for rounding, on many rows.
    n = 8000
    features = np.ones((n, 2), dtype=np.float32) * np.float32([-1.0, 2.4])
    labelled = (rng.random(n) < 0.4).astype(float)
    fits = fit_linear(
        features, labelled, ProductLoss(0.1), Ridge(0.012, -0.87, 91.0), trained=None
    )
    chance = expit(fits.score(features)) * expit(
        fits.level[0] + 0.1 * fits.score(features)
    )
    assert fits.converged
    assert_allclose(chance, labelled.mean(), rtol=0.05)
