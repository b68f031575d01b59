import importlib
from pathlib import Path

import numpy as np
import pytest

from probgap.reweight import left_out_bound, risk_bound

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bound.py"


def test_theorem_5_by_hand():
    found = risk_bound(4, largest_weight=2.0, complexity=0.5, delta=np.exp(-2.0))
    assert found == pytest.approx(2.0 * (4.0 * 0.5 + 2.0) / 2.0)


def test_rows_left_out_count_as_lost():
    losses = np.repeat([1.0, 0.0, 0.5, 0.3], 100)
    selected = np.repeat([True, True, True, False], 100)
    found = left_out_bound(losses, selected, delta=2.0 / np.e)
    assert found.risk_selected == pytest.approx(0.5)
    assert (found.share_selected, found.share_left_out) == (0.75, 0.25)
    variance = np.var(np.where(selected, losses, 1.0), ddof=1)
    deviation = np.sqrt(2.0 * variance / 400.0) + 7.0 / (3.0 * 399.0)
    assert found.deviation == pytest.approx(deviation)
    assert found.value == pytest.approx(0.75 * 0.5 + 0.25 + deviation)
    assert found.n_rows == 400


def test_where_nothing_is_selected_the_bound_is_one():
    found = left_out_bound(np.zeros(50), np.zeros(50, dtype=bool))
    assert (found.value, found.risk_selected) == (1.0, 0.0)


@pytest.mark.parametrize("n", [100, 2000])
def test_the_bound_holds_in_95_of_100_draws_where_nothing_is_left_out(n):
    rng = np.random.default_rng(0)
    losses = rng.beta(
        0.5, 2.0, size=(1000, n)
    )  # mean 0.2: all slack is the deviation's
    found = [left_out_bound(row, np.ones(n), delta=0.5) for row in losses]
    holds = np.mean([bound.value >= 0.2 for bound in found])
    assert holds >= 0.5
    assert max(bound.deviation for bound in found) < 5.0 / np.sqrt(n)


@pytest.mark.skipif(
    not SCRIPT.exists(), reason="the benchmarks are not beside the tests"
)
@pytest.mark.parametrize(
    ("case", "most"), [("square linear", 2.5), ("rare-1", 2.0), ("rare-2", 3.0)]
)
def test_the_bound_holds_where_theorem_5_by_the_sample_fails(case, most, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    script = importlib.import_module("bound")
    monkeypatch.setattr(script, "N_FITS", 1)
    found = script.measure(case, 200)
    assert found["holds"] >= 0.95
    assert found["bound"] <= min(most * found["risk"], found["any"])
    assert not found["Theorem 5 fails"] <= 0.2  # NaN for the square


def test_theorem_5_holds_with_the_largest_weight_of_the_domain():
    # A point with half of the target's mass is in none of most samples: that the
    # classifier is wrong there costs 0.45, and the domain's weight allows for it.
    bound = risk_bound(1000, largest_weight=0.5 / 0.0005, complexity=np.sqrt(np.log(4)))
    assert bound > 0.45


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, r"n_samples must be a number of at least 1\. Got 0"),
        ({"largest_weight": 0.5}, "largest_weight must be a number of at least 1"),
        ({"complexity": None}, r"complexity must be a number of at least 0\. Got None"),
        ({"complexity": np.nan}, "complexity must be a number of at least 0"),
        ({"largest_loss": -1.0}, "largest_loss must be a number of at least 0"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\)\. Got 1\.0"),
    ],
)
def test_what_makes_no_theorem_is_refused(arguments, message):
    usual = {"n_samples": 9, "largest_weight": 1.0, "complexity": 1.0}
    with pytest.raises(ValueError, match=message):
        risk_bound(**(usual | arguments))


@pytest.mark.parametrize(
    ("losses", "selected", "message"),
    [
        ([1.5, 0.0], [1, 1], r"losses must lie in \[0, 1\]"),
        ([np.nan, 0.0], [1, 1], "Input losses contains NaN"),
        ([[0.5, 0.0]], [1, 1], "losses must have one value for each"),
        ([0.5], [1], r"losses must be of at least 2 rows\. Got 1"),
        ([0.5, 0.5], [1], "selected must have one entry for each of the 2"),
    ],
)
def test_what_makes_no_bound_is_refused(losses, selected, message):
    with pytest.raises(ValueError, match=message):
        left_out_bound(losses, selected)
