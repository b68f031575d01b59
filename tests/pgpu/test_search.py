"""The search shares work between boundaries, and finds what plain refits find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from probgap import PGPUClassifierCV
from probgap._core.estimators import fit_on_shares
from probgap.datasets import hide_labels, make_square, make_triangles, platt_gap
from probgap.pgpu import _fold
from probgap.pgpu._cv import _middle_of_the_best
from probgap.pgpu._fold import FitOnFold, shares_a_kernel
from probgap.pgpu._search import predict_with, score_fold

GRID = np.array([-0.85, -0.8, -0.7, -0.6])


def labelled_data(name, n=300):
    make = {"triangles": make_triangles, "square": make_square}[name]
    X, y, _ = make(n, random_state=1)
    s = hide_labels(X, y, platt_gap(X, y), ("inverse", 0.2, 1.0), random_state=2)
    return X, s == s.max()


def accuracy(labelled, predicted):
    return float(np.mean(labelled == predicted))


@pytest.mark.parametrize(
    "estimator", [SVC(gamma="auto"), SVC(gamma=0.8, C=3.0), SVC(), LogisticRegression()]
)
@pytest.mark.parametrize("name", ["triangles", "square"])
def test_the_search_scores_as_plain_refits_do(name, estimator):
    X, labelled = labelled_data(name)
    model = PGPUClassifierCV.paper(estimator=estimator)
    rows = np.arange(len(X))
    fold = (rows[rows % 3 > 0], rows[rows % 3 == 0])
    shared = score_fold(model, accuracy, X, labelled, fold, GRID, 7)
    rng = np.random.default_rng(7)
    gap = model._fit_gap(X[fold[0]], labelled[fold[0]], rng).observed_gap_
    predictions = [
        predict_with(model, value, gap, X, labelled, fold, rng) for value in GRID
    ]
    plain = np.array(
        [
            -np.inf if predicted is None else accuracy(labelled[fold[1]], predicted)
            for predicted in predictions
        ]
    )
    assert np.isfinite(shared).any()
    assert_allclose(shared, plain, atol=1e-3)
    assert _middle_of_the_best(shared) == _middle_of_the_best(plain)


def test_the_number_of_jobs_changes_no_bit():
    X, labelled = labelled_data("triangles")
    tables = [
        PGPUClassifierCV.paper(
            estimator=SVC(gamma="auto"), cv=3, random_state=0, n_jobs=n_jobs
        )
        .fit(X, labelled)
        .cv_results_
        for n_jobs in (None, 2)
    ]
    for key, column in tables[0].items():
        assert_array_equal(tables[1][key], column)


@pytest.mark.parametrize("gamma", ["auto", 0.3])
@pytest.mark.parametrize("d", [2, 12])
def test_a_shared_kernel_gives_the_same_predictions(rng, gamma, d, monkeypatch):
    X = rng.normal(size=(400, d))
    share = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(float)
    share[rng.random(400) < 0.2] = np.nan
    weight = np.where(np.isfinite(share), rng.uniform(0.0, 2.0, 400), 0.0)
    fold = (np.arange(300), np.arange(300, 400))
    share, weight = share[:300], weight[:300]
    fit = FitOnFold(X, fold)
    fast = fit.predict(SVC(gamma=gamma), share, weight)
    plain = SVC(gamma=gamma)
    fit_on_shares(plain, X[:300], share, weight)
    assert_array_equal(fast, plain.predict(X[300:]) == 1)
    monkeypatch.setattr(_fold, "_MOST_ROWS", 10)
    assert_array_equal(
        FitOnFold(X, fold).predict(SVC(gamma=gamma), share, weight), fast
    )
    doubtful = np.where(np.isfinite(share), 0.9 * share + 0.05, share)
    assert fit.predict(SVC(gamma=gamma), doubtful, weight).shape == (100,)


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        SVC(kernel="linear"),
        SVC(gamma="auto", class_weight="balanced"),
        LogisticRegression(),
    ],
)
def test_other_estimators_are_fitted_the_plain_way(estimator):
    assert not shares_a_kernel(estimator)
