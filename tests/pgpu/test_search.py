"""The search shares work between boundaries, and finds what plain refits find."""

from typing import ClassVar

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.datasets import hide_labels, make_square, make_triangles, platt_gap
from probgap.exceptions import BoundaryWarning, InvalidInputError

GRID = np.array([-0.85, -0.8, -0.7, -0.6])


def make_curved(n, random_state):
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, 10))
    score = X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1.0) + 0.3 * rng.normal(size=n)
    return X, (score > 0.0).astype(int), None


MAKE = {"triangles": make_triangles, "square": make_square, "curved": make_curved}


def labelled_data(name, n=300):
    X, y, _ = MAKE[name](n, random_state=1)
    gap = platt_gap(X, y, random_state=3)
    return X, hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=2)


def one_fold(n):
    rows = np.arange(n)
    return rows[rows % 3 > 0], rows[rows % 3 == 0]


def with_fixed_folds(**parameters):
    """Leave nothing to chance: the folds of Platt scaling are the same in every fit."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    platt = CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False, cv=folds)
    return {"gap_estimator__estimator": platt, "random_state": 0, **parameters}


def score_plainly(X, s, fold, grid, **parameters):
    """Refit for every boundary by itself."""
    train, test = fold
    scores = []
    for value in grid:
        model = PGPUClassifier.paper(
            boundary=float(value), **with_fixed_folds(**parameters)
        )
        scores.append(model.fit(X[train], s[train]).score(X[test], s[test]))
    return np.array(scores)


def search(X, s, grid=GRID, **parameters):
    return PGPUClassifierCV.paper(
        boundaries=grid, cv=[one_fold(s.size)], **with_fixed_folds(**parameters)
    ).fit(X, s)


@pytest.mark.parametrize(
    "parameters",
    [
        {"estimator": SVC(gamma="auto")},
        {"estimator": SVC(gamma=0.8, C=3.0)},
        {"estimator": SVC(C=30.0)},
        {"estimator": SVC(gamma="auto", class_weight="balanced")},
        {"estimator": SVC(kernel="linear")},
        {"estimator": None},
        {"estimator": LogisticRegression()},
        {"relabelling": "expectation"},
        {"relabelling": "expectation", "estimator": SVC(gamma="auto")},
        {"relabelling": "theorem", "reweight__upper": 0.7},
        {"reweight": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["square", "curved"])
def test_the_search_scores_as_plain_refits_do(name, parameters):
    X, s = labelled_data(name)
    shared = search(X, s, **parameters)
    plain = score_plainly(X, s, one_fold(s.size), GRID, **parameters)
    assert_allclose(shared.cv_results_["mean_test_score"], plain, atol=1e-3)


@pytest.mark.parametrize("estimator", [SVC(), SVC(gamma="auto")], ids=str)
def test_sparse_rows_are_scored_as_plain_refits_do(estimator):
    X, s = labelled_data("curved")
    X = csr_matrix(X)
    shared = search(X, s, estimator=estimator)
    plain = score_plainly(X, s, one_fold(s.size), GRID, estimator=estimator)
    assert_allclose(shared.cv_results_["mean_test_score"], plain, atol=1e-3)


def test_a_boundary_that_is_no_use_has_the_least_score():
    X, s = labelled_data("square")
    none_below = [-0.999999, -0.7]
    assert search(X, s, none_below).cv_results_["mean_test_score"][0] == -np.inf
    with pytest.raises(InvalidInputError, match="leaves no negative to train on"):
        score_plainly(X, s, one_fold(s.size), none_below[:1])
    with pytest.warns(BoundaryWarning, match="leave negatives"):
        score_plainly(X, s, one_fold(s.size), none_below[:1], strict=False)


@pytest.mark.parametrize("estimator", [None, SVC(gamma="auto")], ids=str)
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_number_of_jobs_changes_no_bit(backend, estimator):
    X, s = labelled_data("triangles")
    models = [
        PGPUClassifierCV.paper(
            estimator=estimator, cv=3, random_state=0, n_jobs=n_jobs, boundaries=GRID
        )
        for n_jobs in (None, 2)
    ]
    with parallel_config(backend=backend):
        for model in models:
            model.fit(X, s)
    for key, column in models[0].cv_results_.items():
        assert_array_equal(models[1].cv_results_[key], column)
    assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_folds_that_run_at_once_take_one_thread_each(backend):
    def number_of_threads(_labelled, _predicted):
        return max(library["num_threads"] for library in threadpool_info())

    X, s = labelled_data("square")
    model = PGPUClassifierCV.paper(
        boundaries=GRID, cv=6, n_jobs=3, scoring=number_of_threads, random_state=0
    )
    with parallel_config(backend=backend), threadpool_limits(2):
        model.fit(X, s)
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
    X, s = labelled_data("square")
    grid = np.linspace(-0.9, -0.4, len(scores))
    given = iter(scores)
    model = search(X, s, grid, scoring=lambda *_: next(given))
    assert_array_equal(model.cv_results_["mean_test_score"], scores)
    assert model.boundary_.value == grid[best]


class OwnPlatt(CalibratedClassifierCV):
    """A user's class: what it does with samples is not ours to replace."""

    widths: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.widths.append(X.shape[1])
        return super().fit(X, y)


def test_a_calibration_of_the_users_own_is_fitted_to_samples():
    X, s = labelled_data("curved", n=120)
    gap = OwnPlatt(SVC(gamma="auto"), ensemble=False, cv=3)
    search(X, s, [-0.7], gap_estimator__estimator=gap, estimator=SVC(gamma="auto"))
    assert OwnPlatt.widths == [10] * 2  # of the fold, and of all samples
