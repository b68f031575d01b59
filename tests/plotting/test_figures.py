"""Figures: the numbers that they show, in every form of them."""

import base64
import re
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from numpy.testing import assert_allclose

from probgap import PGPUClassifier
from probgap.boundary import Boundary
from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.plotting import draw_boundary, draw_gaps, draw_relabelling
from probgap.relabel import Relabelling, relabel

pytest.importorskip("pandas")
GAP, LABELLED = np.array([-0.9, -0.8, -0.3, 0.6, 0.7]), np.array([0, 0, 0, 0, 1])


@pytest.fixture(scope="module")
def model(square):
    X, _, _, s = square
    return PGPUClassifier(boundary=-0.5, random_state=0).fit(X, s)


def figures(model, s):
    gap, bound = model.observed_gap_, model.boundary_
    parts = (gap, s, model.relabelling_)
    weights = {"sample_weight": model.sample_weight_, "boundary": bound}
    return [
        draw_gaps(gap, s, boundary=bound),
        draw_boundary(gap, s, boundary=bound),
        draw_relabelling(*parts, **weights),
    ]


def test_a_figure_is_one_file_one_image_and_a_part_of_a_page(model, square):
    for figure in figures(model, square[3]):
        root = ET.fromstring(figure.svg())
        assert root.get("aria-label") == figure.label
        assert len(list(root.iter())) > 8
        assert not re.search("https?://(?!www.w3.org/2000/svg)|<script", figure.svg())
        data = re.search(
            'src="data:image/svg[+]xml;base64,([^"]*)"', figure._repr_html_()
        )
        assert base64.b64decode(data[1]).decode() == figure.svg()
        assert figure.label in repr(figure)
        for place in re.findall(r'[xy12]="([\d.-]+)%"', figure.inline()):
            assert 0.0 <= float(place) <= 100.0


def test_bars_hold_every_row(model, square):
    _, _, _, s = square
    table = draw_gaps(model.observed_gap_, s, n_bins=11).frame()
    assert len(table) == 11
    assert table["labelled"].sum() == s.sum()
    assert table["unlabelled"].sum() == (1 - s).sum()
    assert (table["gap_low"][1:].to_numpy() == table["gap_high"][:-1]).all()
    with pytest.raises(InvalidInputError, match=r"n_bins must be .* Got 0"):
        draw_gaps(GAP, LABELLED, n_bins=0)


def test_a_bar_that_dwarfs_the_others_is_cut_and_says_so():
    gap = np.r_[np.full(5000, -0.99), np.linspace(-0.9, 0.9, 200)]
    drawn = draw_gaps(gap, gap > 0.5).inline()
    assert "\N{UPWARDS ARROW} 5,0" in drawn
    assert "\N{UPWARDS ARROW}" not in draw_gaps(GAP, LABELLED).inline()


def test_the_undecided_zone_is_shaded_where_there_is_one():
    assert 'class="zone"' in draw_gaps(GAP, LABELLED, boundary=-0.5).inline()
    for bound in (None, 0.3):
        assert 'class="zone"' not in draw_gaps(GAP, LABELLED, boundary=bound).inline()
    assert "boundary" not in draw_gaps(GAP, LABELLED).inline()


def test_curves_are_shares_below_each_boundary(model, square):
    _, _, _, s = square
    gap = model.observed_gap_
    table = draw_boundary(gap, s, boundary=model.boundary_).frame()
    for place in (0, 60, 200):
        row = table.iloc[place]
        below = gap <= row["boundary"]
        assert row["unlabelled_negative"] == pytest.approx(below[s == 0].mean())
        assert row["labelled_negative"] == pytest.approx(below[s == 1].mean())
    assert table["labelled_negative"].is_monotonic_increasing


def test_a_boundary_knows_how_far_it_moves():
    known = Boundary(-0.5, "auto", 0.1, 2, 1, 2)
    widths = [
        float(re.search('class="zone"[^>]* width="([^%]*)%', drawn.inline())[1])
        for drawn in (
            draw_boundary(GAP, LABELLED, boundary=known),
            draw_boundary(GAP, LABELLED, boundary=-0.5),
        )
    ]
    assert widths == [10.0, 0.0]
    with pytest.raises(InvalidInputError, match="no labelled"):
        draw_boundary(GAP, np.zeros(5), boundary=-0.5)


@pytest.mark.parametrize("rule", ["auto", -0.5])
def test_what_a_row_counts_for_is_its_weight(rule, square, square_model, model):
    _, _, _, s = square
    fitted = square_model if rule == "auto" else model
    parts = (fitted.observed_gap_, s, fitted.relabelling_)
    weight = fitted.sample_weight_
    table = draw_relabelling(*parts, sample_weight=weight).frame()
    assert_allclose(table["as_positive"] + table["as_negative"], weight)
    undecided = table["relabelled"] == "undecided"
    assert undecided.sum() == fitted.relabelling_.n_undecided
    assert (table["as_positive"][undecided] == 0).all()
    assert table["labelled"].sum() == s.sum()


def test_many_points_are_thinned_out_and_the_table_is_not(rng):
    gap = rng.uniform(-1, 1, 20_000)
    result = relabel(gap, gap > 0.5, lower=-0.5)
    figure = draw_relabelling(gap, gap > 0.5, result, boundary=-0.5)
    assert 1800 < figure.inline().count("<circle") <= 2000
    assert len(figure.frame()) == 20_000


def test_relabelling_refuses_what_does_not_fit():
    result = Relabelling(np.zeros(3, np.int8), np.zeros(3))
    with pytest.raises(InvalidInputError, match=r"relabelling must have .* Got 3"):
        draw_relabelling(GAP, LABELLED, result)
    result = relabel(GAP, LABELLED, lower=-0.5)
    with pytest.raises(InvalidInputError, match=r"sample_weight must have .* Got 2"):
        draw_relabelling(GAP, LABELLED, result, sample_weight=[1, 2])


def test_without_pandas_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingLibraryError, match=r"pandas .*probgap\[report\]"):
        draw_gaps(GAP, LABELLED).frame()
