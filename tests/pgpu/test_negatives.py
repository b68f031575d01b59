"""Rows that somebody checked and found negative."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import probgap
from probgap import PGPUClassifier, PGPUClassifierCV, io
from probgap._core.mixture import MixedClassifier
from probgap.datasets import hide_labels, make_square
from probgap.exceptions import InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}
NO = -1


@pytest.fixture(scope="module")
def task():
    """Rows, observed labels with some rows checked by their features, and the truth."""
    X, truth, posterior = make_square(200, random_state=0)
    y = hide_labels(X, truth, 2 * posterior - 1, ("linear", 0.8), random_state=1)
    checked = (np.random.default_rng(2).random(200) < 0.3) & (y == 0)
    return X, np.where(checked, np.where(truth == 1, 1, NO), y), truth


@pytest.fixture(scope="module")
def fitted(task):
    X, y, _ = task
    return PGPUClassifier(neg_label=NO, random_state=0).fit(X, y)


def test_they_are_negative_and_never_counted(task, fitted):
    _, y, _ = task
    chance, estimate = fitted.probability_, fitted.estimate_
    assert_array_equal(fitted.negative_, y == NO)
    assert fitted.classes_.tolist() == [NO, 1]
    assert (chance[y == NO] == 0.0).all()
    assert (chance[y == 1] == 1.0).all()
    assert (chance[y == 0] > 0.0).all()
    assert estimate.n_unlabelled == (y == 0).sum()
    assert estimate.n_negative == (y == NO).sum()
    assert_allclose(chance[y == 0].sum(), estimate.n_hidden)
    assert_allclose(estimate.class_prior, chance.mean())
    low, high = estimate.n_hidden_interval
    assert 0.0 <= low <= estimate.n_hidden <= high <= (y == 0).sum()


def test_what_they_say_holds_for_rows_like_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) + np.repeat([[2.0], [0.0]], 300, axis=0)
    y = ((np.arange(600) < 300) & (rng.random(600) < 0.4)).astype(int)
    # Of the rows that look positive, those with a high third column are not.
    odd = (y == 0) & (X[:, :2].sum(axis=1) > 3.0) & (X[:, 2] > 2.0)
    told = np.where(odd & (rng.random(600) < 0.7), NO, y)
    others = odd & (told == 0)
    plain = PGPUClassifier(random_state=0).fit(X, y).probability_[others]
    model = PGPUClassifier(neg_label=NO, random_state=0).fit(X, told)
    assert model.probability_[others].mean() < plain.mean() - 0.02


def test_where_all_were_checked_it_is_the_same_learners(task):
    X, _, truth = task
    y = np.where(truth == 1, "fraud", "fine")
    model = PGPUClassifier(pos_label="fraud", neg_label="fine", random_state=0)
    model.fit(X, y)
    seed = model.estimator_.random_state
    plain = MixedClassifier(random_state=seed).fit(X, truth)
    assert_allclose(
        model.predict_proba(X)[:, 1], plain.predict_proba(X)[:, 1], atol=1e-15
    )
    assert model.classes_.tolist() == ["fine", "fraud"]
    assert model.estimate_.n_hidden_interval == (0.0, 0.0)
    assert model.estimate_.class_prior == truth.mean()
    assert_array_equal(model.probability_, truth)
    assert "hidden positives" in model._repr_html_()


def test_a_known_class_prior_is_met(task, fitted):
    X, y, _ = task
    model = clone(fitted).set_params(class_prior=0.5).fit(X, y)
    assert_allclose(model.probability_.mean(), 0.5, rtol=1e-3)


def test_a_weight_is_a_repetition(task):
    X, y, _ = task
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    repeated = np.repeat(np.arange(y.size), weight)
    model = PGPUClassifier(neg_label=NO, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    plain = model.fit(X[repeated], y[repeated])
    assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-7)
    assert (weighted.probability_[y == NO] == 0.0).all()
    assert_array_equal(weighted.negative_, y == NO)


@pytest.mark.parametrize("boundary", ["auto", -0.5])
@pytest.mark.parametrize("relabelling", ["expectation", "corollary", "theorem"])
def test_every_way_to_relabel_takes_them_for_negative(task, boundary, relabelling):
    X, y, _ = task
    model = PGPUClassifier(
        boundary=boundary, neg_label=NO, relabelling=relabelling, **LIGHT
    )
    found = model.fit(X, y).relabelling_
    assert (found.positive_share[y == NO] == 0.0).all()
    assert (found.labels[y == NO] == 0).all()


def test_folds_that_keep_the_share_of_each_kind_have_some(task):
    X, y, truth = task
    model = PGPUClassifier(pos_label=1, neg_label=NO, **LIGHT)
    called = cross_val_predict(model, X, y, cv=StratifiedKFold(3))
    assert (called == np.where(truth == 1, 1, NO)).mean() > 0.8


def test_they_go_with_columns_of_who_was_looked_at(task):
    X, y, _ = task
    clinic = np.random.default_rng(3).integers(3, size=y.size)
    rows = np.column_stack([X, clinic])
    model = PGPUClassifier(neg_label=NO, labelled_by=[2], random_state=0).fit(rows, y)
    assert (model.probability_[y == NO] == 0.0).all()
    assert_allclose(model.probability_[y == 0].sum(), model.estimate_.n_hidden)


def test_a_file_keeps_them(task, fitted, tmp_path):
    X, _, _ = task
    io.save(fitted, tmp_path / "model.probgap")
    loaded = io.load(tmp_path / "model.probgap")
    assert_array_equal(loaded.negative_, fitted.negative_)
    assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.estimate_.n_negative == fitted.estimate_.n_negative


def test_a_report_knows_them(task, fitted):
    pytest.importorskip("jinja2")
    X, y, _ = task
    report = probgap.report(fitted, X, y, fast=True, random_state=0)
    found, ranked = report.tree["found"], report.ranked
    kinds = ranked["observed_label"].tolist()
    n_free, n_no = (y == 0).sum(), (y == NO).sum()
    assert (found["negative"], found["unlabelled"], found["rows"]) == (
        n_no,
        n_free,
        200,
    )
    assert kinds == [""] * n_free + ["negative"] * n_no + ["1"] * (y == 1).sum()
    no = ranked[ranked["observed_label"] == "negative"]
    assert (no["rank"] == "").all()
    assert (no["decided"] == "negative").all()
    ends = no[["probability", "probability_low", "probability_high"]].to_numpy()
    assert (ends == 0.0).all()
    asked = report.label_next["row"].to_numpy() - 1
    assert asked.size
    assert (y[asked] == 0).all()
    assert report.tree["belief"]["held_out"]["n_negative"] == n_no
    assert f"Of {n_no} rows checked and negative it takes" in report.to_html()
    assert f"and {n_no} as checked and negative" in report.to_html()


def test_where_it_makes_no_sense_it_is_refused(task):
    X, y, _ = task
    with pytest.raises(InvalidInputError, match=r"two values.*3 values"):
        PGPUClassifierCV().fit(X, y)
    with pytest.raises(InvalidInputError, match="at least 2 labelled"):
        PGPUClassifier(neg_label=NO).fit(X[y != 1], np.r_[1, y[y != 1][1:]])
