"""Worlds: truths that labels allow, labels drawn again, and methods judged by them."""

import numpy as np
import pytest
from scipy.special import expit

from probgap.diagnostics import compare_worlds
from probgap.diagnostics._worlds import draw_world
from probgap.exceptions import InvalidInputError
from probgap.reading import read


@pytest.fixture(scope="module")
def scored():
    """Log-odds of being labelled, and labels: four in ten of the positives."""
    rng = np.random.default_rng(0)
    positive = rng.random(4000) < 0.4
    x = rng.normal(2.5 * positive)
    density = np.exp(-0.5 * (x - 2.5) ** 2) * 0.4
    posterior = density / (density + 0.6 * np.exp(-0.5 * x**2))
    labelled = positive & (rng.random(4000) < 0.4)
    return np.log(0.4 * posterior) - np.log1p(-0.4 * posterior), labelled


def test_a_world_agrees_with_the_labels(scored):
    scores, labelled = scored
    reading = read(scores, labelled)
    rng = np.random.default_rng(1)
    truths, again = zip(
        *(draw_world(reading, scores, labelled, 0.5, rng) for _ in range(20)),
        strict=True,
    )
    assert all((truth >= labelled).all() for truth in truths)
    assert all(
        (truth >= drawn).all() for truth, drawn in zip(truths, again, strict=True)
    )
    # Labels drawn again are as frequent at each score as those of the table.
    frequency, expected = np.mean(again, axis=0), expit(reading.log_odds(scores))
    for part in np.array_split(np.argsort(scores), 8):
        deviation = np.sqrt(expected[part].mean() / (20 * part.size)) + 0.02
        assert frequency[part].mean() == pytest.approx(
            expected[part].mean(), abs=4 * deviation
        )


def test_worlds_span_the_interval_of_the_count(scored):
    scores, labelled = scored
    reading = read(scores, labelled)
    rng = np.random.default_rng(1)
    counts = [
        int((draw_world(reading, scores, labelled, level, rng)[0] & ~labelled).sum())
        for level in (0.02, 0.5, 0.98)
    ]
    low, high = reading.n_hidden_interval
    assert counts == sorted(counts)
    assert counts[0] < low + 0.2 * (high - low)
    assert low < counts[1] < high
    assert counts[2] > high - 0.2 * (high - low)


def test_few_labels_are_made_up_by_the_clearest(scored):
    scores, labelled = scored
    few = labelled & (np.cumsum(labelled) <= 3)
    reading = read(scores - 6.0, few)
    truth, again = draw_world(reading, scores - 6.0, few, 0.9, np.random.default_rng(0))
    assert 2 <= again.sum() < truth.sum()


def test_methods_are_compared_world_by_world(square):
    X, _, _, s = square
    rows, options = np.arange(150), {"n_worlds": 2, "random_state": 3}
    methods = ["naive SVM", "Elkan-Noto", "Natarajan"]
    found = compare_worlds(X[rows], s[rows] == 1, methods=methods, **options)
    assert len(found.worlds) == 2
    assert {row["method"] for row in found.methods} == set(methods)
    means = [row["accuracy"] for row in found.methods]
    assert means == sorted(means, reverse=True)
    assert found.best == found.methods[0]["method"]
    by_hand = [
        np.mean([world.methods[at]["accuracy"] for world in found.worlds])
        for at in range(3)
    ]
    assert max(by_hand) == pytest.approx(means[0])
    assert sum(row["n_best"] for row in found.methods) >= 2


def test_the_number_of_worlds_is_checked(square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"n_worlds must be at least 1. Got 0"):
        compare_worlds(X, s == 1, n_worlds=0)
