"""Learners of soft targets: what is held out, of few rows and many, dense and sparse."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from probgap._core.defaults import DEFAULTS
from probgap._core.learners import (
    LearnerTask,
    fit_boosting,
    fit_forest,
    fit_kernel,
    fit_linear,
    stratified_folds,
)
from probgap._core.mixture import (
    Columns,
    Directions,
    Mixture,
    Words,
    choose_weights,
    fit_mixture,
)
from probgap._core.runtime import draw_rows

ALL = DEFAULTS
FEW = replace(ALL, most_rows=400, most_values=4800, most_columns=50)


def draw(n, d=4, seed=0, strength=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.random(n) < 0.5 * expit(strength * X[:, 0] - 1.0)


def fit(X, labelled, *, target=None, weight=None, limits=ALL):
    target = labelled.astype(float) if target is None else target
    weight = np.ones(labelled.size) if weight is None else weight
    return fit_mixture(X, target, weight, labelled, 0, limits=limits)


def mean_loss(target, log_odds, weight=None):
    losses = np.logaddexp(0.0, log_odds) - target * log_odds
    return np.average(losses, weights=weight)


@pytest.mark.parametrize("learn", [fit_kernel, fit_linear, fit_forest, fit_boosting])
def test_no_row_is_predicted_by_what_has_seen_it(learn):
    X, labelled = draw(300, strength=0.0)
    task = LearnerTask(
        X, labelled * 1.0, np.ones(300), stratified_folds(labelled, 5, 0), 0
    )
    fitted = learn(task)
    frequency = np.full(300, logit(labelled.mean()))
    assert mean_loss(labelled, fitted.held_out) > mean_loss(labelled, frequency) - 0.01
    # A row that is changed alone keeps what is said of it, as no model has seen it.
    target = task.target.copy()
    target[7] = 1.0 - target[7]
    if learn is not fit_forest:  # its frequency has changed
        held = task.fold[:, 0] == task.fold[7, 0]
        one_way = replace(task, fold=task.fold[:, :1], target=target)
        kept = learn(replace(one_way, target=task.target)).held_out
        assert_allclose(learn(one_way).held_out[held], kept[held], atol=2e-2)


def test_what_has_seen_the_rows_fits_noise():
    X, labelled = draw(500, strength=0.0)
    fitted = fit(X, labelled)
    seen = fitted.learner.log_odds(X)
    assert roc_auc_score(labelled, fitted.held_out) < 0.6
    assert roc_auc_score(labelled, seen) > 0.7


@pytest.mark.parametrize("limits", [ALL, FEW])
def test_the_same_again(limits):
    X, labelled = draw(600)
    first, second = (fit(X, labelled, limits=limits) for _ in range(2))
    assert_array_equal(first.held_out, second.held_out)
    assert_array_equal(first.learner.log_odds(X), second.learner.log_odds(X))


def test_weights_are_never_worse_than_equal_ones(rng):
    target = rng.random(400)
    columns = rng.normal(size=(400, 4)) + logit(target)[:, None] * [1.0, 0.5, 0.0, -1.0]
    weight = rng.uniform(0.5, 2.0, 400)
    weights, intercept = choose_weights(columns, target, weight)
    assert (weights >= 0.0).all()
    assert weights[3] == 0.0
    chosen = mean_loss(target, columns @ weights + intercept, weight)
    assert chosen < mean_loss(target, columns.mean(axis=1), weight)


# --- many rows -------------------------------------------------------------------------


def test_a_sample_keeps_the_scarce_group_and_stands_for_all(rng):
    group = np.arange(5000) < 120
    weight = rng.uniform(0.5, 1.5, 5000)
    rows, weights = draw_rows(weight, group, 400, 0)
    assert rows.size == 400
    assert (np.diff(rows) > 0).all()
    assert group[rows].sum() == 120
    share = weights[group[rows]].sum() / weights.sum()
    assert share == pytest.approx(weight[group].sum() / weight.sum())
    assert weights.mean() == pytest.approx(weight.mean(), rel=0.01)
    # Half, where both have more; the rest where one has fewer.
    both = np.arange(5000) < 2500
    assert both[draw_rows(weight, both, 400, 0)[0]].sum() == 200
    most = np.arange(5000) < 4900
    assert most[draw_rows(weight, most, 400, 0)[0]].sum() == 300


def test_a_sample_says_nearly_what_all_rows_say():
    X, labelled = draw(2000)
    new = draw(500, seed=1)[0]
    some, whole = (fit(X, labelled, limits=limits) for limits in (FEW, ALL))
    assert some.held_out.shape == (2000,)
    for one, other in (
        (some.held_out, whole.held_out),
        (some.learner.log_odds(new), whole.learner.log_odds(new)),
    ):
        assert np.corrcoef(one, other)[0, 1] > 0.8
    assert expit(some.held_out).mean() == pytest.approx(labelled.mean(), abs=0.03)
    n_rows = FEW.most_rows, FEW.most_values // X.shape[1]
    for learner, n in zip(some.learner.learners[2:], n_rows, strict=True):
        assert learner.margin == pytest.approx(1.0 / (n + 2))


def test_being_in_the_sample_tells_nothing_of_the_label():
    # Half of the labelled rows are in it, but few of the others.
    X, labelled = draw(2000, strength=0.0)
    sparse = sp.random_array((2000, 600), density=0.005, rng=0, format="csr")
    for samples in (X, sparse):
        fitted = fit(samples, labelled, limits=FEW)
        assert abs(roc_auc_score(labelled, fitted.held_out) - 0.5) < 0.05


def test_weights_beside_a_sample_and_single_precision():
    X, labelled = draw(1500)
    weight = np.where(X[:, 1] > 0.0, 1.5, 0.5)
    single = fit(X.astype(np.float32), labelled, weight=weight, limits=FEW)
    double = fit(X, labelled, weight=weight, limits=FEW)
    assert np.corrcoef(single.held_out, double.held_out)[0, 1] > 0.98


# --- sparse and wide samples -----------------------------------------------------------


def words(n=400, d=600, seed=0):
    rng = np.random.default_rng(seed)
    topic = rng.random(n) < 0.4
    rate = np.where(topic[:, None] & (np.arange(d) < 60), 0.15, 0.03)
    return rng.poisson(rate).astype(float), topic & (rng.random(n) < 0.6)


def test_words_are_learnt_from_sparse_or_dense():
    counts, labelled = words(250)
    sparse = fit(sp.csr_array(counts), labelled)
    assert isinstance(sparse.learner.view, Words)
    assert roc_auc_score(labelled, sparse.held_out) > 0.7
    dense = fit(counts, labelled)
    assert_array_equal(dense.held_out, sparse.held_out)
    found = sparse.learner.log_odds(sp.csr_matrix(counts))
    assert_allclose(dense.learner.log_odds(counts), found)


def test_wide_columns_are_learnt_from_by_directions(rng):
    X, labelled = draw(300, 5)
    wide = X @ rng.normal(size=(5, 600)) + 0.3 * rng.normal(size=(300, 600)) + 7.0
    fitted = fit(wide, labelled)
    assert isinstance(fitted.learner.view, Directions)
    assert roc_auc_score(labelled, fitted.held_out) > 0.65
    assert_allclose(
        fitted.learner.log_odds(sp.csr_array(wide)), fitted.learner.log_odds(wide)
    )


def test_few_sparse_columns_are_columns():
    X, labelled = draw(100)
    X = np.where(X > 0.5, X, 0.0)
    expected = fit(X, labelled)
    assert expected.learner.view.scale is None
    for samples in (sp.csc_matrix(X), np.asfortranarray(X)):
        assert_array_equal(fit(samples, labelled).held_out, expected.held_out)
    assert_array_equal(
        expected.learner.log_odds(sp.csr_array(X)), expected.learner.log_odds(X)
    )


# --- inputs that ask for trouble -------------------------------------------------------


@pytest.mark.parametrize(("n", "n_labelled"), [(2, 1), (4, 1), (4, 2), (5, 4), (9, 9)])
def test_very_few_rows(n, n_labelled):
    X, _ = draw(n, 2)
    fitted = fit(X, np.arange(n) < n_labelled)
    assert np.isfinite(fitted.held_out).all()
    assert np.isfinite(fitted.learner.log_odds(X)).all()


def test_the_only_one_of_a_group_has_a_fold_of_its_own():
    fold = stratified_folds(np.arange(20) == 3, 5, 0)
    assert (fold[3] == 5).all()
    assert np.delete(fold, 3, axis=0).max() == 4
    assert set(stratified_folds(np.array([True, False]), 5, 0)[:, 0]) == {0, 1}


def trouble():
    X, _ = draw(30, 3)
    counts, _ = words(30)
    yield "constant", np.column_stack([X, np.full(30, 0.1), np.full(30, 1e150)])
    yield "all constant", np.full((30, 2), 0.1)
    yield "one column of integers", (10.0 * X[:, :1]).astype(np.int8)
    yield "duplicates", np.repeat(X[:3], 10, axis=0)
    yield "as large as can be", X / np.abs(X).max() * np.finfo(float).max
    yield "single", (X / np.abs(X).max()).astype(np.float32) * np.float32(3e38)
    yield "tiny and huge", X * [1e-310, 1e150, 1.0]
    yield "wide and huge", 1e300 * np.tile(X, 200)
    yield "words, none", sp.csr_array((30, 600))
    yield "words, huge", sp.csr_array(1e300 * counts)
    yield "negative", sp.csr_array(-counts)


@pytest.mark.parametrize(
    ("name", "X"), trouble(), ids=lambda v: v if type(v) is str else ""
)
def test_nothing_is_lost_where_numbers_are_odd(name, X):
    labelled = np.arange(30) < 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fit(X, labelled)
        far = np.full((2, X.shape[1]), 1e308) * [[1.0], [-1.0]]
        assert np.isfinite(fitted.learner.log_odds(far)).all()
    assert np.isfinite(fitted.held_out).all()
    assert np.isfinite(fitted.learner.log_odds(X)).all()


def test_units_do_not_matter():
    X, labelled = draw(100)
    usual = fit(X, labelled).held_out
    fitted = fit(X * [1e150, 1e-150, 1e-3, 1.0] + [0.0, 0.0, 1e6, 0.0], labelled)
    assert isinstance(fitted.learner.view, Columns)
    assert_allclose(fitted.held_out, usual, atol=0.05)


def test_a_constant_column_changes_no_kernel():
    X, labelled = draw(200)
    more = np.column_stack([X, np.full((200, 1), 0.1)])
    fold = stratified_folds(labelled, 5, 0)
    kernels = [
        fit_kernel(LearnerTask(Z, labelled * 1.0, np.ones(200), fold, 0)).held_out
        for Z in (X, more)
    ]
    assert np.corrcoef(*kernels)[0, 1] > 0.99


@pytest.mark.parametrize(("truth", "n_landmarks"), [("products", 600), ("line", 300)])
def test_landmarks_are_doubled_as_long_as_that_pays(truth, n_landmarks):
    X = np.random.default_rng(0).normal(size=(1900, 20))
    products = (X[:, ::2] * X[:, 1::2]).sum(axis=1)
    labelled = (products if truth == "products" else X[:, 0]) > 0.0
    fold = stratified_folds(labelled, 3, 0)[:, :1]
    task = LearnerTask(X, labelled * 1.0, np.ones(1900), fold, 0)
    assert len(fit_kernel(task).learner.features.landmarks) == n_landmarks


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_targets_all_equal(value):
    X, labelled = draw(60)
    fitted = fit(X, labelled, target=np.full(60, value))
    assert_allclose(expit(fitted.held_out), value, atol=0.02)


def test_blocks_and_learners_without_weight_change_no_prediction():
    X, labelled = draw(200)
    mixture = fit(X, labelled).learner
    many = np.tile(X, (200, 1))  # more than a block
    assert_allclose(mixture.log_odds(many)[-200:], mixture.log_odds(X), atol=1e-5)
    first = replace(mixture, weights=np.array([1.0, 0.0, 0.0, 0.0]), intercept=0.0)
    alone = Mixture(mixture.learners[:1], np.ones(1), 0.0, mixture.view)
    assert_array_equal(first.log_odds(X), alone.log_odds(X))
