"""What the README says of accuracy, by the script that measured it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "accuracy.py"
if not SCRIPT.exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("accuracy", SCRIPT)
accuracy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(accuracy)


def measure(data, n_seeds, every):
    rates = accuracy.RATES[::every]
    rows = [accuracy.run(data, "platt", seed, rates) for seed in range(n_seeds)]
    return accuracy.average_cells([row for part in rows for row in part], data)


def gain(cells, method):
    return np.array([cell[method] - cell["naive SVM"] for cell in cells.values()])


def test_some_of_what_missing_labels_cost_is_won_back_in_short():
    cells = measure("square", n_seeds=1, every=6)
    # A test row that changes sides is an eighth of what can be won.
    assert accuracy.mean_share(cells, "PGPUClassifier()") > 0.3
    assert gain(cells, "PGPUClassifier()").min() > -0.01


def test_never_far_below_naive_on_breast_cancer_in_short():
    cells = measure("breast_cancer", n_seeds=1, every=9)
    assert gain(cells, "PGPUClassifier()").min() > -0.02


@pytest.mark.slow
@pytest.mark.parametrize(("data", "share"), [("triangles", 0.4), ("square", 0.8)])
def test_what_missing_labels_cost_is_won_back(data, share):
    cells = measure(data, n_seeds=5, every=1)
    assert accuracy.mean_share(cells, "PGPUClassifier()") >= share
    assert gain(cells, "PGPUClassifier()").min() > -0.01
    assert gain(cells, "PGPUClassifier.paper()").mean() > 0.0


@pytest.mark.slow
def test_never_a_point_below_naive_on_breast_cancer():
    cells = measure("breast_cancer", n_seeds=5, every=1)
    assert gain(cells, "PGPUClassifier()").min() >= -0.01
