"""The network of the package can be made again: a reduced run behaves."""

import numpy as np
import pytest

pytest.importorskip("torch")

from probgap.reading._hidden_positives import interval_of_share
from probgap.reading.network import as_network
from research.reading import train

SMALL = {"N_NETWORKS": 1, "N_CURVES": 6, "N_HIDDEN": 32, "EPOCHS": 15, "BATCH": 32}


@pytest.fixture(scope="module")
def tasks():
    """Tasks of one number only: the higher it is, the more are hidden."""
    rng = np.random.default_rng(0)
    n = 1200
    level = rng.uniform(0.05, 0.9, n)
    rows = np.full((n, train.N_BINS), 8, dtype=np.uint16)
    positives = rng.binomial(8, level[:, None], size=rows.shape).astype(np.uint16)
    return {
        "summary": np.column_stack([level, rng.normal(size=n), rng.normal(size=n)]),
        "log_odds": np.tile(np.linspace(-3.0, 3.0, train.N_BINS), (n, 1)),
        "rows": rows,
        "positives": positives,
        "n_hidden": positives.sum(axis=1),
        "family": np.zeros((n, 3), dtype=np.int64),
    }


def test_a_reduced_regeneration_learns_what_there_is(tasks, monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(train, name, value)
    network = as_network(train.fit_networks(tasks, seed=0))
    covered, errors = [], []
    for row in range(0, 1200, 8):
        curves = network.curves(tasks["summary"][row])
        log_odds, n_rows = tasks["log_odds"][row], 8 * train.N_BINS
        share = tasks["n_hidden"][row] / n_rows
        errors.append(curves.mean(log_odds).mean() - share)
        low, high = interval_of_share(curves, log_odds, n_rows)
        covered.append(low <= share <= high)
    assert np.abs(errors).mean() < 0.08
    assert np.mean(covered) > 0.8


def test_tasks_are_simulated_and_described():
    found = train.simulate_tasks(first=0, count=3, jobs=1)
    assert found["summary"].shape[0] == 3
    assert (found["positives"].sum(axis=1) == found["n_hidden"]).all()
