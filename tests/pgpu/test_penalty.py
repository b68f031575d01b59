"""The choice of C: bold where held-out samples say so, and 1 where they do not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from probgap._core.features import KernelFeatures
from probgap._core.kernels import scale_gamma, spread_rows
from probgap.pgpu import _penalty
from probgap.pgpu._penalty import PENALTIES, choose_penalty

# Classes that overlap are judged by least squares, others by machines.
both_ways = pytest.mark.parametrize(
    "separability", [0.3, 0.9], ids=["least squares", "machines"]
)


@both_ways
def test_a_fine_border_without_noise_gets_a_large_penalty(separability):
    angle = np.random.default_rng(0).uniform(0.0, 6.0, (1200, 1))
    X = np.hstack([np.sin(3.0 * angle), np.cos(2.0 * angle)]) + 0.05 * angle
    positive = np.sin(9.0 * angle[:, 0]) > 0.0
    share = positive.astype(float)
    assert choose_penalty(X, share, positive, 0, separability=separability) >= 10.0


@both_ways
@pytest.mark.parametrize("seed", range(3))
def test_noise_in_many_dimensions_gets_the_least_penalty(seed, separability):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 20))
    flipped = rng.random(1000) < 0.2
    positive = (X.sum(axis=1) > 0.0) ^ flipped
    chosen = choose_penalty(
        X, positive.astype(float), positive, seed, separability=separability
    )
    assert chosen == PENALTIES[0]


@both_ways
def test_it_agrees_with_counting_held_out_errors_on_plain_labels(separability):
    X, y = make_moons(1000, noise=0.15, random_state=0)
    chosen = choose_penalty(X, y.astype(float), y == 1, 0, separability=separability)
    other, truth = make_moons(5000, noise=0.15, random_state=1)
    scores = {C: SVC(C=C).fit(X, y).score(other, truth) for C in PENALTIES}
    assert scores[chosen] >= max(scores.values()) - 0.01


@both_ways
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_shares_that_are_all_the_same_give_the_least_penalty(share, separability):
    X = np.arange(1000.0)[:, None]
    chosen = choose_penalty(
        X, np.full(1000, share), np.arange(1000) < 500, 0, separability=separability
    )
    assert chosen == PENALTIES[0]


def test_too_few_labelled_for_folds_give_the_least_penalty():
    angle = np.random.default_rng(0).uniform(0.0, 6.0, (1200, 1))
    X = np.hstack([np.sin(3.0 * angle), np.cos(2.0 * angle)]) + 0.05 * angle
    share = (np.sin(9.0 * angle[:, 0]) > 0.0).astype(float)
    two = np.arange(1200) < 2
    assert choose_penalty(X, share, two, 0, separability=1.0) == PENALTIES[0]
    # Not for want of something to gain.
    assert choose_penalty(X, share, share == 1, 0, separability=1.0) > PENALTIES[0]


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


@pytest.mark.parametrize("n", [70, 140], ids=["all looked at", "every other one"])
def test_the_closed_form_is_what_leaving_out_each_sample_gives(rng, monkeypatch, n):
    most = 70
    monkeypatch.setattr(_penalty, "_MOST_FOR_LEAST_SQUARES", most)
    monkeypatch.setattr(_penalty, "_N_LANDMARKS", 25)
    X, share = rng.normal(size=(n, 2)), rng.random(n)
    found = list(_penalty._by_least_squares(X, share, 5, n))
    rows = spread_rows(n, most)
    some, share = X[rows], share[rows]
    assert len(some) == most
    kernel = KernelFeatures.fit(some, 25, scale_gamma(some), 5)
    features = np.hstack([kernel.transform(some), np.full((most, 1), 10.0)])
    features = features.astype(np.float64)
    for penalty, chances in zip(PENALTIES, found, strict=True):
        ridge = most / (n * penalty) * np.eye(features.shape[1])
        for i in range(most):
            kept = np.arange(most) != i
            rest = features[kept]
            coef = np.linalg.solve(
                rest.T @ rest + ridge, rest.T @ (2.0 * share[kept] - 1.0)
            )
            score = features[i] @ coef
            assert abs(score) > 1e-5  # so that the side is no matter of rounding
            assert chances[i] == (share[i] if score > 0.0 else 1.0 - share[i])
    # The penalties must differ, or one closed form for all of them would pass.
    assert any((chances != found[0]).any() for chances in found[1:])


def test_machines_are_judged_on_folds_they_have_not_seen(monkeypatch):
    monkeypatch.setattr(_penalty, "_MOST_FOR_MACHINES", 150)
    X, y = make_moons(300, noise=0.3, random_state=0)
    labelled = y == 1
    share = 0.1 + 0.8 * y
    found = list(_penalty._by_machines(X, share, labelled, 4))
    rows = spread_rows(300, 150)
    X, y, share = X[rows], y[rows], share[rows]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=4).split(X, y))
    for C, right in zip(PENALTIES, found, strict=True):
        for train, test in folds:
            # Each sample as a positive and as a negative, as far as it is either.
            twice = np.vstack([X[train], X[train]])
            sides = np.repeat([1, 0], train.size)
            weight = np.append(share[train], 1.0 - share[train])
            peer = SVC(C=C).fit(twice, sides, sample_weight=weight)
            decision = peer.decision_function(X[test])
            sure = np.abs(decision) > 1e-2  # libsvm stops at 1e-3
            expected = np.where(decision > 0.0, share[test], 1.0 - share[test])
            assert_array_equal(right[test][sure], expected[sure])
            assert sure.mean() > 0.9


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([0.1, 0.2, 0.15], PENALTIES[2]),  # the best
        ([0.0, 0.0, 0.0], PENALTIES[0]),  # no gain, no change
        ([0.01, 0.01, 0.01], PENALTIES[0]),  # less than a standard error of 0.016
        ([0.01, 0.01, 0.02], PENALTIES[3]),  # more than that
        ([-0.01, 0.2, 0.1], PENALTIES[2]),  # not clearly worse: the next may be better
        ([-0.1, 0.2, 0.2], PENALTIES[0]),  # clearly worse: nobody looks further
    ],
)
def test_one_is_left_only_for_a_clear_gain(monkeypatch, gains, expected):
    by_turns = np.where(np.arange(1000) % 2 == 0, 0.5, -0.5)
    chances = [np.zeros(1000), *(gain + by_turns for gain in gains)]
    monkeypatch.setattr(_penalty, "_by_least_squares", lambda *_: iter(chances))
    X, labelled = np.zeros((1000, 1)), np.arange(1000) < 500
    chosen = choose_penalty(X, np.full(1000, 0.5), labelled, 0, separability=0.0)
    assert chosen == expected


def test_the_same_seed_gives_the_same_choice_of_many_samples(monkeypatch):
    monkeypatch.setattr(_penalty, "_MOST_FOR_LEAST_SQUARES", 1200)
    X, y = make_moons(3000, noise=0.2, random_state=0)
    share = y.astype(float)
    once, again = (
        list(_penalty._by_least_squares(X, share, 3, 3000)) for _ in range(2)
    )
    assert_array_equal(once, again)
    assert len(once[0]) == 1200


def test_single_precision_chooses_alike():
    X, y = make_moons(1000, noise=0.2, random_state=0)
    share = 0.1 + 0.8 * y
    double, single = (
        np.mean(list(_penalty._by_least_squares(Z, share, 3, 1000)), axis=1)
        for Z in (X, X.astype(np.float32))
    )
    assert_allclose(single, double, atol=2e-3)
