"""What the default wins back on labellings of the paper, by the benchmark that measures it."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
sys.path.append(str(FOLDER))

import default
import pandas as pd
import tables


def measure(cells, methods=tuple(default.METHODS)):
    rows = [cell | row for cell in cells for row in default.measure_cell(cell, methods)]
    rows = default.add_losses(pd.DataFrame(rows))
    return dict(list(rows.groupby("method")))


def cells_of(data, half, panel, n_seeds):
    return [
        cell for cell in tables.cells(half, [panel], n_seeds) if cell["data"] == data
    ]


def worst_gain(rows):
    return rows.groupby("labelling")["gain"].mean().min()


def test_some_of_what_missing_labels_cost_is_won_back_in_short():
    cells = cells_of("square", "choosing", "sharp", n_seeds=1)
    found = measure(cells[:4:3])["default"]  # most labelled
    # A test row that changes sides is a thirtieth of what can be won.
    assert default.shares(found)["square"] > 0.3
    assert worst_gain(found) > -0.01


def test_never_far_below_naive_on_breast_cancer_in_short():
    cells = cells_of("breast_cancer", "choosing", "high", n_seeds=1)
    assert worst_gain(measure(cells[::3])["default"]) > -0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "half"), [("triangles", "reporting"), ("square", "choosing")]
)
def test_what_missing_labels_cost_is_won_back(data, half):
    cells = cells_of(data, half, "sharp", n_seeds=5)
    found = measure(cells, [*default.METHODS, "paper"])
    assert default.shares(found["default"])[data] >= 0.6
    assert worst_gain(found["default"]) > -0.01
    assert found["paper"]["gain"].mean() > 0.0


@pytest.mark.slow
def test_never_a_point_below_naive_on_breast_cancer():
    cells = cells_of("breast_cancer", "choosing", "high", n_seeds=5)
    assert worst_gain(measure(cells)["default"]) >= -0.01
