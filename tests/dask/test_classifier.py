"""The answer is that of one machine, whatever the blocks and the workers."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import parametrize_with_checks

import probgap
from probgap.boundary import BoundaryWarning
from probgap.dask import PGPUClassifier, _rows, _table
from probgap.exceptions import InvalidInputError, UnreliableFitWarning
from probgap.gap import _boosting
from probgap.pgpu import _base

# What Newton's method leaves, and single precision rounds.
CLOSE = 2e-3
SCALARS = (
    "boundary_",
    "ceiling_",
    "separability_",
    "even_score_",
    "doubt_",
    "mean_labelled_chance_",
    "high_labelled_chance_",
)


def cut(n, cuts):
    edges = [0, *sorted({c for c in cuts if 0 < c < n}), n]
    return tuple(np.diff(edges).tolist())


def as_blocks(X, s, chunks, columns=4):
    return da.from_array(X, chunks=(chunks, columns)), da.from_array(s, chunks=400)


@pytest.fixture(scope="module")
def one(table):
    X, _, s = table
    return classifier().on_one_machine().fit(X, s)


@pytest.fixture(scope="module")
def stepwise():
    """Positive by two thresholds: what trees are for."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 6))
    positive = (X[:, 0] > 0.0) & (X[:, 1] > -0.5)
    return X, (positive & (rng.random(1500) < 0.8)).astype(int)


def classifier(**settings):
    return PGPUClassifier(**{"kernel_features": 40, "random_state": 7, **settings})


def assert_same_answer(model, one, X, close=CLOSE):
    ours, theirs = model.model_.gap_estimator_, one.gap_estimator_
    for name in SCALARS:
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=close)
    assert ours.evidence_ == pytest.approx(theirs.evidence_, rel=10 * close)
    for name in ("boundary_spread_", "class_prior_spread_"):
        # By a Hessian, which may come from some of the rows.
        spread = pytest.approx(getattr(theirs, name), rel=25 * close)
        assert getattr(ours, name) == spread
    assert ours.shrinkage_ == theirs.shrinkage_
    assert_same_shares(model, one, close)
    assert model.boundary_.names == one.boundary_.names
    assert_allclose(model.boundary_.candidates, one.boundary_.candidates, atol=close)
    assert_allclose(model.boundary_.scores, one.boundary_.scores, atol=10 * close)
    assert_allclose(model.observed_gap_.compute(), one.observed_gap_, atol=close)
    assert model.boundary_.n_negative == pytest.approx(one.boundary_.n_negative, abs=3)
    assert model.model_.estimator_.C == one.estimator_.C
    decision = one.decision_function(X)
    assert_allclose(model.model_.decision_function(X), decision, atol=close)
    clear = np.abs(decision) > close
    assert_array_equal(model.model_.predict(X)[clear], one.predict(X)[clear])
    assert_allclose(model.model_.predict_proba(X), one.predict_proba(X), atol=close)


def assert_same_shares(model, one, close):
    for name in ("class_prior", "labelling_rate"):
        for end in ("", "interval_"):
            ours, theirs = (
                getattr(each, f"estimated_{name}_{end}") for each in (model, one)
            )
            assert_allclose(ours, theirs, atol=2 * close)
            assert getattr(model.model_, f"estimated_{name}_{end}") == ours


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.lists(st.integers(1, 1499), max_size=9), columns=st.integers(1, 4))
def test_blocks_do_not_change_the_answer(table, one, cuts, columns):
    X, _, s = table
    chunks = cut(s.size, cuts)
    model = classifier().fit(*as_blocks(X, s, chunks, columns))
    assert_same_answer(model, one, X)


@pytest.mark.parametrize(
    "settings",
    [
        {"boundary": -0.6},
        {"relabelling": "theorem"},
        {"boundary": -0.6, "reweight": False},
    ],
    ids=["matched", "theorem", "not matched"],
)
def test_other_relabellings_give_the_answer_of_one_machine(table, settings):
    X, _, s = table
    model = classifier(**settings)
    one = model.on_one_machine().fit(X, s)
    model.fit(*as_blocks(X, s, (400, 700, 400)))
    assert_same_answer(model, one, X)
    if settings == {"boundary": -0.6}:
        assert model.kmm_.converged
        effective = one.kmm_.effective_sample_size
        assert model.kmm_.effective_sample_size == pytest.approx(effective, rel=1e-3)
        assert model.kmm_.objective < 1e-3 * model.kmm_.uniform
    else:
        assert model.kmm_ is None


@pytest.mark.parametrize("n_labelled", [12, 45])
@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_few_labels_are_doubted_as_on_one_machine(table, n_labelled):
    X, _, s = table
    few = np.isin(np.arange(s.size), np.flatnonzero(s)[:n_labelled]).astype(int)
    model = classifier()
    one = model.on_one_machine().fit(X, few)
    model.fit(*as_blocks(X, few, (400, 700, 400)))
    assert_same_answer(model, one, X)


def test_signs_that_the_method_cannot_work_are_those_of_one_machine(table):
    X, _, s = table
    by_a_coin = np.random.default_rng(0).permutation(s)
    heard = []
    for fit in (
        lambda: classifier().on_one_machine().fit(X, by_a_coin),
        lambda: classifier().fit(*as_blocks(X, by_a_coin, (400, 700, 400))),
    ):
        with pytest.warns(UnreliableFitWarning) as caught:
            fit()
        assert {w.filename for w in caught} == {__file__}
        heard.append([w.message.sign for w in caught])
    assert heard[0] == heard[1]
    assert "indistinct" in heard[0]


def test_a_fit_that_begins_with_some_rows_ends_with_the_same_answer(
    table, one, monkeypatch
):
    X, _, s = table
    monkeypatch.setattr(_rows, "SKETCH_ROWS", 370)
    model = classifier().fit(*as_blocks(X, s, (400, 700, 400)))
    assert_same_answer(model, one, X, close=2e-2)


@pytest.mark.parametrize("most_rows", [400, 10_000], ids=["some", "all"])
def test_trees_are_those_of_one_machine(stepwise, most_rows, monkeypatch):
    X, s = stepwise
    monkeypatch.setattr(_boosting, "_MOST_ROWS", most_rows)
    one = PGPUClassifier(kernel_features=40, random_state=1).on_one_machine().fit(X, s)
    model = PGPUClassifier(kernel_features=40, random_state=1)
    model.fit(*as_blocks(X, s, (700, 1, 799), 6))
    assert one.gap_estimator_.trees_used_
    assert model.model_.gap_estimator_.trees_used_
    assert_allclose(
        model.model_.gap_estimator_.feature_map_.boosted_score(X),
        one.gap_estimator_.feature_map_.boosted_score(X),
        atol=1e-6,
    )
    assert_same_answer(model, one, X)


def test_defaults_are_those_of_one_machine(stepwise, monkeypatch):
    X, s = stepwise
    monkeypatch.setattr(_base, "MOST_EXACT", 1000)
    one = probgap.PGPUClassifier(gap_estimator="labelling", random_state=3, slack=0.0)
    one.fit(X, s)
    model = PGPUClassifier(random_state=3)
    assert model.on_one_machine().kernel_features == "auto"
    model.fit(*as_blocks(X, s, (500, 1000), 6))
    assert model.on_one_machine().kernel_features == 300
    assert_same_answer(model, one, X)


def test_rows_that_are_read_again_give_the_same_bits(table, monkeypatch):
    X, _, s = table
    kept = classifier().fit(*as_blocks(X, s, (400, 700, 400)))
    monkeypatch.setattr(_table, "memory_for_keeping", lambda: 0.0)
    read = classifier().fit(*as_blocks(X, s, (400, 700, 400)))
    assert kept.kept_
    assert not read.kept_
    assert_array_equal(read.model_.estimator_.coef_, kept.model_.estimator_.coef_)
    with dask.config.set(scheduler="threads", num_workers=4):
        threads = classifier().fit(*as_blocks(X, s, (400, 700, 400)))
    assert_array_equal(threads.model_.estimator_.coef_, kept.model_.estimator_.coef_)


def test_predictions_are_lazy_and_those_of_the_model_in_memory(table):
    X, _, s = table
    blocks, labels = as_blocks(X, s, (800, 700))
    model = classifier().fit(blocks, labels)
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(blocks)
        assert isinstance(lazy, da.Array)
        expected = getattr(model.model_, method)(X)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        assert_allclose(lazy.compute(), expected, atol=1e-6)
        assert_array_equal(getattr(model, method)(X), expected)
    assert_allclose(model.posterior_.compute().mean(), 0.5, atol=0.3)


def test_dataframes_keep_their_names_and_labels_may_be_words(table):
    X, _, s = table
    names = list("abcd")
    frame = pd.DataFrame(X, columns=names).assign(
        flag=pd.Series(np.where(s == 1, "yes", None), dtype=object)
    )
    blocks = dd.from_pandas(frame, npartitions=3)
    model = classifier().fit(blocks[names], blocks["flag"])
    plain = classifier().fit(*as_blocks(X, s, tuple(map(len, blocks.partitions))))
    assert_array_equal(model.feature_names_in_, names)
    assert_array_equal(model.classes_, ["not yes", "yes"])
    assert_allclose(
        model.model_.estimator_.coef_, plain.model_.estimator_.coef_, atol=1e-6
    )
    predicted = model.predict(blocks[names])
    assert isinstance(predicted, dd.Series)
    assert set(predicted.compute()) == {"not yes", "yes"}
    proba = model.predict_proba(blocks[names]).compute()
    assert list(proba.columns) == ["not yes", "yes"]
    assert_allclose(proba.sum(axis=1), 1.0)
    unknown = blocks[names].to_dask_array()
    again = classifier().fit(unknown, blocks["flag"])
    assert_array_equal(again.model_.estimator_.coef_, model.model_.estimator_.coef_)


def test_what_is_in_memory_is_cut_into_blocks(table, monkeypatch):
    X, _, s = table
    monkeypatch.setattr(_table, "_ROWS_IN_A_BLOCK", 700)
    words = np.where(s == 1, "fraud", None)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = classifier().fit(frame, words)
    plain = classifier().fit(*as_blocks(X, s, (700, 700, 100)))
    assert_array_equal(model.model_.estimator_.coef_, plain.model_.estimator_.coef_)
    assert_array_equal(model.classes_, ["fraud", "not fraud"])
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert_array_equal(model.predict(frame) == "fraud", plain.predict(X) == 1)
    model.fit(*as_blocks(X, s, (700, 700, 100)))
    assert not hasattr(model, "feature_names_in_")


@parametrize_with_checks([PGPUClassifier()])
@pytest.mark.filterwarnings("ignore::probgap._core.errors.ProbgapWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_pos_label_may_be_the_lesser(table):
    X, _, s = table
    turned = classifier(pos_label=0).fit(*as_blocks(X, 1 - s, (800, 700)))
    plain = classifier().fit(*as_blocks(X, s, (800, 700)))
    assert_array_equal(turned.model_.predict(X), 1 - plain.model_.predict(X))


def test_single_precision_and_empty_blocks_are_taken(table):
    X, _, s = table
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd")).assign(s=s)
    blocks = dd.from_pandas(frame, npartitions=4)
    some = blocks[blocks["s"] >= 0].map_partitions(
        lambda part: part.iloc[:0] if 400 in part.index else part
    )
    model = classifier().fit(some[list("abcd")], some["s"])
    assert model.n_samples_ == 1125
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
        pd.DataFrame({"a": [1.0] * 4, "b": ["1", "2", "x", "3"]}), npartitions=1
    )
    with pytest.raises(InvalidInputError, match=r"'x' in column 'b', row 3"):
        classifier().fit(words, words["a"])
    frame = dd.from_pandas(pd.DataFrame(X[:900]), npartitions=1)
    with pytest.raises(InvalidInputError, match="900 rows of X beside 500 of y"):
        classifier().fit(frame, dd.from_pandas(pd.Series(s[:500]), npartitions=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, 0], "rows and columns. Got 1 dimension"),
        (lambda X: X[:, :0], "rows and columns. Got 2 dimension.* and no column"),
        (lambda X: X.astype(complex), "values of type complex128, row 1"),
        (lambda X: X.astype("M8[s]"), r"values of type datetime64\[s\], row 1"),
        (lambda X: X.map_blocks(np.ma.masked_array), "a masked array, row 1"),
        (lambda X: X.map_blocks(csr_matrix), "a sparse matrix, row 1"),
        (lambda X: X * 1e200, "squares can be added up"),
    ],
    ids=["1-d", "no column", "complex", "dates", "masked", "sparse", "huge"],
)
def test_what_is_no_table_of_real_numbers_is_refused(table, change, message):
    X, _, s = table
    blocks, labels = as_blocks(X, s, (500, 500, 500))
    with pytest.raises(InvalidInputError, match=message):
        classifier().fit(change(blocks), labels)


def test_empty_blocks_are_predicted_as_what_the_labels_are(table):
    X, _, s = table
    blocks, _ = as_blocks(X[np.argsort(X[:, 0])], s, (500, 500, 500))
    words = da.from_array(np.where(s == 1, "yes", "no"), chunks=500)
    model = classifier().fit(*as_blocks(X, s, (500, 500, 500)))
    some = blocks[blocks[:, 0] > np.median(X[:, 0]) + 0.5]
    assert model.predict(some).compute().dtype == s.dtype
    model.fit(da.from_array(X, chunks=(500, 4)), words)
    assert set(model.predict(some).compute()) <= {"yes", "no"}


def test_one_machine_gets_the_seed_that_was_drawn(table):
    X, _, s = table
    model = classifier(random_state=None).fit(*as_blocks(X, s, (500, 500, 500)))
    one = model.on_one_machine()
    assert one.random_state == model.seed_ == model.on_one_machine().random_state
    assert model.set_params(kernel_features=33).on_one_machine().kernel_features == 33


def test_a_boundary_without_negatives_says_so(table):
    X, _, s = table
    with pytest.warns(BoundaryWarning, match="must leave negatives"):
        model = classifier(boundary=-0.9999999).fit(*as_blocks(X, s, (750, 750)))
    assert model.boundary_.fallback is not None


def test_a_seed_that_is_no_number_draws_one(table):
    X, _, s = table
    rng = np.random.default_rng(3)
    blocks = as_blocks(X, s, (750, 750))
    one = classifier(random_state=rng).fit(*blocks)
    other = classifier(random_state=rng).fit(*blocks)
    assert not np.array_equal(
        one.model_.gap_estimator_.coef_, other.model_.gap_estimator_.coef_
    )
