"""SAR-EM with all columns for both models is LBE-LF: equation by equation, on 20 rows.

Gong, Wang, Liu, Han, You, Yang and Tao (TPAMI 2022) write h(x) = P(y=1 | x) and
eta(x) = P(s=1 | y=1, x), both logistic in all columns. What follows is written from these
equations alone, with one optimiser for the whole M-step.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from probgap.methods import SAREMClassifier

X = np.array(
    [
        *[(2.1, 0.3), (1.4, -0.8), (1.9, 1.2), (0.6, 0.9), (0.2, -0.4)],
        *[(1.1, 0.1), (2.6, -0.2), (0.9, 1.7), (-0.3, 0.8), (1.6, 0.5)],
        *[(0.4, -1.1), (-0.7, 0.2), (-1.2, -0.9), (-0.1, 1.4), (-1.8, 0.6)],
        *[(-0.9, -1.6), (0.8, -0.6), (-2.2, 0.1), (-1.4, 1.1), (1.3, -1.3)],
    ]
)
S = np.array([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0])
ONES = np.column_stack([X, np.ones(20)])
PLAIN = LogisticRegression(C=1e8, tol=1e-9, max_iter=5000)


def expect(theta_h, theta_eta):
    """E-step: P(y=1 | x, s) by Bayes' rule, with P(s=1 | y=0, x) = 0."""
    h, eta = expit(ONES @ theta_h), expit(ONES @ theta_eta)
    positive = h * eta**S * (1.0 - eta) ** (1 - S)
    negative = (1.0 - h) * (1 - S)
    return positive / (positive + negative)


def maximise(posterior):
    """M-step: maximise the expected log P(s, y | x) in all six parameters at once."""

    def loss(theta):
        a, b = ONES @ theta[:3], ONES @ theta[3:]
        log_h = posterior * np.log(expit(a)) + (1 - posterior) * np.log(expit(-a))
        log_eta = posterior * (S * np.log(expit(b)) + (1 - S) * np.log(expit(-b)))
        return -np.sum(log_h + log_eta)

    found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    return found.x[:3], found.x[3:]


def log_likelihood(theta_h, theta_eta):
    chance = expit(ONES @ theta_h) * expit(ONES @ theta_eta)
    return np.mean(S * np.log(chance) + (1 - S) * np.log(1.0 - chance))


def logistic(weight):
    """A logistic fit to the observed labels, by weight: where EM starts."""
    fitted = LogisticRegression(**PLAIN.get_params()).fit(X, S, sample_weight=weight)
    return np.append(fitted.coef_[0], fitted.intercept_)


def parameters(estimator):
    return np.append(estimator.coef_[0], estimator.intercept_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_steps_are_those_of_lbe(rounds):
    fitted = SAREMClassifier(PLAIN, PLAIN, max_iter=rounds).fit(X, S)
    h = logistic(np.where(S == 1, 10.0 / S.sum(), 10.0 / (20 - S.sum())))
    eta = logistic(np.where(S == 1, 1.0, expit(ONES @ h)))
    for _ in range(rounds):
        h, eta = maximise(expect(h, eta))
    assert_allclose(parameters(fitted.estimator_), h, atol=2e-3)
    assert_allclose(parameters(fitted.propensity_estimator_), eta, atol=2e-3)
    assert_allclose(fitted.posterior_, expect(h, eta), atol=1e-4)
    assert fitted.log_likelihood_[-1] == pytest.approx(log_likelihood(h, eta))


def test_the_published_start_ends_where_ours_does():
    """It fits both to the observed labels alike: only the E-step parts h from eta."""
    h = eta = logistic(np.where(S == 1, (20 - S.sum()) / 20, S.sum() / 20))
    for _ in range(100):
        h, eta = maximise(expect(h, eta))
    fitted = SAREMClassifier(PLAIN, PLAIN, tol=1e-9).fit(X, S)
    assert fitted.converged_
    assert_allclose(parameters(fitted.estimator_), h, rtol=1e-3)
    assert_allclose(parameters(fitted.propensity_estimator_), eta, rtol=1e-3)
    # Labels cannot tell h from eta where both have the same form: the start does.
    assert log_likelihood(h, eta) == pytest.approx(log_likelihood(eta, h))
