"""The search shares work between boundaries, and finds what plain refits find."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from probgap import PGPUClassifierCV
from probgap._core import svm
from probgap._core.errors import BoundaryWarning
from probgap._core.estimators import fit_on_shares
from probgap._core.svm import rbf_decisions
from probgap.datasets import hide_labels, make_square, make_triangles, platt_gap
from probgap.pgpu import _fold
from probgap.pgpu._algorithm import fit_pgpu
from probgap.pgpu._cv import _middle_of_the_best
from probgap.pgpu._fold import FitOnFold, decides_by_products, shares_a_kernel
from probgap.pgpu._search import score_fold
from probgap.pgpu._steps import Shares, _fit_copies, choose_steps

GRID = np.array([-0.85, -0.8, -0.7, -0.6])


def labelled_data(name, n=300):
    make = {"triangles": make_triangles, "square": make_square}[name]
    X, y, _ = make(n, random_state=1)
    gap = platt_gap(X, y, random_state=3)
    s = hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=2)
    return X, s == s.max()


def accuracy(labelled, predicted):
    return float(np.mean(labelled == predicted))


def score_plainly(model, X, labelled, fold, grid, seed):
    """Refit for every boundary by itself, as the final fit does it."""
    train, test = fold
    scores = []
    for value in grid:
        steps = choose_steps(model, train.size, boundary=float(value))
        rng = np.random.default_rng(seed)
        fitted = fit_pgpu(X[train], labelled[train], steps, rng)
        predicted = fitted.classifier.predict(X[test]) == 1
        scores.append(accuracy(labelled[test], predicted))
    return np.array(scores)


@pytest.mark.parametrize(
    "parameters",
    [
        {"estimator": SVC(gamma="auto")},
        {"estimator": SVC(gamma=0.8, C=3.0)},
        {"estimator": None},
        {"estimator": LogisticRegression()},
        {"relabelling": "expectation"},
        {"relabelling": "theorem", "reweight__upper": 0.7},
        {"reweight": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["triangles", "square"])
def test_the_search_scores_as_plain_refits_do(name, parameters):
    X, labelled = labelled_data(name)
    model = PGPUClassifierCV.paper(**parameters)
    rows = np.arange(len(X))
    fold = (rows[rows % 3 > 0], rows[rows % 3 == 0])
    shared = score_fold(model, accuracy, X, labelled, fold, GRID, 7)
    plain = score_plainly(model, X, labelled, fold, GRID, 7)
    assert_allclose(shared, plain, atol=1e-3)
    assert _middle_of_the_best(shared) == _middle_of_the_best(plain)


def test_a_boundary_that_is_no_use_has_the_least_score():
    X, labelled = labelled_data("square")
    rows = np.arange(len(X))
    fold = (rows[rows % 3 > 0], rows[rows % 3 == 0])
    model = PGPUClassifierCV.paper()
    none_below = np.array([-0.999999, -0.7])
    scores = score_fold(model, accuracy, X, labelled, fold, none_below, 7)
    assert scores[0] == -np.inf
    with pytest.warns(BoundaryWarning, match="Got"):
        score_plainly(model, X, labelled, fold, none_below, 7)


@pytest.mark.parametrize("estimator", [None, SVC(gamma="auto")], ids=str)
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_number_of_jobs_changes_no_bit(backend, estimator):
    X, labelled = labelled_data("triangles")
    models = [
        PGPUClassifierCV.paper(
            estimator=estimator, cv=3, random_state=0, n_jobs=n_jobs, boundaries=GRID
        )
        for n_jobs in (None, 2)
    ]
    with parallel_config(backend=backend):
        for model in models:
            model.fit(X, labelled)
    for key, column in models[0].cv_results_.items():
        assert_array_equal(models[1].cv_results_[key], column)
    assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_folds_that_run_at_once_take_one_thread_each(backend):
    def number_of_threads(_labelled, _predicted):
        return max(library["num_threads"] for library in threadpool_info())

    X, labelled = labelled_data("square")
    model = PGPUClassifierCV.paper(
        boundaries=GRID, cv=6, n_jobs=3, scoring=number_of_threads, random_state=0
    )
    with parallel_config(backend=backend), threadpool_limits(2):
        model.fit(X, labelled)
    assert_array_equal(model.cv_results_["mean_test_score"], 1.0)


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.5, 0.7, 0.7, 0.7, 0.6], 2),  # the middle one
        ([0.5, 0.7, 0.7, 0.6], 1),  # the lower of two
        ([0.7, 0.1, 0.2, 0.7, 0.7], 3),  # which need not be neighbours
        ([0.7, 0.7 + 3e-16, 0.7 - 3e-16], 1),  # whatever the last bits are
        ([7e9, 7e9 + 1e-5, 7e9 - 1e-5], 1),  # in any unit
        ([0.7, 0.7 + 1e-9, 0.7], 1),  # but better is better
        ([-np.inf, -3.0, -np.inf], 1),
        ([-np.inf, -np.inf, -np.inf], 1),
        ([0.3], 0),
    ],
)
def test_of_equally_good_boundaries_the_middle_one_wins(scores, best):
    assert _middle_of_the_best(np.array(scores)) == best


def predict_on(fit, estimator, train, share, weight):
    nobody = np.zeros(share.size, dtype=bool)
    return fit.predict(
        estimator, _fit_copies, Shares(train, share, weight, nobody, None)
    )


@pytest.mark.parametrize("gamma", ["auto", 0.3])
@pytest.mark.parametrize("d", [2, 12])
def test_a_shared_kernel_gives_the_same_predictions(rng, gamma, d, monkeypatch):
    X = rng.normal(size=(400, d))
    share = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(float)
    share[rng.random(400) < 0.2] = np.nan
    weight = np.where(np.isfinite(share), rng.uniform(0.0, 2.0, 400), 0.0)
    train, test = X[:300], X[300:]
    share, weight = share[:300], weight[:300]
    fit = FitOnFold(train, test)
    fast = predict_on(fit, SVC(gamma=gamma), train, share, weight)
    plain = SVC(gamma=gamma)
    fit_on_shares(plain, X[:300], share, weight)
    assert_array_equal(fast, plain.predict(X[300:]) == 1)
    monkeypatch.setattr(_fold, "_MOST_ROWS", 10)
    anew = FitOnFold(train, test)
    assert_array_equal(predict_on(anew, SVC(gamma=gamma), train, share, weight), fast)
    doubtful = np.where(np.isfinite(share), 0.9 * share + 0.05, share)
    found = predict_on(fit, SVC(gamma=gamma), train, doubtful, weight)
    assert found.shape == (100,)


@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("d", [2, 12])
def test_decisions_by_products_are_those_of_libsvm(rng, d, C, monkeypatch):
    X = rng.normal(size=(400, d))
    share = (X[:, 0] ** 2 + 0.5 * rng.normal(size=400) > 0.5).astype(float)
    weight = rng.uniform(0.5, 2.0, 400)
    machine = SVC(C=C)
    fit_on_shares(machine, X[:300], share[:300], weight[:300])
    decision = machine.decision_function(X[300:])
    assert_allclose(rbf_decisions(machine, X[300:]), decision, rtol=0, atol=1e-12 * C)
    monkeypatch.setattr(svm, "_BLOCK_VALUES", 1000)  # a few rows at a time
    assert_allclose(rbf_decisions(machine, X[300:]), decision, rtol=0, atol=1e-12 * C)
    expected = machine.predict(X[300:]) == 1
    for samples in (X, csr_matrix(X)):
        fit = FitOnFold(samples[:300], samples[300:])
        found = predict_on(fit, SVC(C=C), samples[:300], share[:300], weight[:300])
        assert_array_equal(found, expected)


def test_only_an_rbf_machine_of_scikit_learn_decides_by_products():
    X = np.zeros((2, 2))
    assert decides_by_products(SVC(), X)
    assert not decides_by_products(SVC(), csr_matrix(X))
    assert not decides_by_products(SVC(kernel="linear"), X)
    assert not decides_by_products(LogisticRegression(), X)


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
