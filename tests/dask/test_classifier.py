"""The answer is that of one machine, whatever the blocks and the workers."""

import os
import signal
import subprocess
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from probgap import PGPUClassifier
from probgap.boundary import MeanSmallest
from probgap.dask import DaskPGPUClassifier
from probgap.exceptions import BoundaryWarning, InvalidInputError
from probgap.gap import ObservedGapEstimator
from probgap.reweight import KernelMeanMatching

SOME = 8 * 4 * 700  # room for 700 rows of four columns


def cut(n, cuts):
    edges = [0, *sorted({c for c in cuts if 0 < c < n}), n]
    return tuple(np.diff(edges).tolist())


def as_blocks(X, s, chunks, columns=4):
    return da.from_array(X, chunks=(chunks, columns)), da.from_array(s, chunks=400)


# Where blocks, frames or labels are the point, any quick stages will do.
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}


def classifier(max_memory=64e6, **parameters):
    inner = PGPUClassifier(**{**LIGHT, **parameters})
    return DaskPGPUClassifier(inner, max_memory=max_memory, random_state=7)


@pytest.fixture(scope="module")
def one(table):
    X, _, s = table
    return PGPUClassifier(random_state=7, **LIGHT).fit(X, s)


@pytest.fixture(scope="module")
def plain(table):
    X, _, s = table
    return classifier().fit(*as_blocks(X, s, (800, 700)))


@pytest.fixture(scope="module")
def few(table):
    """A table of which one in eight rows is labelled."""
    X, y, s = table
    return X, y, s & (np.arange(s.size) % 2)


@pytest.fixture(scope="module")
def of_some(few):
    X, _, s = few
    return classifier(SOME).fit(*as_blocks(X, s, (1500,)))


def assert_same_bits(model, one, X):
    assert_array_equal(model.posterior_, one.posterior_)
    assert model.boundary_ == one.boundary_
    assert model.estimate_.n_hidden_interval == one.estimate_.n_hidden_interval
    assert_array_equal(model.decision_function(X), one.decision_function(X))


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.lists(st.integers(1, 1499), max_size=9), columns=st.integers(1, 4))
def test_blocks_do_not_change_a_bit(table, one, cuts, columns):
    X, _, s = table
    chunks = cut(s.size, cuts)
    model = classifier().fit(*as_blocks(X, s, chunks, columns))
    assert_same_bits(model.model_, one, X)
    assert_array_equal(model.sample_rows_, np.arange(1500))


def test_blocks_do_not_change_a_bit_of_the_default(table):
    X, s = table[0][:500], table[2][:500]
    model = DaskPGPUClassifier(random_state=7).fit(*as_blocks(X, s, (100, 250, 150)))
    assert_same_bits(model.model_, PGPUClassifier(random_state=7).fit(X, s), X)
    assert_same_bits(
        DaskPGPUClassifier(random_state=7).fit(X, s).model_, model.model_, X
    )


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.lists(st.integers(1, 1499), max_size=9))
def test_blocks_do_not_change_a_bit_where_rows_are_drawn(few, of_some, cuts):
    X, _, s = few
    chunks = cut(s.size, cuts)
    with dask.config.set(scheduler="threads", num_workers=4):
        model = classifier(SOME).fit(*as_blocks(X, s, chunks))
    assert_same_bits(model.model_, of_some.model_, X)
    assert_array_equal(model.sample_rows_, of_some.sample_rows_)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"boundary": -0.6, "reweight": KernelMeanMatching()},
        {"boundary": MeanSmallest(2), "gap_estimator": ObservedGapEstimator()},
        LIGHT,
        {**LIGHT, "relabelling": "theorem", "class_prior": (0.3, 0.4)},
    ],
    ids=["default", "matched", "rule", "own", "theorem"],
)
@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_the_answer_is_that_of_one_machine_on_the_same_sample(few, parameters):
    X, _, s = few
    inner = PGPUClassifier(random_state=7, **parameters)
    model = DaskPGPUClassifier(inner, max_memory=8 * 4 * 400, random_state=7)
    model.fit(*as_blocks(X, s, (400, 700, 400)))
    rows = model.sample_rows_
    assert rows.size == 400
    weight = np.where(s[rows] == 1, 1.0, (1500 - s.sum()) / (400 - s.sum()))
    one = inner._fit_weighted(X[rows], s[rows], weight)
    assert_same_bits(model.model_, one, X)
    assert model.model_.n_labelled_ == s.sum()
    # All labelled rows are in the sample; the chance of a label is that among all rows.
    known = model.model_.gap_estimator_.predict_proba(X)[:, 1]
    assert known.mean() == pytest.approx(s.mean(), abs=0.02)


def test_a_sample_counts_for_all_rows(few, of_some):
    X, y, s = few
    whole = PGPUClassifier(random_state=7, **LIGHT).fit(X, s)
    estimate, boundary = of_some.model_.estimate_, of_some.model_.boundary_
    assert estimate.n_labelled + estimate.n_unlabelled == pytest.approx(1500)
    counts = (boundary.n_negative, boundary.n_undecided, boundary.n_positive)
    assert sum(counts) == 1500
    hidden = (y & (s == 0)).sum()
    low, high = estimate.n_hidden_interval
    assert low <= hidden <= high
    assert estimate.n_hidden == pytest.approx(whole.estimate_.n_hidden, rel=0.3)
    assert of_some.model_.score(X, y) > whole.score(X, y) - 0.03
    assert "1,500 samples" in of_some.model_._repr_html_()


def test_predictions_are_lazy_and_those_of_the_model_in_memory(table, plain):
    X, _, s = table
    blocks, _ = as_blocks(X, s, (800, 700))
    model = plain
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(blocks)
        assert isinstance(lazy, da.Array)
        expected = getattr(model.model_, method)(X)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        assert_array_equal(lazy.compute(), expected)
        assert_array_equal(getattr(model, method)(X), expected)


def test_dataframes_keep_their_names_and_labels_may_be_words(table, plain):
    X, _, s = table
    names = list("abcd")
    frame = pd.DataFrame(X, columns=names).assign(
        flag=pd.Series(np.where(s == 1, "yes", None), dtype=object)
    )
    blocks = dd.from_pandas(frame, npartitions=3)
    model = classifier().fit(blocks[names], blocks["flag"])
    assert_array_equal(model.feature_names_in_, names)
    assert_array_equal(model.classes_, ["not yes", "yes"])
    assert_array_equal(model.model_.posterior_, plain.model_.posterior_)
    predicted = model.predict(blocks[names])
    assert isinstance(predicted, dd.Series)
    assert set(predicted.compute()) == {"not yes", "yes"}
    proba = model.predict_proba(blocks[names]).compute()
    assert list(proba.columns) == ["not yes", "yes"]
    assert_array_equal(proba.to_numpy(), model.model_.predict_proba(frame[names]))
    unknown = blocks[names].to_dask_array()
    again = classifier().fit(unknown, blocks["flag"])
    assert_array_equal(again.model_.posterior_, model.model_.posterior_)


@parametrize_with_checks([DaskPGPUClassifier(PGPUClassifier(**LIGHT))])
@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_several_values_may_mean_positive(table, plain):
    X, _, s = table
    kinds = np.where(s == 1, 2 + (X[:, 0] > 0.0), 0)
    found = classifier(pos_label=(3, 2)).fit(*as_blocks(X, kinds, (800, 700)))
    assert found.classes_.tolist() == [0, 3]
    assert_array_equal(found.model_.probability_, plain.model_.probability_)


def test_pos_label_may_be_the_lesser(table, plain):
    X, _, s = table
    turned = classifier(pos_label=0).fit(*as_blocks(X, 1 - s, (800, 700)))
    assert_array_equal(turned.model_.predict(X), 1 - plain.model_.predict(X))


def test_single_precision_and_empty_blocks_are_taken(table):
    X, _, s = table
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd")).assign(s=s)
    blocks = dd.from_pandas(frame, npartitions=4)
    some = blocks[blocks["s"] >= 0].map_partitions(
        lambda part: part.iloc[:0] if 400 in part.index else part
    )
    model = classifier().fit(some[list("abcd")], some["s"])
    assert model.sample_rows_.size == 1125
    assert model.model_.predict(frame[list("abcd")]).mean() > 0.1


BAD = [
    (
        lambda X: X.__setitem__((700, 2), np.nan),
        r"nan in feature 2, row 701 \(block 2, rows 501 to 1,000\)",
    ),
    (
        lambda X: X.__setitem__((1499, 0), -np.inf),
        r"-inf in feature 0, row 1,500 \(block 3",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), BAD, ids=["nan", "infinite"])
def test_a_block_with_a_bad_value_is_named(table, spoil, message):
    X, _, s = table
    X = X.copy()
    spoil(X)
    with pytest.raises(InvalidInputError, match=message):
        classifier().fit(*as_blocks(X, s, (500, 500, 500)))


def test_what_cannot_be_fitted_is_refused_in_a_sentence(table):
    X, _, s = table
    blocks, labels = as_blocks(X, s, (500, 500, 500))
    with pytest.raises(InvalidInputError, match=r"X must be a dask array.*ndarray"):
        classifier().fit(X, labels)
    with pytest.raises(InvalidInputError, match="as many blocks as X"):
        classifier().fit(blocks, labels[:700])
    with pytest.raises(InvalidInputError, match="one class"):
        classifier().fit(blocks, da.zeros_like(labels))
    with pytest.raises(InvalidInputError, match="at least 2 labelled"):
        classifier().fit(blocks, da.arange(1500, chunks=500) == 3)
    with pytest.raises(ValueError, match="boundary"):
        classifier(boundary=0.5).fit(blocks, labels)
    words = dd.from_pandas(
        pd.DataFrame({"a": [1.0, 1.0, 0.0, 0.0], "b": ["1", "2", "x", "3"]}),
        npartitions=1,
    )
    with pytest.raises(InvalidInputError, match=r"'x' \(block 1, rows 1 to 4\)"):
        classifier().fit(words, words["a"])
    frame = dd.from_pandas(pd.DataFrame(X[:900]), npartitions=1)
    with pytest.raises(
        InvalidInputError, match="900 rows of 4 columns beside 500 labels"
    ):
        classifier().fit(frame, dd.from_pandas(pd.Series(s[:500]), npartitions=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, 0], "rows and columns. Got 1 dimension"),
        (lambda X: X[:, :0], "rows and columns. Got 2 dimension.* and no column"),
        (lambda X: X.astype(complex), "ndarray of complex128 .block"),
        (lambda X: X.astype("M8[s]"), r"ndarray of datetime64\[s\] .block"),
        (lambda X: X.map_blocks(np.ma.masked_array), "a MaskedArray of float64"),
        (lambda X: X.map_blocks(csr_matrix), "a csr_matrix of float64"),
        (lambda X: X * 1e200, "squares can be added up"),
    ],
    ids=["1-d", "no column", "complex", "dates", "masked", "sparse", "huge"],
)
def test_what_is_no_table_of_real_numbers_is_refused(table, change, message):
    X, _, s = table
    blocks, labels = as_blocks(X, s, (500, 500, 500))
    with pytest.raises(InvalidInputError, match=message):
        DaskPGPUClassifier().fit(change(blocks), labels)


def test_empty_blocks_are_predicted_as_what_the_labels_are(table):
    X, _, s = table
    blocks, _ = as_blocks(X[np.argsort(X[:, 0])], s, (500, 500, 500))
    words = da.from_array(np.where(s == 1, "yes", "no"), chunks=500)
    model = classifier().fit(*as_blocks(X, s, (500, 500, 500)))
    some = blocks[blocks[:, 0] > np.median(X[:, 0]) + 0.5]
    assert model.predict(some).compute().dtype == s.dtype
    model.fit(da.from_array(X, chunks=(500, 4)), words)
    assert set(model.predict(some).compute()) <= {"yes", "no"}


def test_a_boundary_without_negatives_says_so(table):
    X, _, s = table
    with pytest.warns(BoundaryWarning, match="must leave negatives"):
        model = classifier(boundary=-0.9999999).fit(*as_blocks(X, s, (750, 750)))
    assert model.model_.boundary_.fallback is not None


def test_a_seed_that_is_no_number_draws_one(table):
    X, _, s = table
    model = DaskPGPUClassifier(PGPUClassifier(**LIGHT))
    model.set_params(random_state=np.random.default_rng(3))
    one, other = (model.fit(*as_blocks(X, s, (750, 750))).model_ for _ in range(2))
    assert one.random_state != other.random_state
    assert not np.array_equal(one.posterior_, other.posterior_)


def dying(blocks, marker):
    """Let the worker that is the first to read a block be killed."""
    here = os.getpid()

    def read(part):
        if os.getpid() != here and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    return blocks.map_blocks(read, dtype=blocks.dtype)


def test_a_worker_that_is_killed_changes_nothing(few, of_some, tmp_path):
    X, _, s = few
    blocks, labels = as_blocks(X, s, (500, 500, 500))
    markers = [tmp_path / "in fit", tmp_path / "in predict"]
    # Load libraries once for all workers: four are started, two of them anew.
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}
    with (
        dask.config.set({"scheduler": None, **forked}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        model = classifier(SOME).fit(dying(blocks, markers[0]), labels)
        assert_same_bits(model.model_, of_some.model_, X)
        lazy = model.predict_proba(dying(blocks, markers[1]))
        assert_array_equal(lazy.compute(), of_some.model_.predict_proba(X))
        killed = {int(marker.read_text()) for marker in markers}
        assert len(killed) == 2
        assert not killed & set(client.run(os.getpid).values())


def test_without_dask_one_sentence_says_what_to_install():
    script = "import sys; sys.modules['dask'] = None; import probgap.dask"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert "dask must be installed" in last
    assert "pip install 'probgap[dask]'" in last


def test_a_declared_column_says_who_was_looked_at_in_blocks_as_in_memory(table):
    X, _, s = table
    clinic = np.arange(len(s)) % 3
    known = s * (clinic < 2)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(clinic=clinic.astype(float))
    own = PGPUClassifier(labelled_by=["clinic"], random_state=7)
    parts = dd.from_pandas(frame, npartitions=3)
    labels = dd.from_pandas(pd.Series(known), npartitions=3)
    model = DaskPGPUClassifier(own, random_state=7).fit(parts, labels)
    inner = own.fit(frame, known)
    assert model.model_.labelling_.groups == inner.labelling_.groups
    assert inner.labelling_.groups[2].rate_high < 0.3
    found = model.predict(parts[list("abcd")]).compute()
    assert_array_equal(found, inner.predict(frame))
