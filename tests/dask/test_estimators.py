"""Classifiers made for dask are fitted on all rows: the answer is that of one machine."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from probgap.boundary import Quantile
from probgap.dask import PGPUClassifier
from probgap.exceptions import InvalidInputError
from probgap.reweight import KernelMeanMatching

CLOSE = 1e-7


class OnBlocks(ClassifierMixin, BaseEstimator):
    """A logistic regression as dask estimators are, but for its gathering rows.

    Plain arrays are taken as well, so that one machine can be asked, too.
    """

    def __init__(self, C=1.0, random_state=None):
        self.C = C
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.sizes_ = [] if isinstance(X, np.ndarray) else list(X.chunks[0])
        X, y, weight = dask.compute(X, y, sample_weight)
        self.n_rows_, self.weights_ = len(X), weight
        self.regression_ = LogisticRegression(C=self.C, tol=1e-12, max_iter=2000)
        self.regression_.fit(X, y, sample_weight=weight)
        self.classes_ = self.regression_.classes_
        return self

    def predict_proba(self, X):
        if isinstance(X, np.ndarray):
            return self.regression_.predict_proba(X)
        chunks = (X.chunks[0], (2,))
        return X.map_blocks(self.regression_.predict_proba, dtype=float, chunks=chunks)

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class WithLocalForm(OnBlocks):
    """As those of LightGBM."""

    def to_local(self):
        return self.regression_


class OtherBlocks(OnBlocks):
    """Gives probabilities in blocks of its own."""

    def predict_proba(self, X):
        found = super().predict_proba(X)
        return found if isinstance(X, np.ndarray) else found.rechunk((123, 1))


class OneColumn(OnBlocks):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1:]


class Gathering(OnBlocks):
    """Brings all rows to one machine."""

    def predict_proba(self, X):
        return np.asarray(super().predict_proba(X))


def classifier(**parameters):
    return PGPUClassifier(**{"random_state": 7, "cv": 3, **parameters})


def as_blocks(X, s, chunks):
    return da.from_array(X, chunks=(chunks, 2)), da.from_array(s, chunks=400)


def on_one_machine(model, X, s):
    model.seed_ = 7
    return model.on_one_machine().fit(X, s)


def assert_same_answer(model, one, X, close=CLOSE):
    assert_allclose(model.model_.observed_gap_, one.observed_gap_, atol=close)
    assert model.boundary_.value == pytest.approx(one.boundary_.value, abs=close)
    count, other = model.reading_.n_hidden, one.reading_.n_hidden
    assert count == pytest.approx(other, rel=10 * close)
    blocks = da.from_array(X, chunks=(600, 2))
    expected = one.predict_proba(X)
    assert_allclose(model.predict_proba(blocks).compute(), expected, atol=close)
    assert_allclose(
        model.model_.gap_estimator_.predict_proba(X),
        one.gap_estimator_.predict_proba(X),
        atol=close,
    )


@pytest.fixture(scope="module")
def one_of_both(table):
    X, _, s = table
    model = classifier(gap_estimator=OnBlocks(C=0.5), estimator=OnBlocks())
    return on_one_machine(model, X, s)


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.sets(st.integers(1, 1499), max_size=7), kept=st.booleans())
def test_blocks_do_not_change_the_answer(table, one_of_both, cuts, kept):
    X, _, s = table
    edges = [0, *sorted(cuts), s.size]
    kind = OnBlocks if kept else WithLocalForm
    model = classifier(gap_estimator=kind(C=0.5), estimator=kind())
    model.fit(*as_blocks(X, s, tuple(np.diff(edges).tolist())))
    assert_same_answer(model, one_of_both, X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"estimator": OnBlocks(), "gap_estimator": OtherBlocks()},
        {"estimator": OnBlocks(), "boundary": -0.6},
        {"estimator": OnBlocks(), "relabelling": "theorem", "cv": None},
        {"estimator": OnBlocks(), "boundary": Quantile(0.1), "keep_labelled": False},
        {"boundary": -0.6},
        {"estimator": LogisticRegression()},
    ],
    ids=["other blocks", "fixed", "theorem", "by the gap", "gap alone", "own final"],
)
def test_the_answer_is_that_of_one_machine(table, parameters):
    X, _, s = table
    model = classifier(**{"gap_estimator": OnBlocks(), **parameters})
    one = on_one_machine(model, X, s)
    model.fit(*as_blocks(X, s, (400, 700, 400)))
    assert_same_answer(model, one, X)
    if isinstance(model.estimator, OnBlocks):
        final, theirs = model.model_.estimator_, one.estimator_
        assert final.random_state == theirs.random_state is not None
        assert final.n_rows_ == theirs.n_rows_
        assert final.weights_.sum() == pytest.approx(theirs.weights_.sum())
        assert all(final.sizes_)


def test_all_rows_are_used_though_few_are_drawn(table):
    X, _, s = table
    model = classifier(
        gap_estimator=OnBlocks(), estimator=OnBlocks(), max_memory=8 * 4 * 900
    )
    model.fit(*as_blocks(X, s, (400, 700, 400)))
    assert model.sample_rows_.size == 900
    assert model.model_.gap_estimator_.estimator_.n_rows_ == 1500
    assert model.model_.estimator_.n_rows_ >= 1500
    whole = on_one_machine(model, X, s)
    rows = model.sample_rows_
    assert_allclose(model.model_.observed_gap_, whole.observed_gap_[rows], atol=CLOSE)
    assert (model.model_.predict(X) == whole.predict(X)).mean() > 0.97


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_a_pair_of_labels_is_not_held_out(table):
    X, _, s = table
    two = np.isin(np.arange(s.size), np.flatnonzero(s)[:2]).astype(int)
    model = classifier(gap_estimator=OnBlocks(), estimator=OnBlocks(), cv=None)
    model.fit(*as_blocks(X, two, (400, 700, 400)))
    one = model.on_one_machine().set_params(gap_estimator__cv=None).fit(X, two)
    assert_allclose(model.model_.observed_gap_, one.observed_gap_, atol=CLOSE)


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_labelled_rows_stay_where_no_gap_is_above_0(table):
    X, _, s = table
    few = s & (np.arange(s.size) % 5 == 0)
    model = classifier(
        gap_estimator=OnBlocks(),
        estimator=OnBlocks(),
        boundary=-0.8,
        keep_labelled=False,
    )
    one = on_one_machine(model, X, few)
    model.fit(*as_blocks(X, few, (400, 700, 400)))
    assert_same_answer(model, one, X)


def test_dataframes_words_and_empty_blocks(table):
    X, _, s = table
    names = list("abcd")
    frame = pd.DataFrame(X.astype(np.float32), columns=names)
    frame["flag"] = np.where(s == 1, "a", "b")
    blocks = dd.from_pandas(frame, npartitions=3)
    blocks = dd.concat([blocks, blocks.map_partitions(lambda part: part.iloc[:0])])
    model = classifier(
        gap_estimator=WithLocalForm(), estimator=WithLocalForm(), pos_label="a"
    )
    model.fit(blocks[names], blocks["flag"])
    plain = classifier(gap_estimator=WithLocalForm(), estimator=WithLocalForm())
    plain.fit(*as_blocks(X.astype(np.float32), s, (500, 500, 500)))
    predicted = model.predict(blocks[names])
    assert isinstance(predicted, dd.Series)
    expected = plain.model_.predict(X.astype(np.float32)) == 1
    assert_array_equal(np.asarray(predicted.compute()) == "a", expected)
    assert_array_equal(model.model_.feature_names_in_, names)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"estimator": OnBlocks()},
            r"estimator must come with a gap_estimator made for dask",
        ),
        (
            {
                "gap_estimator": OnBlocks(),
                "estimator": OnBlocks(),
                "reweight": KernelMeanMatching(),
            },
            r"reweight must be None with an estimator made for dask",
        ),
        (
            {"gap_estimator": OnBlocks(), "cv": [([0], [1])]},
            r"cv must be an integer or None with a gap_estimator made for dask",
        ),
        ({"gap_estimator": OnBlocks(), "cv": 1000}, r"at least 1000 labelled"),
        ({"gap_estimator": OneColumn()}, r"two probabilities for each row.*\(\d+, 1\)"),
        (
            {"gap_estimator": Gathering()},
            r"must return a dask array from predict_proba .* Got ndarray",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(table, parameters, message):
    X, _, s = table
    with pytest.raises(InvalidInputError, match=message):
        classifier(**parameters).fit(*as_blocks(X, s, (400, 700, 400)))


def test_the_given_estimators_are_not_changed(table):
    X, _, s = table
    own = OnBlocks(), OnBlocks(C=2.0)
    classifier(gap_estimator=own[0], estimator=own[1]).fit(*as_blocks(X, s, (750, 750)))
    for each in own:
        assert each.random_state is None
        assert not hasattr(each, "regression_")


@pytest.fixture(params=[1, 2])
def workers_of_xgboost(request):
    """Give a number of workers that run."""
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    with (
        dask.config.set({"scheduler": None}),
        LocalCluster(
            n_workers=request.param, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        yield request.param


def test_xgboost_on_workers_is_as_right_as_in_memory(workers_of_xgboost):
    """One worker makes the trees of memory; several cut features by sketches of each."""
    from xgboost import XGBClassifier  # noqa: PLC0415 (may be absent)
    from xgboost.dask import DaskXGBClassifier  # noqa: PLC0415

    X, y_true, posterior, s = steps(6000)
    own = DaskXGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.2)
    model = PGPUClassifier(gap_estimator=own, estimator=own, random_state=0)
    blocks = da.from_array(X, chunks=(1000, 4))
    model.fit(blocks, da.from_array(s, chunks=1000))
    one = model.on_one_machine()
    assert isinstance(one.estimator, XGBClassifier)
    one.fit(X, s)
    assert isinstance(model.model_.estimator_, XGBClassifier)
    assert isinstance(model.model_.gap_estimator_.estimator_, XGBClassifier)
    gap, predicted = model.model_.observed_gap_, model.predict(blocks).compute()
    assert_array_equal(predicted, model.model_.predict(X))
    if workers_of_xgboost == 1:
        assert_array_equal(gap, one.observed_gap_)
        assert model.boundary_ == one.boundary_
    assert np.abs(gap - one.observed_gap_).mean() < 0.05
    assert model.boundary_.value == pytest.approx(one.boundary_.value, abs=0.03)
    # The final classifier gets its rows in another order, which moves cuts, too.
    assert np.mean(predicted == one.predict(X)) > 0.98
    best = np.mean((posterior > 0.5) == y_true)
    assert np.mean(predicted == y_true) > best - 0.01


def steps(n, seed=0):
    """Draw classes by steps of three features among four."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = np.where(X > [0.2, -0.3, 0.5, 0.0], [2.0, 1.5, 1.0, 0.0], -1.0).sum(axis=1)
    posterior = 1.0 / (1.0 + np.exp(-score))
    y = rng.random(n) < posterior
    s = y & (rng.random(n) < 0.7 * posterior)
    return X, y.astype(int), posterior, s.astype(int)
