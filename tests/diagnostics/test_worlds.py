"""Worlds: truths that labels allow, labels drawn again, and methods judged by them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
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
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, again = draw_world(reading, scores - 6.0, few, 0.9, rng)
        assert not (again & ~truth).any()
        assert again.sum() == min(8, truth.sum() - 1)


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


def test_worlds_are_ordered_and_a_method_that_failed_is_not_the_best(square):
    X, _, _, s = square
    options = {"n_worlds": 3, "random_state": 0}
    boosting = ["naive boosted trees"]  # does not take sparse samples
    found = compare_worlds(csr_array(X), s == 1, methods=boosting, **options)
    assert found.best is None
    assert "dense data is required" in found.methods[0]["error"]
    priors = [world.class_prior for world in found.worlds]
    assert priors == sorted(priors)


@pytest.mark.parametrize("kept", [4, 146])
def test_tables_of_which_little_can_be_held_out_are_compared(square, kept):
    X, y_true, _, _ = square
    labelled = np.argsort(-y_true[:150], kind="stable") < kept
    options = {"methods": ["naive SVM"], "n_worlds": 2, "random_state": 0}
    assert compare_worlds(X[:150], labelled, **options).best == "naive SVM"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_worlds": 0}, r"n_worlds must be an integer of at least 1\. Got 0"),
        ({"n_worlds": 2.5}, r"n_worlds must be an integer of at least 1\. Got 2\.5"),
        ({"n_splits": 1}, r"n_splits must be at least 2\. Got 1"),
    ],
)
def test_numbers_of_worlds_and_folds_are_checked(square, options, message):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=message):
        compare_worlds(X, s == 1, **options)


def test_too_few_labels_are_refused_before_worlds_are_drawn(square):
    X, _, _, s = square
    few = np.cumsum(s == 1) * (s == 1)
    for n_splits, n_labelled in ((2, 3), (3, 2)):
        labelled = (few > 0) & (few <= n_labelled)
        fewest = rf"at least {n_labelled + 1} rows .+ in {n_splits} folds\. Got {n_labelled} "
        with pytest.raises(InvalidInputError, match=fewest):
            compare_worlds(X, labelled, n_splits=n_splits)
