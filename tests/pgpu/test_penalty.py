"""The choice of C: bold where held-out samples say so, and 1 where they do not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from probgap.pgpu._penalty import PENALTIES, choose_penalty


def test_a_fine_border_without_noise_gets_a_large_penalty():
    angle = np.random.default_rng(0).uniform(0.0, 6.0, (1200, 1))
    X = np.hstack([np.sin(3.0 * angle), np.cos(2.0 * angle)]) + 0.05 * angle
    positive = np.sin(9.0 * angle[:, 0]) > 0.0
    assert (
        choose_penalty(X, positive.astype(float), positive, 0, separability=0.3) >= 10.0
    )


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_many_dimensions_gets_the_least_penalty(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 20))
    flipped = rng.random(1000) < 0.2
    positive = (X.sum(axis=1) > 0.0) ^ flipped
    share = positive.astype(float)
    assert choose_penalty(X, share, positive, seed, separability=0.0) == PENALTIES[0]
    assert choose_penalty(X, share, positive, seed, separability=0.9) == PENALTIES[0]


def test_it_agrees_with_counting_held_out_errors_on_plain_labels():
    X, y = make_moons(1000, noise=0.15, random_state=0)
    chosen = choose_penalty(X, y.astype(float), y == 1, 0, separability=0.0)
    other, truth = make_moons(5000, noise=0.15, random_state=1)
    scores = {C: SVC(C=C).fit(X, y).score(other, truth) for C in PENALTIES}
    assert scores[chosen] >= max(scores.values()) - 0.01


@pytest.mark.parametrize("n_labelled", [2, 500], ids=["two labelled", "no negatives"])
def test_too_little_to_choose_by_gives_the_least_penalty(n_labelled):
    X = np.arange(1000.0)[:, None]
    labelled = np.arange(1000) < n_labelled
    assert choose_penalty(X, np.ones(1000), labelled, 0, separability=1.0) == 1.0


def test_with_few_samples_it_goes_by_how_well_the_classes_part():
    X = np.arange(40.0)[:, None]
    labelled = np.arange(40) < 20
    chosen = [
        choose_penalty(
            X, labelled.astype(float), labelled, 0, separability=separability
        )
        for separability in (0.0, 0.5, 1.0)
    ]
    assert chosen == pytest.approx([1.0, 10.0**0.5, 10.0])


def test_many_samples_are_thinned_out_the_same_way_each_time():
    X, y = make_moons(3000, noise=0.2, random_state=0)
    choices = {
        choose_penalty(X, y.astype(float), y == 1, 3, separability=0.5)
        for _ in range(2)
    }
    assert len(choices) == 1
