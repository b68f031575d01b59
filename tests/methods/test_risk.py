"""uPU and nnPU: the risk by its formula, its gradient, and the minimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from probgap.datasets import hide_labels, make_square
from probgap.methods import NaiveClassifier, NNPUClassifier
from probgap.methods._risk import risk_terms

LOSSES = {
    "logistic": lambda z: np.log1p(np.exp(-z)),
    "sigmoid": lambda z: 1.0 / (1.0 + np.exp(z)),
}
LINEAR = {"kernel": "linear", "alpha": 0.01, "tol": 1e-7}


@pytest.fixture(scope="module")
def overlapping():
    """Two normal classes, half of the positives labelled at random: X, y_true, s."""
    rng = np.random.default_rng(0)
    y_true = (rng.random(400) < 0.4).astype(int)
    X = rng.normal(size=(400, 2)) + 1.5 * y_true[:, None]
    return X, y_true, y_true * (rng.random(400) < 0.5)


def risk_of(model, X, s, *, bounded):
    """The papers' formula, with the mean over all samples for the marginal."""
    loss, prior, g = LOSSES[model.loss], model.class_prior_, model.decision_function(X)
    negative = loss(-g).mean() - prior * loss(-g[s == 1]).mean()
    negative = max(negative, 0.0) if bounded else negative
    penalty = 0.5 * model.alpha * model.coef_ @ model.coef_
    return prior * loss(g[s == 1]).mean() + negative + penalty


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("risk", ["upu", "nnpu"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_objective_is_the_formula(overlapping, loss, risk, kernel):
    X, _, s = overlapping
    model = NNPUClassifier(0.4, loss=loss, risk=risk, kernel=kernel, random_state=0)
    fitted = model.fit(X, s)
    assert fitted.converged_
    expected = risk_of(fitted, X, s, bounded=risk == "nnpu")
    assert fitted.objective_ == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_finite_differences(rng, loss):
    score, cost = rng.normal(size=30), np.where(np.arange(30) < 10, 0.05, 0.0)
    terms = risk_terms(score, cost, loss)
    for i in (0, 12):
        step = 1e-6 * (np.arange(30) == i)
        up, down = (risk_terms(score + h, cost, loss) for h in (step, -step))
        for name in ("positive", "negative"):
            slope = (getattr(up, name) - getattr(down, name)) / 2e-6
            assert getattr(terms, f"{name}_slope")[i] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("prior", [0.3, 0.4, 0.6])
def test_no_other_optimiser_finds_a_lower_risk(overlapping, prior):
    """Where the bound is active the minimum is at a kink; Nelder-Mead needs no slopes."""
    X, _, s = overlapping
    fitted = NNPUClassifier(prior, **LINEAR).fit(X, s)
    features = fitted.scaler_.transform(X)
    cost = np.where(s == 1, prior / s.sum(), 0.0)

    def objective(point):
        terms = risk_terms(features @ point[:-1] + point[-1], cost, "logistic")
        return (
            terms.positive + max(terms.negative, 0.0) + 0.005 * point[:-1] @ point[:-1]
        )

    start = np.append(fitted.coef_, fitted.intercept_) + 0.3
    options = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 5000, "maxfev": 5000}
    found = minimize(objective, start, method="Nelder-Mead", options=options)
    assert fitted.objective_ <= found.fun + 1e-6
    assert fitted.objective_ == pytest.approx(found.fun, abs=1e-4)


def test_the_bound_is_active_where_the_risk_of_negatives_would_be_below_0():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(2.0, 0.5, 50), rng.normal(-2.0, 0.5, 50)])[:, None]
    s = (np.arange(100) < 25).astype(int)
    # More positives than there are: the unbounded risk is driven below 0.
    unbounded = NNPUClassifier(0.8, risk="upu", **LINEAR).fit(X, s)
    bounded = NNPUClassifier(0.8, **LINEAR).fit(X, s)
    loss = LOSSES["logistic"]

    def negatives(model):
        g = model.decision_function(X)
        return loss(-g).mean() - 0.8 * loss(-g[s == 1]).mean()

    assert unbounded.kept_ == 1.0
    if negatives(unbounded) < 0.0:
        assert 0.0 < bounded.kept_ < 1.0
        assert negatives(bounded) == pytest.approx(0.0, abs=1e-6)
        assert bounded.converged_


def test_with_every_positive_labelled_it_is_logistic_regression(overlapping):
    X, y_true, _ = overlapping
    fitted = NNPUClassifier(float(y_true.mean()), **LINEAR).fit(X, y_true)
    features = fitted.scaler_.transform(X)
    # C is the inverse of the penalty on the sum of losses.
    plain = LogisticRegression(C=1.0 / (0.01 * len(X)), tol=1e-8).fit(features, y_true)
    assert_allclose(fitted.coef_, plain.coef_[0], rtol=1e-4)
    assert_allclose(fitted.predict_proba(X), plain.predict_proba(features), atol=1e-4)


def test_it_finds_probabilities_and_beats_naive_at_random_labels(overlapping):
    X, y_true, s = overlapping
    naive = NaiveClassifier().fit(X, s).score(X, y_true)
    truth = expit(1.5 * X.sum(axis=1) - 2.25 + np.log(0.4 / 0.6))
    for prior in (0.4, None):
        fitted = NNPUClassifier(prior, kernel="linear", random_state=0).fit(X, s)
        assert fitted.score(X, y_true) > naive + 0.03
        away = np.abs(fitted.predict_proba(X)[:, 1] - truth).mean()
        assert away < (0.1 if prior else 0.15)
    assert fitted.estimate_.class_prior == fitted.class_prior_


def test_the_logistic_risk_converges_where_its_bound_is_active():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y_true = rng.random(80) < 0.5
        X = rng.normal(size=(80, 15)) + 0.7 * y_true[:, None]
        s = (y_true & (rng.random(80) < 0.4)).astype(int)
        model = NNPUClassifier(0.6, kernel="linear", alpha=1e-3).fit(X, s)
        assert model.converged_
        assert model.kept_ < 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_the_sigmoid_risk_does_not_end_where_it_is_flat(seed):
    """With a prior that is too high, some factors of the bisection call all positive."""
    X, y_true, posterior = make_square(200, random_state=seed)
    s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.5), random_state=seed)
    prior = 1.5 * y_true.mean()
    fits = [
        NNPUClassifier(prior, loss="sigmoid", risk=risk, random_state=0).fit(X, s)
        for risk in ("upu", "nnpu")
    ]
    start, found = (risk_of(model, X, s, bounded=True) for model in fits)
    assert found <= start
    assert fits[1].predict(X).mean() < 1.0


def test_a_fit_that_stops_early_says_so(overlapping):
    X, _, s = overlapping
    with pytest.warns(ConvergenceWarning, match=r"had not converged after 2 steps"):
        fitted = NNPUClassifier(0.4, max_iter=2, random_state=0).fit(X, s)
    assert not fitted.converged_
    assert fitted.n_iter_ == 2
