"""PGlin, spies and Kato's quantile: by hand, and where their assumption holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from probgap.datasets import hide_labels, make_square
from probgap.exceptions import ProbgapWarning
from probgap.gap import MixedGapEstimator
from probgap.methods import (
    NaiveClassifier,
    PGlinClassifier,
    PUSBClassifier,
    SpyClassifier,
)


class Oracle(ClassifierMixin, BaseEstimator):
    """Takes the first column for P(s=1 | x)."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0.5).astype(int)]


@pytest.fixture(scope="module")
def easy_first():
    """The square, the easy positives labelled first: X, y_true, s."""
    X, y_true, posterior = make_square(800, random_state=0)
    gap = 2.0 * posterior - 1.0
    return X, y_true, hide_labels(X, y_true, gap, ("linear", 0.9), random_state=1)


def test_pglin_is_exact_where_the_propensity_is_linear_in_the_posterior():
    posterior = np.linspace(0.0, 1.0, 41)
    # e = 0.6 P(Y=1 | x), so P(s=1 | x) = 0.6 P(Y=1 | x)**2, whose maximum is 0.6.
    X = (0.6 * posterior**2)[:, None]
    fitted = PGlinClassifier(gap_estimator=Oracle()).fit(X, np.arange(41) > 30)
    assert fitted.largest_ == pytest.approx(0.6)
    assert_allclose(fitted.predict_proba(X)[:, 1], posterior, atol=1e-12)
    assert_allclose(fitted.predict_propensity(X), 0.6 * posterior, atol=1e-12)
    assert_array_equal(fitted.predict(X), posterior > 0.5)
    # Beyond the maximum of the training samples the probability is 1.
    assert fitted.predict_proba([[0.9]])[0, 1] == 1.0


def test_spies_by_hand():
    # Scores are the column itself. Of 20 labelled samples 4 are spies, and a quarter of
    # them, one, may score below the threshold.
    X = np.concatenate([np.linspace(0.5, 0.9, 20), np.linspace(0.05, 0.95, 30)])[
        :, None
    ]
    s = np.arange(50) < 20
    model = SpyClassifier(
        Oracle(), LogisticRegression(), spy_share=0.2, noise=0.25, random_state=0
    )
    fitted = model.fit(X, s)
    spies = np.random.default_rng(0).choice(20, 4, replace=False)
    score = 2.0 * X[:, 0] - 1.0
    assert fitted.threshold_ == np.sort(score[spies])[1]
    assert_array_equal(fitted.reliable_negative_, ~s & (score < fitted.threshold_))
    used = s | fitted.reliable_negative_
    by_hand = LogisticRegression().fit(X[used], s[used])
    assert_allclose(fitted.decision_function(X), by_hand.decision_function(X))


def test_a_threshold_below_all_unlabelled_samples_is_moved():
    X = np.concatenate([np.full(8, 0.1), np.linspace(0.2, 0.9, 12)])[:, None]
    s = np.arange(20) < 8
    with pytest.warns(
        ProbgapWarning, match="No unlabelled sample scores below the spies"
    ):
        fitted = SpyClassifier(Oracle(), random_state=0).fit(X, s)
    assert_array_equal(np.flatnonzero(fitted.reliable_negative_), [8, 9, 10])


@pytest.mark.parametrize("prior", [0.3, 0.5])
def test_kato_calls_as_many_positive_as_the_prior_says(prior):
    # The oracle learns nothing, so that held-out scores are the scores.
    X = np.random.default_rng(0).permutation(np.linspace(0.01, 0.99, 200))[:, None]
    s = (X[:, 0] > 0.8).astype(int)
    fitted = PUSBClassifier(prior, gap_estimator=Oracle(), random_state=0).fit(X, s)
    assert fitted.predict(X).mean() == prior
    assert_array_equal(fitted.predict(X) == 1, X[:, 0] > np.quantile(X, 1.0 - prior))
    assert fitted.class_prior_ == prior
    assert fitted.estimate_ is None


def test_kato_takes_the_prior_from_a_reading_and_any_score(easy_first):
    X, y_true, s = easy_first
    for gap in (None, LogisticRegression(), MixedGapEstimator()):
        fitted = PUSBClassifier(gap_estimator=gap, random_state=0).fit(X[:400], s[:400])
        assert fitted.class_prior_ == fitted.estimate_.class_prior
        assert fitted.predict(X).mean() == pytest.approx(fitted.class_prior_, abs=0.05)
        assert fitted.score(X, y_true) > 0.85


def test_kato_calls_no_more_positive_where_classes_are_far_apart():
    rng = np.random.default_rng(0)
    y_true = rng.random(2000) < 0.3
    X = rng.normal(size=(2000, 2)) + 8.0 * y_true[:, None]
    fitted = PUSBClassifier(gap_estimator=MixedGapEstimator(), random_state=0)
    assert fitted.fit(X, y_true).predict(X).mean() == pytest.approx(0.3, abs=0.02)


def test_each_beats_naive_where_its_assumption_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    posterior = expit(3.0 * X[:, 0])
    y_true = (rng.random(800) < posterior).astype(int)
    chance = rng.random(800)
    for model, propensity, gain in (
        (PGlinClassifier(), 0.6 * posterior, 0.05),
        (PUSBClassifier(0.5), 0.6 * posterior, 0.05),
        (SpyClassifier(), np.full(800, 0.4), 0.1),
    ):
        s = y_true * (chance < propensity)
        naive = NaiveClassifier().fit(X, s).score(X, y_true)
        fitted = model.set_params(random_state=0).fit(X, s)
        assert fitted.score(X, y_true) > naive + gain
