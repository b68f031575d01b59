"""Simulated tasks are what they are said to be."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from research.reading.simulator import FAMILIES, simulate
from research.reading.train import describe


def overlap(posterior):
    """Return 0 where classes are separable, 1 where features say nothing."""
    prior = posterior.mean()
    return np.mean(posterior * (1.0 - posterior)) / (prior * (1.0 - prior))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, known in FAMILIES.items() for name in known],
)
def test_every_family_gives_tasks(kind, name):
    for seed in range(3):
        task = simulate(seed, {kind: (name,)})
        assert task.families[kind] == name
        assert np.isfinite(task.X).all()
        assert 100 <= len(task.X) <= 10_000
        assert not (task.labelled & ~task.positive).any()
        assert task.labelled.sum() >= 8
        assert (~task.labelled).sum() >= 20
        assert ((task.posterior >= 0.0) & (task.posterior <= 1.0)).all()


def test_a_seed_determines_a_task():
    one, other = simulate(5), simulate(5)
    assert_array_equal(one.X, other.X)
    assert_array_equal(one.labelled, other.labelled)
    assert not np.array_equal(simulate(6).posterior[:50], one.posterior[:50])


def test_tasks_differ_in_what_a_user_may_meet():
    tasks = [simulate(seed) for seed in range(200)]
    priors = [task.positive.mean() for task in tasks]
    rates = [task.labelled.sum() / task.positive.sum() for task in tasks]
    overlaps = [overlap(task.posterior) for task in tasks]
    assert min(priors) < 0.05
    assert max(priors) > 0.75
    assert min(rates) < 0.1
    assert max(rates) == 1.0
    assert min(overlaps) < 0.1
    assert max(overlaps) > 0.9


def test_true_labels_follow_the_posterior():
    tasks = [simulate(seed) for seed in range(100)]
    off = [
        (task.positive.sum() - task.posterior.sum())
        / np.sqrt((task.posterior * (1.0 - task.posterior)).sum() + 1e-9)
        for task in tasks
        if (task.posterior * (1.0 - task.posterior)).sum() > 5.0
    ]
    assert abs(np.mean(off)) < 0.5
    assert 0.6 < np.std(off) < 1.5


def test_a_description_counts_the_hidden():
    task, found = simulate(3), describe(3)
    assert found["rows"].sum() == (~task.labelled).sum()
    assert found["positives"].sum() == found["n_hidden"]
    assert (found["positives"] <= found["rows"]).all()
    assert np.isfinite(found["summary"]).all()
