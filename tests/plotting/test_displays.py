"""Every picture can give its table, and the picture shows what the table says."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.boundary import MeanSmallest, estimate_boundary
from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.plotting import BoundaryDisplay, GapDisplay, RelabellingDisplay
from probgap.relabel import Relabelling, relabel

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
pytest.importorskip("pandas")

DISPLAYS = [GapDisplay, BoundaryDisplay, RelabellingDisplay]
GAP = np.array([-0.9, -0.8, -0.3, 0.6, 0.7])
LABELLED = np.array([False, False, False, False, True])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted(square):
    X, _, _, s = square
    return PGPUClassifier(boundary=-0.5, random_state=0).fit(X, s), X, s


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_keep_the_convention(display, fitted):
    model, X, s = fitted
    _, ax = plt.subplots()
    shown = display.from_estimator(model, X, s, ax=ax)
    assert isinstance(shown, display)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    again = shown.plot()
    assert again is shown
    assert shown.ax_ is not ax
    shown.figure_.canvas.draw()
    assert len(shown.frame()) > 0


@pytest.mark.parametrize("display", DISPLAYS)
def test_training_samples_are_shown_by_their_held_out_gaps(display, fitted):
    model, _, s = fitted
    shown = display.from_estimator(model, None, s)
    assert_array_equal(shown.observed_gap, model.observed_gap_)
    assert_array_equal(shown.labelled, s == 1)
    assert shown.boundary == model.boundary_.value


@pytest.mark.parametrize("display", [GapDisplay, BoundaryDisplay])
def test_other_samples_are_shown_by_the_gap_estimator(display, fitted):
    model, X, s = fitted
    shown = display.from_estimator(model, X[:50], s[:50])
    assert_array_equal(shown.observed_gap, model.gap_estimator_.transform(X[:50])[:, 0])


def test_pipelines_and_words_for_labels_are_welcome(square):
    X, _, _, s = square
    words_for = np.where(s == 1, "fraud", "none")
    classifier = PGPUClassifier(
        pos_label="fraud",
        gap_estimator=LogisticRegression(),
        estimator=LogisticRegression(),
        random_state=0,
    )
    model = make_pipeline(StandardScaler(), classifier).fit(X, words_for)
    missing = np.where(s == 1, "fraud", None)
    for display in DISPLAYS:
        for y in (words_for, missing):
            assert_array_equal(display.from_estimator(model, X, y).labelled, s == 1)


def test_a_search_is_shown_too(square):
    X, _, _, s = square
    search = PGPUClassifierCV.paper(boundaries=[-0.8, -0.6], cv=3, random_state=0)
    model = search.fit(X, s)
    for display in DISPLAYS:
        assert display.from_estimator(model, X, s).boundary in (-0.8, -0.6)


@pytest.mark.parametrize("display", DISPLAYS)
def test_other_estimators_are_refused(display, square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"Got LogisticRegression"):
        display.from_estimator(LogisticRegression().fit(X, s), X, s)
    with pytest.raises(ValueError, match=r"not fitted"):
        display.from_estimator(PGPUClassifier(), X, s)


@pytest.mark.parametrize("display", DISPLAYS)
def test_labels_must_belong_to_the_samples(display, fitted):
    model, _, s = fitted
    with pytest.raises(InvalidInputError, match=r"400 samples. Got shape \(399,\)"):
        display.from_estimator(model, None, s[:-1])


def test_bars_are_what_the_table_says():
    shown = GapDisplay.from_predictions(GAP, LABELLED, boundary=-0.5, n_bins=4)
    table = shown.frame(n_bins=4)
    assert table["unlabelled"].tolist() == [2, 1, 0, 1]
    assert table["labelled"].tolist() == [0, 0, 0, 1]
    assert table["zone"].tolist() == ["negative", "undecided", "positive", "positive"]
    unlabelled, labelled = shown.bars_
    assert [bar.get_height() for bar in unlabelled] == [2, 1, 0, 1]
    assert [bar.get_y() for bar in labelled] == [2, 1, 0, 1]
    assert words(shown.ax_)[:2] == ["labelled", "unlabelled"]
    assert "boundary \N{MINUS SIGN}0.50" in words(shown.ax_)
    assert "zone" not in GapDisplay.from_predictions(GAP, LABELLED).frame()


def test_every_sample_is_in_a_bar(rng):
    gap = np.append(rng.uniform(-1, 1, 98), [-1.0 - 1e-12, 1.0])
    table = GapDisplay.from_predictions(gap, rng.random(100) < 0.3).frame(n_bins=7)
    assert table[["unlabelled", "labelled"]].to_numpy().sum() == 100


def test_a_bar_that_dwarfs_the_others_is_cut_and_says_so():
    gap = np.concatenate([np.full(1000, -0.99), np.linspace(-0.9, 0.9, 50)])
    shown = GapDisplay.from_predictions(gap, gap > 0.5, boundary=-0.5)
    notes = [text.get_text() for text in shown.ax_.texts]
    assert notes == ["\N{UPWARDS ARROW} 1,000"]
    assert shown.ax_.get_ylim()[1] < 10
    even = GapDisplay.from_predictions(np.linspace(-1, 1, 50), np.arange(50) > 25)
    assert not even.ax_.texts
    alone = GapDisplay.from_predictions([-0.99, -0.99], [0, 1])
    assert alone.ax_.get_ylim()[1] > 2


def test_bins_must_be_positive():
    with pytest.raises(InvalidInputError, match=r"n_bins must be at least 1. Got 0"):
        GapDisplay.from_predictions(GAP, LABELLED, n_bins=0)


def test_curves_are_what_the_table_says(fitted):
    model, _, s = fitted
    shown = BoundaryDisplay.from_estimator(model, None, s)
    table = shown.frame()
    for line, column in zip(
        shown.lines_, ("unlabelled_negative", "labelled_negative"), strict=True
    ):
        assert_allclose(line.get_ydata(), table[column])
        assert (np.diff(table[column]) >= 0).all()
    here = shown.frame(at=[model.boundary_.value])
    assert here["labelled_negative"][0] == np.mean(
        model.observed_gap_[s == 1] <= model.boundary_.value
    )


def test_a_spread_is_shown_where_there_is_one():
    some = np.append(GAP, [-0.6, -0.5])
    boundary = estimate_boundary(some, some > -0.65, rule=MeanSmallest(1))
    shown = BoundaryDisplay.from_predictions(GAP, GAP > 0, boundary=boundary)
    assert any("spread" in word for word in words(shown.ax_))
    shown = BoundaryDisplay.from_predictions(GAP, GAP > 0, boundary=-0.5)
    assert not any("spread" in word for word in words(shown.ax_))


def test_a_boundary_needs_both_kinds():
    with pytest.raises(InvalidInputError, match=r"Got no labelled sample"):
        BoundaryDisplay.from_predictions(GAP, np.zeros(5), boundary=-0.5)


def test_counts_are_what_became_of_samples(fitted):
    model, X, s = fitted
    table = RelabellingDisplay.from_estimator(model, X, s).frame()
    result = model.relabelling_
    assert table.to_numpy().sum() == s.size
    assert table["positive"].sum() == result.n_positive
    assert table["undecided"].sum() == result.n_undecided
    assert table["negative"].sum() == result.n_negative
    assert table.loc["labelled"].sum() == s.sum()


@pytest.mark.parametrize("rule", ["auto", -0.5])
def test_what_a_sample_counts_for_is_its_weight(rule, square, square_model, fitted):
    X, _, _, s = square
    model = square_model if rule == "auto" else fitted[0]
    shown = RelabellingDisplay.from_estimator(model, X, s, kind="training")
    table = shown.frame(kind="training")
    assert_allclose(table["as_positive"] + table["as_negative"], model.sample_weight_)
    undecided = table["relabelled"] == "undecided"
    assert undecided.sum() == model.relabelling_.n_undecided
    assert (table["as_positive"][undecided] == 0).all()


def test_many_points_are_thinned_out_and_the_table_is_not(rng):
    gap = rng.uniform(-1, 1, 20_000)
    result = relabel(gap, gap > 0.5, lower=-0.5)
    shown = RelabellingDisplay.from_predictions(
        gap, gap > 0.5, result, boundary=-0.5, kind="training"
    )
    drawn = sum(len(dots.get_offsets()) for dots in shown.ax_.collections)
    assert 4500 < drawn <= 5000
    assert len(shown.frame(kind="training")) == 20_000


def test_relabelling_refuses_what_does_not_fit(fitted):
    model, X, s = fitted
    result = Relabelling(np.zeros(3, np.int8), np.zeros(3))
    with pytest.raises(InvalidInputError, match=r"relabelling must have .* Got 3"):
        RelabellingDisplay.from_predictions(GAP, LABELLED, result)
    result = relabel(GAP, LABELLED, lower=-0.5)
    with pytest.raises(InvalidInputError, match=r"sample_weight must have .* Got 2"):
        RelabellingDisplay.from_predictions(GAP, LABELLED, result, sample_weight=[1, 2])
    with pytest.raises(InvalidInputError, match=r"kind must be one of .* Got 'pie'"):
        RelabellingDisplay.from_predictions(GAP, LABELLED, result, kind="pie")
    with pytest.raises(InvalidInputError, match=r"400 samples .* Got 10 samples"):
        RelabellingDisplay.from_estimator(model, X[:10], s)


@pytest.mark.parametrize("style", ["dark_background", "ggplot"])
@pytest.mark.parametrize("display", DISPLAYS)
def test_any_style_will_do(style, display, fitted):
    model, _, s = fitted
    with plt.style.context(style):
        shown = display.from_estimator(model, None, s)
        shown.figure_.canvas.draw()


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError, match=r"matplotlib .*probgap\[report\]"):
        GapDisplay.from_predictions(GAP, LABELLED)
