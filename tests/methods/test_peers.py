"""The methods against other people's code, where that is right: run with make peers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap.methods import ElkanNotoClassifier
from probgap.methods._closed import label_frequency, unlabelled_positive_chance


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
