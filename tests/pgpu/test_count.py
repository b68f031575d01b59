"""How many, which share, how likely is this row: one answer each, wherever it is shown."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.boundary import Quantile
from probgap.datasets import make_square
from probgap.gap import ObservedGapEstimator
from probgap.priors import estimate_class_prior

MODELS = {
    "default": PGPUClassifier(random_state=0),
    "paper": PGPUClassifier.paper(random_state=0),
    "quantile": PGPUClassifier(boundary=Quantile(0.02), random_state=0),
    "fixed": PGPUClassifier(boundary=-0.6, random_state=0),
    "platt": PGPUClassifier(gap_estimator=ObservedGapEstimator(), random_state=0),
    "own": PGPUClassifier(gap_estimator=LogisticRegression(), random_state=0),
    "probabilities": PGPUClassifier(estimator=LogisticRegression(), random_state=0),
    "cv": PGPUClassifierCV(
        gap_estimator=LogisticRegression(),
        boundaries=[-0.8, -0.6],
        cv=3,
        random_state=0,
    ),
}


@pytest.fixture(scope="module")
def square():
    """The square with six in ten positives labelled at random."""
    X, y_true, _ = make_square(400, random_state=3)
    seen = np.random.default_rng(5).random(400) < 0.6
    return X, y_true, seen & (y_true == 1)


@pytest.fixture(scope="module")
def fitted(square):
    X, _, s = square
    return {name: clone(model).fit(X, s) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_estimates_how_many_are_positive(square, fitted, name):
    _, y_true, s = square
    model = fitted[name]
    assert model.estimate_.class_prior == pytest.approx(y_true.mean(), abs=0.12)
    low, high = model.estimate_.class_prior_interval
    assert s.mean() <= low <= model.estimate_.class_prior <= high <= 1.0
    assert low <= y_true.mean() <= high


@pytest.mark.parametrize("name", MODELS)
def test_the_labelling_rate_is_the_other_side_of_it(square, fitted, name):
    s, model = square[2], fitted[name]
    low, high = model.estimate_.class_prior_interval
    product = model.estimate_.labelling_rate * model.estimate_.class_prior
    assert product == pytest.approx(s.mean())
    assert_allclose(
        model.estimate_.labelling_rate_interval, (s.mean() / high, s.mean() / low)
    )
    assert all(type(end) is float for end in model.estimate_.class_prior_interval)


def test_the_same_seed_gives_the_same_bits(square, fitted):
    X, _, s = square
    for name in ("default", "paper"):
        again = clone(MODELS[name]).fit(X, s)
        before = fitted[name].estimate_.class_prior_interval
        assert again.estimate_.class_prior_interval == before


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_rows_add_up_to_the_count(square, fitted, name):
    s, model = square[2], fitted[name]
    chance = model.probability_
    assert (chance[s] == 1.0).all()
    assert chance[~s].sum() == pytest.approx(model.estimate_.n_hidden, rel=1e-9)
    by_posterior = np.argsort(model.posterior_[~s])
    assert (np.diff(chance[~s][by_posterior]) >= 0.0).all()
    likely = model.estimate_.probability_range(chance, unlabelled=~s)
    assert (likely.low <= chance).all()
    assert (chance <= likely.high).all()


@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_known_share_of_positives_holds_for_the_rows_too(square, name):
    X, y_true, s = square
    known = float(y_true.mean())
    model = clone(MODELS[name]).set_params(class_prior=known).fit(X, s)
    assert model.probability_.mean() == pytest.approx(known, abs=1e-3)


def test_the_class_prior_is_that_of_the_classifier(square, fitted):
    X, _, s = square
    prior, estimate = (
        estimate_class_prior(X, s, random_state=0),
        fitted["default"].estimate_,
    )
    assert prior.value == pytest.approx(estimate.class_prior, rel=1e-12)
    assert prior.interval == pytest.approx(estimate.class_prior_interval, rel=1e-12)


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_few_labels_leave_more_room_than_many(square, fitted):
    X, _, s = square
    few = np.isin(np.arange(s.size), np.flatnonzero(s)[::10])
    model = PGPUClassifier(random_state=0).fit(X, few)
    width = np.diff(np.log(model.estimate_.class_prior_interval))
    before = np.diff(np.log(fitted["default"].estimate_.class_prior_interval))
    assert width > 1.5 * before


@pytest.mark.parametrize("name", ["default", "paper"])
def test_rows_that_represent_several_are_counted_so(square, fitted, name):
    X, _, s = square
    once = clone(MODELS[name])._fit_weighted(X, s, np.ones(s.size))
    assert once.estimate_.n_hidden == fitted[name].estimate_.n_hidden
    drawn = clone(MODELS[name])._fit_weighted(X, s, np.where(s, 1.0, 2.0))
    assert drawn.estimate_.n_unlabelled == pytest.approx(2.0 * (~s).sum())
    counted = 2.0 * drawn.probability_[~s].sum()
    assert counted == pytest.approx(drawn.estimate_.n_hidden, rel=1e-9)
    assert (drawn.predict_proba(X)[:, 1] < once.predict_proba(X)[:, 1]).mean() > 0.5


def test_the_boundary_keeps_what_was_weighed(fitted):
    boundary = fitted["default"].boundary_
    assert boundary.names == ("auto", "mean_smallest", "quantile")
    assert boundary.value == boundary.candidates[0]
    assert len(boundary.scores) == len(boundary.candidates)
    searched = fitted["cv"]
    assert searched.boundary_.candidates == (-0.8, -0.6)
    assert_allclose(searched.boundary_.scores, searched.cv_results_["mean_test_score"])


def test_every_place_gives_the_same_answers(square, probgap, tmp_path, monkeypatch):
    """Attribute, notebook, terminal, page, run.json and blocks: one object's numbers."""
    dask = pytest.importorskip("dask")
    from contextlib import contextmanager  # noqa: PLC0415

    from probgap import io  # noqa: PLC0415

    X, _, s = square
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.assign(found=np.where(s, "yes", None)).to_parquet(tmp_path / "t.parquet")

    @contextmanager
    def here(*_, **__):
        with dask.config.set(scheduler="synchronous"):
            yield

    monkeypatch.setattr("probgap.cli._cluster.start_client", here)
    shown = {}
    for engine in ("memory", "dask"):
        out = tmp_path / engine
        words = ["fit", tmp_path / "t.parquet", "--label", "found", "--out", out]
        result = probgap(*words, "--engine", engine, "--fast")
        assert result.exit_code == 0, result.stderr
        model = io.load(out / "model.probgap").pipeline_[-1]
        estimate, (low, high) = model.estimate_, model.estimate_.n_hidden_interval
        found = json.loads((out / "run.json").read_text())["found"]
        assert found["hidden"] == estimate.n_hidden
        assert tuple(found["hidden_interval"]) == (low, high)
        assert found["share_positive"] == model.estimate_.class_prior
        interval = model.estimate_.class_prior_interval
        assert tuple(found["share_interval"]) == interval
        if engine == "memory":
            scores = pd.read_csv(out / "scores.csv").sort_values("row")
            assert_allclose(scores["probability"], model.probability_, atol=1e-6)
            assert (
                scores["probability"]
                .between(
                    scores["probability_low"] - 1e-6, scores["probability_high"] + 1e-6
                )
                .all()
            )
        share = f"best estimate {estimate.class_prior:.1%}"
        assert share in model._repr_html_()
        headline = estimate.hidden_range.capitalize()
        headline += (
            f" more positives among {round(estimate.n_unlabelled)} unlabelled rows"
        )
        best = f"best estimate {estimate.n_hidden:,.0f}"
        for text in (
            f"\n{headline}\nBest estimate {estimate.n_hidden:>15,.0f}",  # terminal
            f"{estimate.hidden_range} (90% interval), {best}",  # notebook
            f"<h1>{headline}</h1>",  # page
        ):
            page = (out / "report.html").read_text(encoding="utf-8")
            assert text in result.stdout + model._repr_html_() + page
        assert found["headline"] == headline
        assert f"between {low:,.0f} and {high:,.0f}" == estimate.hidden_range
        shown[engine] = (estimate.n_hidden, low, high)
    assert shown["memory"] == shown["dask"]
