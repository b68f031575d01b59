"""Bad input gives a sentence; awkward input gives finite predictions."""

import warnings
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.boundary import MeanSmallest, Quantile
from probgap.exceptions import InvalidInputError, ProbgapWarning, UnreliableFitWarning
from probgap.reweight import KernelMeanMatching

MODELS = [
    pytest.param(PGPUClassifier, id="default"),
    pytest.param(partial(PGPUClassifier.paper, strict=False), id="paper"),
    pytest.param(
        lambda **k: PGPUClassifierCV.paper(strict=False, **GRID, **k), id="search"
    ),
]
GRID = {"boundaries": [-0.8, -0.6], "cv": 3}


def blob(n=60, d=2, n_labelled=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[: n // 2] += 2.0
    return X, (np.arange(n) < n_labelled).astype(int)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda X, y: (X, np.zeros_like(y)),
            r"y must hold two classes.*Got one class: \[0\]",
        ),
        (
            lambda X, y: (X, np.ones_like(y)),
            r"y must hold two classes.*Got one class: \[1\]",
        ),
        (
            lambda X, y: (X, np.arange(len(y)) % 3),
            r"y must hold two values.*Got 3 values",
        ),
        (lambda X, y: (X, y[:-1]), r"one label for each of the 60 samples\. Got 59"),
        (lambda X, _: (X, None), r"requires y to be passed"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), r"X contains NaN"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y), r"X contains infinity"),
        (
            lambda X, _: (X, (np.arange(60) == 0).astype(int)),
            r"at least 2 labelled samples\. Got 1",
        ),
        (
            lambda X, _: (X, (np.arange(60) > 0).astype(int)),
            r"at least 2 unlabelled samples\. Got 1",
        ),
        (lambda X, _: (X, np.full(60, np.nan)), r"exactly one value.*Got no value"),
        (lambda X, y: (X, np.where(y == 1, np.inf, 0.0)), r"y contains infinity"),
        (lambda X, y: (X[:, :0], y), r"0 feature"),
        (lambda X, y: (X[:1], y[:1]), r"one class|1 sample"),
        (lambda X, y: (X.ravel(), y), r"Expected 2D array"),
    ],
)
def test_bad_data_is_refused(make, spoil, message):
    with pytest.raises(ValueError, match=message):
        make(random_state=0).fit(*spoil(*blob()))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PGPUClassifier(boundary=0.0), r"boundary must lie in \(-1, 0\)\. Got 0\.0"),
        (PGPUClassifier(boundary=-1.5), r"boundary must lie in \(-1, 0\)\. Got -1\.5"),
        (PGPUClassifier(boundary=np.array([-0.5])), r"boundary must be .* Got array"),
        (PGPUClassifier(boundary="median"), r"boundary must be 'auto', .*Got 'median'"),
        (
            PGPUClassifier(reweight=KernelMeanMatching(upper=-1.0)),
            r"'upper' .* Got -1\.0",
        ),
        (
            PGPUClassifier(
                boundary=-0.7, reweight=KernelMeanMatching(upper=0.5, slack=0.0)
            ),
            r"upper must be at least",
        ),
        (
            PGPUClassifier(reweight=KernelMeanMatching(slack=-0.1)),
            r"'slack' .* Got -0\.1",
        ),
        (
            PGPUClassifier(reweight=KernelMeanMatching(gamma=0.0)),
            r"'gamma' .* Got 0\.0",
        ),
        (PGPUClassifier(reweight=True), r"'reweight' .* Got True"),
        (
            PGPUClassifier(boundary=MeanSmallest(0)),
            r"n_smallest must be an integer of at least 1\. Got 0",
        ),
        (
            PGPUClassifier(boundary=Quantile(2.0)),
            r"quantile must lie in \[0, 1\]\. Got 2\.0",
        ),
        (
            PGPUClassifier(gap_estimator=LogisticRegression(), cv=16),
            r"at least 16 labelled .* each fold\. Got 15",
        ),
        (PGPUClassifierCV(cv=16), r"at least 16 labelled .* each fold\. Got 15"),
        (
            PGPUClassifier(estimator=KNeighborsClassifier()),
            r"must accept sample_weight .* Got KNeighbors",
        ),
        (PGPUClassifier(gap_estimator=SVC()), r"must have predict_proba; .* Got SVC"),
        (PGPUClassifier(gap_estimator="forest"), r"'gap_estimator' .* Got 'forest'"),
        (PGPUClassifier(estimator=3), r"'estimator' .* Got 3"),
        (PGPUClassifier(pos_label=5), r"pos_label must be a value found in y\. Got 5"),
        (PGPUClassifier(random_state="x"), r"random_state must be .* Got 'x'"),
        (PGPUClassifierCV(boundaries=[-0.5, 0.5]), r"boundaries must be .* Got"),
        (PGPUClassifierCV(boundaries=[]), r"boundaries must be .* Got \[\]"),
        (PGPUClassifierCV(boundaries=["a"]), r"boundaries must be .* Got \['a'\]"),
        (
            PGPUClassifierCV(boundaries=[-0.5], scoring=lambda *_: float("nan")),
            r"scoring must return a number\. Got NaN",
        ),
        (PGPUClassifierCV(scoring="f1"), r"'scoring' .* Got 'f1'"),
    ],
)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*blob())


@pytest.mark.parametrize(
    "make",
    [
        *MODELS,
        pytest.param(
            lambda **k: PGPUClassifierCV(**GRID, **k),
            id="search of the default",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize(
    "awkward",
    [
        pytest.param(lambda: blob(n=9, n_labelled=3), id="fewer than ten rows"),
        pytest.param(lambda: blob(n=30, n_labelled=27), id="three unlabelled"),
        pytest.param(lambda: blob(n=40, n_labelled=3), id="three labelled"),
        pytest.param(lambda: blob(d=1), id="one feature"),
        pytest.param(lambda: blob(n=30, d=100), id="more features than rows"),
        pytest.param(lambda: (np.ones((40, 3)), blob(n=40)[1]), id="constant features"),
        pytest.param(
            lambda: (np.repeat(blob(n=10)[0], 6, axis=0), blob()[1]),
            id="duplicate rows",
        ),
        pytest.param(lambda: (blob()[0] * 1e12, blob()[1]), id="huge numbers"),
        pytest.param(lambda: (blob()[0] * 1e-12, blob()[1]), id="tiny numbers"),
        pytest.param(
            lambda: (np.round(blob()[0]), np.arange(60) % 2), id="labels at random"
        ),
    ],
)
def test_awkward_data_gives_finite_predictions(make, awkward):
    X, y = awkward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbgapWarning)
        fitted = make(random_state=0).fit(X, y)
    proba = fitted.predict_proba(X)
    assert np.isfinite(proba).all()
    assert set(fitted.predict(X).tolist()) <= {0, 1}


@pytest.mark.parametrize("make", MODELS[:2])
@pytest.mark.parametrize("n_labelled", [2, 28])
@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_two_of_a_kind_are_enough_without_a_search(make, n_labelled):
    X, y = blob(n=30, n_labelled=n_labelled)
    assert np.isfinite(make(random_state=0).fit(X, y).predict_proba(X)).all()


def test_two_of_a_kind_are_too_few_for_a_search():
    with pytest.raises(ValueError, match=r"at least 3 labelled samples.* Got 2"):
        PGPUClassifierCV().fit(*blob(n_labelled=2))


def test_another_number_of_features_at_predict():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableFitWarning)
        fitted = PGPUClassifier(random_state=0).fit(*blob())
    with pytest.raises(ValueError, match=r"X has 3 features, .* expecting 2"):
        fitted.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict([[np.nan, 0.0]])


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (["red", "blue"], "'red'"),
        (pd.Categorical(["red", "blue"]), "'red'"),
        ([1.0, None], "NaN"),
        (pd.array([1, pd.NA]), "NaN"),
        ([date(2020, 1, 31), date(2020, 2, 1)], "dates"),
    ],
)
def test_a_table_that_is_not_all_numbers_is_sent_to_the_class_that_takes_it(
    column, found
):
    frame = pd.DataFrame({"size": [1.0, 2.0], "team": column})
    expected = rf"X contains {found} in column 'team', .*probgap\.tables\.TableCl"
    with pytest.raises(InvalidInputError, match=expected):
        PGPUClassifier().fit(frame, [0, 1])
