"""What fit warns of: the code, the number, what to do; silence where all is well."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.datasets import hide_labels, make_square, make_triangles
from probgap.exceptions import BoundaryWarning, ProbgapWarning, UnreliableFitWarning
from probgap.gap import ObservedGapEstimator

MOST = np.arange(30) < 25
QUICK = {"boundaries": [-0.8, -0.6], "cv": 3, "random_state": 0}


def doubts_of(fit, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(*arguments)
    kind = UnreliableFitWarning
    return {
        w.message.code: str(w.message) for w in caught if issubclass(w.category, kind)
    }


def by_a_coin(n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng.random(n) < 0.3


@pytest.mark.parametrize(
    ("make", "rate"),
    [
        (make_triangles, ("inverse", 0.3, 0.5)),
        (make_square, ("linear", 1.0)),
        (make_triangles, ("constant", 0.6)),
    ],
)
def test_nothing_is_said_where_all_is_well(make, rate):
    X, y, posterior = make(600, random_state=0)
    s = hide_labels(X, y, 2 * posterior - 1, rate, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreliableFitWarning)
        PGPUClassifier(random_state=0).fit(X, s)


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(random_state=0),
        PGPUClassifier(gap_estimator=ObservedGapEstimator(), random_state=0),
        PGPUClassifierCV(**QUICK),
    ],
    ids=["default", "platt", "cv"],
)
def test_labels_that_do_not_look_at_samples_are_noticed(model):
    found = doubts_of(model.fit, *by_a_coin(400, 1))
    assert "standard errors" in found["indistinct"]
    assert "heck the label" in found["indistinct"]


def test_a_handful_of_labels_is_told():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=400) > 1.2
    few = np.isin(np.arange(400), np.flatnonzero(y)[:6])
    found = doubts_of(PGPUClassifier(random_state=0).fit, X, few)
    assert "Only 6 positives are labelled" in found["few"]


def test_warnings_point_at_the_call_of_fit_and_survive_a_pickle():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PGPUClassifier(random_state=0).fit(*by_a_coin(200, 0))
        PGPUClassifier(boundary=-0.9, random_state=0).fit(np.ones((30, 2)), MOST)
        make_pipeline(PGPUClassifier.paper(strict=False, random_state=0)).fit(
            *by_a_coin(200, 0)
        )
    assert {w.filename for w in caught} == {__file__}
    kinds = {w.category for w in caught}
    assert kinds == {UnreliableFitWarning, BoundaryWarning, ProbgapWarning}
    ours = [w for w in caught if issubclass(w.category, UnreliableFitWarning)]
    copy = pickle.loads(pickle.dumps(ours[0].message))
    assert (str(copy), copy.code) == (str(ours[0].message), ours[0].message.code)
