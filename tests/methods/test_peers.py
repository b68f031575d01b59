"""The methods against other people's code, where that is right: run with make peers."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap._core.estimators import fit_on_shares
from probgap.methods import ElkanNotoClassifier, NNPUClassifier, PUBaggingClassifier
from probgap.methods._closed import label_frequency, unlabelled_positive_chance
from probgap.methods._risk import risk_terms


@pytest.fixture
def peer(square):
    """Elkan and Noto's scaling by pulearn, and what it held out."""
    pulearn = pytest.importorskip("pulearn")
    X, _, _, s = square
    base = LogisticRegression()
    fitted = pulearn.ElkanotoPuClassifier(
        clone(base), hold_out_ratio=0.2, random_state=0
    ).fit(np.array(X), np.array(s))
    order = np.arange(s.size)
    np.random.RandomState(0).shuffle(order)
    return fitted, order[: int(np.ceil(0.2 * s.size))]


def test_the_label_frequency_is_that_of_pulearn(square, peer):
    X, _, _, s = square
    fitted, held_out = peer
    chance = fitted.estimator.predict_proba(X[held_out])[:, 1]
    assert label_frequency(chance, s[held_out] == 1, "e1") == pytest.approx(fitted.c)


def test_scaled_probabilities_are_those_of_pulearn_where_these_are_probabilities(
    square, peer
):
    X, _, _, _ = square
    fitted, _ = peer
    ours = ElkanNotoClassifier()
    ours.label_frequency_ = fitted.c
    ours.gap_estimator_ = fitted.estimator
    ours.n_features_in_ = X.shape[1]
    theirs = fitted.predict_proba(X)[:, 1]
    np.testing.assert_allclose(
        0.5 * (1.0 + ours._decide(X)), np.minimum(theirs, 1.0), rtol=1e-12
    )


def test_the_weights_of_unlabelled_samples_are_those_of_pulearn(square):
    pulearn = pytest.importorskip("pulearn")
    X, _, _, s = square
    weighted = pulearn.WeightedElkanotoPuClassifier(
        LogisticRegression(), labeled=0, unlabeled=1, random_state=0
    ).fit(np.array(X), np.array(s))
    proba = weighted.estimator.predict_proba(X)
    for row in np.flatnonzero(s == 0)[:20]:
        # With no labelled sample and one other, its E[y] is the weight of that one.
        theirs = weighted._estimateEy(proba[row : row + 1].copy())
        ours = unlabelled_positive_chance(proba[row, 1:], weighted.c)
        assert ours[0] == pytest.approx(min(theirs, 1.0))


# --- risks --------------------------------------------------------------------------------
# Peers take the class prior for the share of positives in the unlabelled part, a sample
# apart from the labelled one. Ours is of the whole table, whose labelled rows are part of
# it: the same as theirs with all rows as the unlabelled part.


def test_the_risk_is_that_of_pu_toolbox_with_all_rows_unlabelled(square):
    losses = pytest.importorskip("pu_toolbox.losses.upu")
    X, _, _, s = square
    fitted = NNPUClassifier(0.5, risk="upu", random_state=0).fit(X, s)
    g = fitted.decision_function(X)
    theirs = losses.UPULoss("logistic")(g[s == 1], g, class_prior=0.5)
    penalty = 0.5 * fitted.alpha * fitted.coef_ @ fitted.coef_
    assert fitted.objective_ == pytest.approx(theirs + penalty)


@pytest.mark.parametrize("bounded", [False, True])
def test_no_higher_risk_than_by_the_gradient_descent_of_pulearn(bounded):
    pulearn = pytest.importorskip("pulearn")
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    X = rng.normal(size=(400, 2)) + 1.5 * y[:, None]
    s = y & (rng.random(400) < 0.5)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = NNPUClassifier(
        0.4,
        risk="nnpu" if bounded else "upu",
        loss="sigmoid",
        kernel="linear",
        alpha=1e-6,
    ).fit(X, s)
    how = {"nnpu": bounded, "max_iter": 5000, "learning_rate": 1.0, "random_state": 0}
    both, known = np.vstack([X[s], X]), np.repeat([1, 0], [s.sum(), s.size])
    theirs = pulearn.NNPUClassifier(prior=0.4, **how).fit(both, known)

    def risk(g):
        terms = risk_terms(g, np.where(s, 0.4 / s.sum(), 0.0), "sigmoid")
        negative = max(terms.negative, 0.0) if bounded else terms.negative
        return terms.positive + negative

    mine, other = ours.decision_function(X), theirs.decision_function(X)
    # Where the bound is active theirs steps back and forth across it.
    assert risk(mine) <= risk(other) + 1e-3
    assert ((mine > 0) == (other > 0)).mean() > 0.95


# --- bagging, Elkan and Noto --------------------------------------------------------------


def test_bagging_ranks_as_pulearn_does(square):
    """Theirs draws as many of both kinds, ours keeps all labelled; out of bag, too."""
    pulearn = pytest.importorskip("pulearn")
    X, _, _, s = square
    ours = PUBaggingClassifier(LogisticRegression(), random_state=0).fit(X, s)
    theirs = pulearn.BaggingPuClassifier(
        LogisticRegression(), n_estimators=100, random_state=0
    ).fit(np.array(X), np.array(s))
    mine, other = ours.decision_function(X), theirs.predict_proba(X)[:, 1]
    assert spearmanr(mine, other).statistic > 0.99


@pytest.mark.parametrize("form", ["scaling", "weighted"])
def test_elkan_noto_is_that_of_pu_toolbox_given_the_label_frequency(square, form):
    """Theirs estimates c on three folds, ours on a fifth: so ours is told theirs."""
    toolbox = pytest.importorskip("pu_toolbox.estimators.classic.elkan_noto")
    X, _, _, s = square
    modes = {"scaling": "probability_correction", "weighted": "weighted_retraining"}
    theirs = toolbox.ElkanNotoClassifier(
        LogisticRegression(), mode=modes[form], random_state=0
    ).fit(np.array(X), np.array(s))
    frequency = theirs.propensity_
    chance = LogisticRegression().fit(X, s).predict_proba(X)[:, 1]
    expected = theirs.predict_proba(X)[:, 1]
    if form == "scaling":
        ours = chance / frequency
    else:
        share = unlabelled_positive_chance(chance, frequency)
        share[s == 1] = 1.0
        final = LogisticRegression()
        fit_on_shares(final, X, share, np.ones(s.size))
        ours = final.predict_proba(X)[:, 1]
    np.testing.assert_allclose(ours, expected, atol=0.01)
