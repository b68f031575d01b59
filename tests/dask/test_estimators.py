"""Classifiers of one's own on blocks: the answer is that of one machine."""

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
from sklearn.svm import LinearSVC

from probgap._core.estimators import fit_on_shares, round_shares
from probgap.boundary import BoundaryWarning
from probgap.dask import PGPUClassifier, _stages
from probgap.dask._table import open_table
from probgap.dask._values import BlockValues
from probgap.dask._wrapped import fit_on_blocks
from probgap.exceptions import InvalidInputError, UnreliableFitWarning

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
    """Gives chances in blocks of its own."""

    def predict_proba(self, X):
        found = super().predict_proba(X)
        return found if isinstance(X, np.ndarray) else found.rechunk((123, 1))


class OneColumn(OnBlocks):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1:]


def classifier(**parameters):
    return PGPUClassifier(
        **{"kernel_features": 40, "random_state": 7, "cv": 3, **parameters}
    )


def as_blocks(X, s, chunks):
    return da.from_array(X, chunks=(chunks, 2)), da.from_array(s, chunks=400)


def assert_same_answer(model, one, X, close=CLOSE):
    blocks = da.from_array(X, chunks=(600, 2))
    assert_allclose(model.observed_gap_.compute(), one.observed_gap_, atol=close)
    ours, theirs = model.boundary_, one.boundary_
    assert (ours.rule, ours.names) == (theirs.rule, theirs.names)
    for name in ("value", "spread", "separability", "candidates", "scores"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=close)
    for name in ("n_negative", "n_undecided", "n_positive"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("class_prior", "labelling_rate"):
        for end in ("", "interval_"):
            what = f"estimated_{name}_{end}"
            assert_allclose(getattr(model, what), getattr(one, what), atol=close)
            assert getattr(model.model_, what) == getattr(model, what)
    for method in ("predict_proba", "decision_function"):
        expected = getattr(one, method)(X)
        assert_allclose(getattr(model.model_, method)(X), expected, atol=close)
        lazy = getattr(model, method)(blocks)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == expected.shape
        assert_allclose(lazy.compute(), expected, atol=close)
    clear = np.abs(one.decision_function(X)) > close
    assert_array_equal(model.predict(blocks).compute()[clear], one.predict(X)[clear])
    assert_array_equal(model.model_.predict(X)[clear], one.predict(X)[clear])
    assert_allclose(
        model.model_.gap_estimator_.predict_proba(X),
        one.gap_estimator_.predict_proba(X),
        atol=close,
    )


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.sets(st.integers(1, 1499), max_size=9), kept=st.booleans())
def test_blocks_do_not_change_the_answer(table, one_of_both, cuts, kept):
    X, _, s = table
    edges = [0, *sorted(cuts), s.size]
    kind = OnBlocks if kept else WithLocalForm
    model = classifier(gap_estimator=kind(C=0.5), estimator=kind())
    model.fit(*as_blocks(X, s, tuple(np.diff(edges).tolist())))
    assert_same_answer(model, one_of_both, X)


@pytest.fixture(scope="module")
def one_of_both(table):
    X, _, s = table
    model = classifier(gap_estimator=OnBlocks(C=0.5), estimator=OnBlocks())
    return model.on_one_machine().fit(X, s)


@pytest.mark.parametrize(
    ("parameters", "close"),
    [
        ({"gap_estimator": OnBlocks()}, 2e-3),
        ({"estimator": OnBlocks()}, 2e-3),
        ({"estimator": OnBlocks(), "gap_estimator": OtherBlocks()}, CLOSE),
        ({"estimator": OnBlocks(), "relabelling": "theorem"}, 2e-3),
        ({"gap_estimator": OnBlocks(), "boundary": -0.6}, 2e-3),
        (
            {"gap_estimator": OnBlocks(), "estimator": OnBlocks(), "boundary": -0.6},
            2e-3,
        ),
        (
            {
                "gap_estimator": OnBlocks(),
                "estimator": OnBlocks(random_state=3),
                "boundary": -0.6,
                "reweight": False,
            },
            CLOSE,
        ),
    ],
    ids=[
        "gap alone",
        "final alone",
        "other blocks",
        "theorem",
        "kernel machine, matched",
        "both, matched",
        "both, not matched",
    ],
)
def test_the_answer_is_that_of_one_machine(table, parameters, close):
    X, _, s = table
    model = classifier(**parameters)
    one = model.on_one_machine().fit(X, s)
    model.fit(*as_blocks(X, s, (400, 700, 400)))
    if "gap_estimator" in parameters:
        assert_same_answer(model, one, X, close)
    else:
        assert_allclose(model.model_.predict_proba(X), one.predict_proba(X), atol=close)
    final, theirs = model.model_.estimator_, one.estimator_
    if "estimator" in parameters:
        assert final.random_state == theirs.random_state is not None
        assert final.n_rows_ == pytest.approx(theirs.n_rows_, abs=3)
        assert final.weights_.sum() == pytest.approx(theirs.weights_.sum(), rel=close)
        assert all(final.sizes_)
    else:
        assert final.C == theirs.C
    assert (model.kmm_ is None) == (
        "boundary" not in parameters or "reweight" in parameters
    )


def test_a_pair_of_labels_is_not_held_out(table):
    X, _, s = table
    two = np.isin(np.arange(s.size), np.flatnonzero(s)[:2]).astype(int)
    model = PGPUClassifier(
        gap_estimator=OnBlocks(),
        estimator=OnBlocks(),
        kernel_features=40,
        random_state=7,
    )
    one = model.on_one_machine()
    heard = []
    for fit in (
        lambda: one.fit(X, two),
        lambda: model.fit(*as_blocks(X, two, (400, 700, 400))),
    ):
        with pytest.warns(UnreliableFitWarning) as caught:
            fit()
        assert {w.filename for w in caught} == {__file__}
        heard.append([w.message.sign for w in caught])
    assert heard[0] == heard[1]
    assert_allclose(model.observed_gap_.compute(), one.observed_gap_, atol=CLOSE)


def test_a_boundary_that_cannot_be_used_says_so(table):
    X, _, s = table
    model = classifier(gap_estimator=OnBlocks(), boundary=-0.9999999)
    with pytest.warns(BoundaryWarning, match="must leave negatives"):
        model.fit(*as_blocks(X, s, (750, 750)))


def test_of_many_rows_some_tell_the_spread_of_the_boundary(table, monkeypatch):
    X, _, s = table
    model = classifier(gap_estimator=OnBlocks(), estimator=OnBlocks())
    whole = model.fit(*as_blocks(X, s, (750, 750))).boundary_
    monkeypatch.setattr(_stages, "_MOST_RESAMPLED", 700)
    some = model.fit(*as_blocks(X, s, (750, 750))).boundary_
    assert some.value == whole.value
    assert some.spread == pytest.approx(whole.spread, rel=0.5)
    assert some.spread != whole.spread


@pytest.mark.parametrize("case", ["parts", "sides", "one class", "a class weighs 0"])
def test_copies_of_rows_are_those_of_memory(table, case):
    X, _, s = table
    rng = np.random.default_rng(0)
    share = rng.uniform(size=s.size)
    share[400:1100] = np.nan  # a block that is left out as a whole
    share[rng.random(s.size) < 0.1] = np.nan
    weight = np.where(np.isfinite(share), rng.exponential(size=s.size) ** 4, 0.0)
    if case == "sides":
        share = np.round(share)
    elif case == "one class":
        share = 0.99 + 0.01 * share
    elif case == "a class weighs 0":
        share = np.round(share)
        weight[share == 1.0] = 0.0
    blocks = open_table(*as_blocks(X, s, (400, 700, 400)), None, None, 0)
    parts = [
        BlockValues(blocks, [dask.delayed(p) for p in np.split(v, [400, 1100])])
        for v in (share, np.isfinite(share).astype(float), weight)
    ]
    ours = Collecting()
    theirs = Collecting()
    fit_on_blocks(ours, *parts)
    fit_on_shares(theirs, X, round_shares(share), weight)
    assert len(theirs.rows_) > 100
    assert_array_equal(ours.rows_, theirs.rows_)


class Collecting:
    """Keeps what it is given, in an order of its own."""

    def fit(self, X, y, sample_weight):
        found = dask.compute(X, y, sample_weight)
        rows = np.column_stack(found)
        self.rows_ = rows[np.lexsort(rows.T)]
        return self


def test_dataframes_words_and_the_lesser_label(table):
    X, _, s = table
    names = list("abcd")
    frame = pd.DataFrame(X.astype(np.float32), columns=names)
    frame["flag"] = np.where(s == 1, "a", "b")
    blocks = dd.from_pandas(frame, npartitions=3)
    for kind, collection in ((WithLocalForm, dd.Series), (OnBlocks, da.Array)):
        model = classifier(gap_estimator=kind(), estimator=kind(), pos_label="a")
        model.fit(blocks[names], blocks["flag"])
        plain = classifier(gap_estimator=kind(), estimator=kind())
        plain.fit(*as_blocks(X.astype(np.float32), s, (500, 500, 500)))
        predicted = model.predict(blocks[names])
        assert isinstance(predicted, collection)
        turned = np.asarray(predicted.compute()) == "a"
        assert_array_equal(turned, plain.model_.predict(X.astype(np.float32)) == 1)
        assert_array_equal(model.model_.feature_names_in_, names)


def test_columns_in_another_order_are_refused_by_what_stays_on_dask(table):
    X, _, s = table
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    labels = dd.from_pandas(pd.Series(s), npartitions=2)
    model = classifier(estimator=OnBlocks()).fit(frame, labels)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[list("dcba")])
    with pytest.raises(InvalidInputError, match=r"must have 4 features\. Got 3"):
        model.predict(da.from_array(X[:, :3], chunks=(500, 3)))


def test_a_row_that_is_read_again_changes_nothing(table, monkeypatch):
    X, _, s = table
    model = classifier(gap_estimator=OnBlocks(), estimator=OnBlocks())
    kept = model.fit(*as_blocks(X, s, (400, 700, 400))).observed_gap_.compute()
    monkeypatch.setattr("probgap.dask._table.memory_for_keeping", lambda: 0.0)
    with dask.config.set(scheduler="threads", num_workers=4):
        read = model.fit(*as_blocks(X, s, (400, 700, 400)))
        assert not read.kept_
        assert_array_equal(read.observed_gap_.compute(), kept)


def test_what_would_gather_all_rows_is_refused_before_any_is_read(table):
    X, _, s = table

    def read(block):
        pytest.fail("a block was read")

    X = da.from_array(X, chunks=(500, 4)).map_blocks(read, meta=np.empty((0, 4)))
    s = da.from_array(s, chunks=500)
    for name in ("gap_estimator", "estimator"):
        message = rf"^{name} must give a dask array .* Got LogisticRegression\(\), .*"
        with pytest.raises(InvalidInputError, match=message + "probgap.PGPUClassifier"):
            classifier(**{name: LogisticRegression()}).fit(X, s)
        with pytest.raises(ValueError, match=f"'{name}' parameter.*predict_proba"):
            classifier(**{name: LinearSVC()}).fit(X, s)

    class Unweighted(OnBlocks):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(InvalidInputError, match="must accept sample_weight"):
        classifier(estimator=Unweighted()).fit(X, s)


def test_chances_of_another_shape_are_refused(table):
    X, _, s = table
    model = classifier(gap_estimator=OneColumn())
    with pytest.raises(
        InvalidInputError, match=r"two chances for each row.*\(\d+, 1\)"
    ):
        model.fit(*as_blocks(X, s, (400, 700, 400)))


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
    model = PGPUClassifier(
        gap_estimator=own, estimator=own, kernel_features=40, random_state=0
    )
    one = model.on_one_machine()
    assert isinstance(one.estimator, XGBClassifier)
    one.fit(X, s)
    blocks = da.from_array(X, chunks=(1000, 4))
    model.fit(blocks, da.from_array(s, chunks=1000))
    assert isinstance(model.model_.estimator_, XGBClassifier)
    assert isinstance(model.model_.gap_estimator_.estimator_, XGBClassifier)
    gap, predicted = model.observed_gap_.compute(), model.predict(blocks).compute()
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
