"""SAR-EM and known propensities: by hand, and where their assumption holds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap.methods import (
    NaiveClassifier,
    NNPUClassifier,
    PropensityWeightedClassifier,
    SAREMClassifier,
)
from probgap.methods._propensity import mean_log_likelihood, posterior_given_label

PLAIN = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000, warm_start=True)


@pytest.fixture(scope="module")
def by_clinic():
    """Two columns give the class, a third one how often it is labelled: X, y, s, e."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(800, 2)), rng.choice([-1.0, 1.0], 800)])
    y_true = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=800) > 0).astype(int)
    propensity = np.where(X[:, 2] > 0.0, 0.9, 0.25)
    return X, y_true, y_true * (rng.random(800) < propensity), propensity


def test_the_expectation_by_hand():
    positive, propensity = (
        np.array([0.5, 0.5, 1.0, 0.0]),
        np.array([0.5, 0.5, 0.2, 0.3]),
    )
    labelled = np.array([True, False, False, False])
    # Of 0.75 unlabelled, 0.25 are positive; a sure positive stays one, a sure negative too.
    expected = posterior_given_label(positive, propensity, labelled)
    assert_allclose(expected, [1.0, 1.0 / 3.0, 1.0, 0.0])
    likelihood = mean_log_likelihood(positive[:2], propensity[:2], labelled[:2])
    assert likelihood == pytest.approx(0.5 * (np.log(0.25) + np.log(0.75)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_round_of_em_by_hand(by_clinic):
    X, _, s, _ = (part[:200] for part in by_clinic)
    fitted = SAREMClassifier(PLAIN, PLAIN, propensity_features=[2], max_iter=1).fit(
        X, s
    )
    n, n_labelled = s.size, s.sum()
    balance = np.where(s == 1, n / (2 * n_labelled), n / (2 * (n - n_labelled)))
    f = LogisticRegression(**PLAIN.get_params()).fit(X, s, sample_weight=balance)
    share = np.where(s == 1, 1.0, f.predict_proba(X)[:, 1])
    e = LogisticRegression(**PLAIN.get_params()).fit(X[:, 2:], s, sample_weight=share)
    p, q = f.predict_proba(X)[:, 1], e.predict_proba(X[:, 2:])[:, 1]
    share = np.where(s == 1, 1.0, p * (1.0 - q) / (1.0 - p * q))
    weight = np.concatenate([share, 1.0 - share])
    f.fit(np.vstack([X, X]), np.repeat([1, 0], n), sample_weight=weight)
    e.fit(X[:, 2:], s, sample_weight=share)
    assert_allclose(fitted.predict_proba(X), f.predict_proba(X), atol=1e-6)
    assert_allclose(
        fitted.predict_propensity(X), e.predict_proba(X[:, 2:])[:, 1], atol=1e-6
    )
    assert fitted.n_iter_ == 1


def test_the_likelihood_never_falls(by_clinic):
    X, _, s, _ = by_clinic
    fitted = SAREMClassifier(PLAIN, PLAIN, propensity_features=[2], tol=1e-3).fit(X, s)
    assert fitted.converged_
    assert fitted.log_likelihood_.size == fitted.n_iter_ + 1 > 3
    assert (np.diff(fitted.log_likelihood_) > -1e-8).all()


def test_em_finds_the_propensity_and_beats_naive(by_clinic):
    X, y_true, s, propensity = by_clinic
    frame = pd.DataFrame(X, columns=["a", "b", "clinic"])
    fitted = SAREMClassifier(propensity_features=["clinic"]).fit(frame, s)
    naive = NaiveClassifier(LogisticRegression()).fit(X, s)
    assert fitted.score(frame, y_true) > naive.score(X, y_true) + 0.1
    found = fitted.predict_propensity(frame)
    assert found[propensity > 0.5].mean() == pytest.approx(0.9, abs=0.12)
    assert found[propensity < 0.5].mean() == pytest.approx(0.25, abs=0.12)
    same = SAREMClassifier(propensity_features=[False, False, True]).fit(X, s)
    assert_array_equal(same.predict_propensity(X), found)


def test_em_that_stops_early_says_so(by_clinic):
    X, _, s, _ = by_clinic
    with pytest.warns(ConvergenceWarning, match="EM had not converged after 2 rounds"):
        fitted = SAREMClassifier(max_iter=2).fit(X, s)
    assert not fitted.converged_


def test_a_constant_propensity_is_the_unbiased_risk(by_clinic):
    """Then 1 / (n e) is the class prior over the number of labelled samples."""
    X, _, s, _ = by_clinic
    own = NNPUClassifier(risk="upu", random_state=0)
    fitted = PropensityWeightedClassifier(0.6, estimator=own).fit(X, s)
    prior = s.mean() / 0.6
    plain = NNPUClassifier(prior, risk="upu", random_state=0).fit(X, s)
    assert fitted.class_prior_ == pytest.approx(prior)
    assert_allclose(fitted.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_the_risk_is_bekkers(by_clinic):
    X, _, s, propensity = by_clinic
    own = NNPUClassifier(risk="upu", kernel="linear")
    fitted = PropensityWeightedClassifier(estimator=own).fit(X, s, propensity)
    g, e = fitted.decision_function(X), propensity
    as_positive, as_negative = np.log1p(np.exp(-g)), np.log1p(np.exp(g))
    known = as_positive / e + (1.0 - 1.0 / e) * as_negative
    risk = np.where(s == 1, known, as_negative).mean()
    coef = fitted.estimator_.coef_
    expected = risk + 0.5 * own.alpha * coef @ coef
    assert fitted.estimator_.objective_ == pytest.approx(expected)


def test_other_classifiers_get_no_negative_weight(by_clinic):
    X, _, s, propensity = by_clinic
    fitted = PropensityWeightedClassifier(estimator=SVC()).fit(X, s, propensity)
    positives = (1.0 / propensity[s == 1]).sum()
    rest = (s.size - positives) / (s == 0).sum()
    weight = np.where(s == 1, 1.0 / propensity, rest)
    by_hand = SVC().fit(X, s, sample_weight=weight)
    # libsvm stops at a tolerance, and sums in another order round differently.
    away = fitted.decision_function(X) - by_hand.decision_function(X)
    assert np.abs(away).max() < 5e-3
    assert weight.sum() == pytest.approx(s.size)
    assert not hasattr(fitted, "predict_proba")


def test_every_way_to_give_the_propensity(by_clinic):
    X, y_true, s, propensity = by_clinic
    own = NNPUClassifier(random_state=0)
    given = PropensityWeightedClassifier(estimator=own).fit(X, s, propensity=propensity)
    naive = NaiveClassifier().fit(X, s)
    assert given.score(X, y_true) > naive.score(X, y_true) + 0.1
    assert given.class_prior_ == pytest.approx(y_true.mean(), abs=0.05)

    def of_rows(rows):
        return np.where(rows[:, 2] > 0.0, 0.9, 0.25)

    called = PropensityWeightedClassifier(of_rows, estimator=own).fit(X, s)
    assert_array_equal(called.decision_function(X), given.decision_function(X))
    # A model of who is labelled among rows that are known to be positive.
    model = LogisticRegression().fit(X[y_true == 1], s[y_true == 1])
    frozen = PropensityWeightedClassifier(FrozenEstimator(model), estimator=own)
    assert frozen.fit(X, s).score(X, y_true) > naive.score(X, y_true) + 0.1
    estimated = PropensityWeightedClassifier(random_state=0).fit(X, s)
    assert estimated.score(X, y_true) > naive.score(X, y_true)


def test_the_propensity_is_routed(by_clinic):
    X, _, s, propensity = by_clinic
    model = PropensityWeightedClassifier(random_state=0)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(), model.set_fit_request(propensity=True)
        )
        scores = cross_validate(
            pipeline, X, s, cv=2, params={"propensity": propensity}, error_score="raise"
        )
    assert scores["test_score"].shape == (2,)


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        (np.full(3, 0.5), r"one value for each of the 800 samples\. Got shape \(3,\)"),
        (np.full(800, 1.2), r"above 0 and at most 1 .* Got 1\.2 to 1\.2"),
        (np.full(800, np.nan), r"above 0 and at most 1 .* Got nan"),
        (np.full(800, 0.01), r"must leave room for negatives: .* Got"),
    ],
)
def test_propensities_that_cannot_be_are_refused(by_clinic, propensity, message):
    X, _, s, _ = by_clinic
    with pytest.raises(ValueError, match=message):
        PropensityWeightedClassifier().fit(X, s, propensity=propensity)
