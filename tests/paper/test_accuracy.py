"""What the default wins back on the paper's labellings, by the benchmark that measures it."""

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


def measure(data, n_seeds, every, methods=tuple(default.METHODS)):
    rates = list(tables.PAPER)[::every]
    rows = [
        cell | row
        for cell in tables.cells("paper", ["high"], n_seeds)
        if cell["data"] == data and cell["labelling"] in rates
        for row in default.measure_cell(cell, methods)
    ]
    rows = default.add_losses(pd.DataFrame(rows))
    return dict(list(rows.groupby("method")))


def worst_gain(rows):
    return rows.groupby("labelling")["gain"].mean().min()


def test_some_of_what_missing_labels_cost_is_won_back_in_short():
    found = measure("square", n_seeds=1, every=6)["default"]
    # A test row that changes sides is a thirtieth of what can be won.
    assert default.shares(found)["square"] > 0.3
    assert worst_gain(found) > -0.01


def test_never_far_below_naive_on_breast_cancer_in_short():
    found = measure("breast_cancer", n_seeds=1, every=9)["default"]
    assert worst_gain(found) > -0.02


@pytest.mark.slow
@pytest.mark.parametrize(("data", "share"), [("triangles", 0.6), ("square", 0.6)])
def test_what_missing_labels_cost_is_won_back(data, share):
    found = measure(data, n_seeds=5, every=1, methods=[*default.METHODS, "paper"])
    assert default.shares(found["default"])[data] >= share
    assert worst_gain(found["default"]) > -0.01
    assert found["paper"]["gain"].mean() > 0.0


@pytest.mark.slow
def test_never_a_point_below_naive_on_breast_cancer():
    found = measure("breast_cancer", n_seeds=5, every=1)["default"]
    assert worst_gain(found) >= -0.01
