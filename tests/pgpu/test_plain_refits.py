"""The search against plain refits written with scikit-learn and cvxopt alone."""

from typing import ClassVar

import cvxopt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from probgap import PGPUClassifierCV
from probgap.datasets import hide_labels, make_triangles

GRID = [-0.9, -0.85, -0.8, -0.75, -0.7, -0.65, -0.6]
UPPER = 1000.0


def make_curved(n, rng):
    X = rng.normal(size=(n, 10))
    score = X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1.0)
    y = (score + 0.3 * rng.normal(size=n) > 0.0).astype(int)
    return X, y, np.tanh(2.0 * score)


def draw(name, seed, n=240):
    rng = np.random.default_rng(seed)
    if name == "curved":
        X, y, gap = make_curved(n, rng)
    else:
        X, y, posterior = make_triangles(n, random_state=rng)
        gap = 2.0 * posterior - 1.0
    return X, hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=rng)


def platt(gamma):
    return CalibratedClassifierCV(
        SVC(gamma=gamma),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    )


def match(source, target):
    """Match means; of weights that do it equally well, take those nearest to 1."""
    n, m = len(source), len(target)
    distances = euclidean_distances(target, squared=True)
    width = 1.0 / (2.0 * np.median(distances[np.triu_indices(m, k=1)]))
    ridge = 1e-9 * m
    slack = 1.0 - 1.0 / np.sqrt(n)
    one, row = cvxopt.spmatrix(1.0, range(n), range(n)), cvxopt.matrix(1.0, (1, n))
    band = [n * (1.0 + slack), -n * (1.0 - slack)]
    problem = (
        rbf_kernel(source, gamma=width) + ridge * np.eye(n),
        -n * rbf_kernel(source, target, gamma=width).mean(axis=1) - ridge,
        cvxopt.sparse([-one, one, row, -row]),
        np.hstack([np.zeros(n), np.full(n, UPPER), band]),
    )
    tight = dict.fromkeys(("abstol", "reltol", "feastol"), 1e-12)
    options = {"show_progress": False, **tight}
    solved = cvxopt.solvers.qp(*map(cvxopt.matrix, problem), options=options)
    return np.maximum(np.ravel(solved["x"]), 0.0)


def gap_on(X, s, train, gamma):
    fitted = platt(gamma).fit(X[train], s[train])
    return 2.0 * fitted.predict_proba(X[train])[:, 1] - 1.0


def score(X, s, fold, gap, boundary, gamma):
    train, test = fold
    rows = np.flatnonzero((gap <= boundary) | (gap > 0.0))
    if not (gap <= boundary).any():
        return -np.inf
    positive = gap[rows] > 0.0
    weights = match(X[train][rows], X[train])
    # Samples that count for next to nothing are no samples: gamma="scale" goes by the rest.
    most = np.where(positive, weights[positive].max(), weights[~positive].max())
    used = weights > 1e-3 * most
    machine = SVC(gamma=gamma).fit(
        X[train][rows[used]], positive[used], sample_weight=weights[used]
    )
    return np.mean(machine.predict(X[test]) == (s[test] == 1))


@pytest.mark.parametrize("gamma", ["scale", "auto"])  # by fit, or one for all fits
@pytest.mark.parametrize("name", ["triangles", "curved"])
def test_the_search_finds_what_plain_refits_find(name, gamma):
    X, s = draw(name, 0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, s))
    model = PGPUClassifierCV.paper(
        boundaries=GRID,
        cv=folds,
        gap_estimator__estimator=platt(gamma),
        estimator=SVC(gamma=gamma),
        random_state=0,
    ).fit(X, s)
    gaps = [gap_on(X, s, train, gamma) for train, _ in folds]
    plain = np.array(
        [
            [score(X, s, fold, gap, value, gamma) for value in GRID]
            for fold, gap in zip(folds, gaps, strict=True)
        ]
    )
    means = plain.mean(axis=0)
    assert_allclose(model.cv_results_["mean_test_score"], means, atol=1e-3)
    # The rule of the docstring: of the best, in ascending order, the middle one.
    best = [
        value
        for value, mean in zip(GRID, means, strict=True)
        if mean > means.max() - 1e-9
    ]
    assert model.boundary_.value == best[(len(best) - 1) // 2]


class OwnPlatt(CalibratedClassifierCV):
    """A user's class: what it does with samples is not ours to replace."""

    widths: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.widths.append(X.shape[1])
        return super().fit(X, y)


def test_a_calibration_of_the_users_own_is_fitted_to_samples():
    X, s = draw("curved", 0, n=120)
    gap = OwnPlatt(SVC(gamma="auto"), ensemble=False, cv=3)
    model = PGPUClassifierCV.paper(boundaries=[-0.7], cv=2, random_state=0)
    model.set_params(gap_estimator__estimator=gap, estimator=SVC(gamma="auto"))
    OwnPlatt.widths.clear()
    model.fit(X, s)
    assert OwnPlatt.widths == [10] * 3  # of two folds, and of all samples
