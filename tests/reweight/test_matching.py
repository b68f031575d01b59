"""Kernel mean matching as settings: weigh what was chosen so that it stands for all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from probgap._core.kernels import KernelFeatures, TrainingFeatures
from probgap.exceptions import ProbgapWarning
from probgap.reweight import KernelMeanMatching, kernel_mean_matching


@pytest.fixture
def biased(rng):
    X = rng.normal(size=(300, 2))
    return X, rng.random(300) < 1.0 / (1.0 + np.exp(2.0 * X[:, 0]))


def test_the_chosen_stand_for_all(biased):
    X, chosen = biased
    result = KernelMeanMatching(upper=20.0).match(X, chosen)
    expected = kernel_mean_matching(X[chosen], X, upper=20.0)
    assert_array_equal(result.weights, expected.weights)
    before = X[chosen].mean(axis=0) - X.mean(axis=0)
    after = np.average(X[chosen], axis=0, weights=result.weights) - X.mean(axis=0)
    assert np.linalg.norm(after) < 0.2 * np.linalg.norm(before)


def test_all_of_them_are_left_alone(biased):
    X, _ = biased
    result = KernelMeanMatching().match(X, np.ones(300, dtype=bool))
    assert_array_equal(result.weights, 1.0)


def test_samples_that_stand_for_several(biased):
    X, chosen = biased
    weight = np.where(X[:, 0] > 0.0, 3.0, 1.0)
    plain, heavy = (
        KernelMeanMatching(upper=20.0).match(X, chosen, weight=w).weights
        for w in (None, weight)
    )
    right = X[chosen, 0] > 0.0
    assert heavy[right].sum() > 1.2 * plain[right].sum()


def test_selections_are_matched_together(biased):
    X, chosen = biased
    matching = KernelMeanMatching(upper=20.0)
    [result] = matching.match_each(X, [chosen])
    assert_allclose(result.objective, matching.match(X, chosen).objective, atol=1e-6)


def test_weights_that_rest_on_few_samples_are_no_estimate(rng):
    X = np.vstack([rng.normal(size=(200, 1)), rng.normal(9.0, 0.1, (200, 1))])
    chosen = np.arange(400) < 200
    chosen[200] = True
    with pytest.warns(ProbgapWarning, match="effective sample size is"):
        KernelMeanMatching(gamma=0.5, slack=2.0).match(X, chosen)


@pytest.mark.parametrize("sampled", [False, True])
def test_means_of_kernel_features_are_matched(biased, sampled):
    X, chosen = biased
    rows = np.arange(0, 300, 2) if sampled else slice(None)
    features = KernelFeatures.fit(X, 100, 0.5, 0)
    held = TrainingFeatures(
        features,
        features.transform(X[rows]),
        rows=rows,
        weight=np.full(150, 2.0) if sampled else None,
    )
    matching = KernelMeanMatching(upper=20.0)
    result = matching.match(X, chosen, features=held)
    assert result.weights.size == chosen.sum()
    after = np.average(X[chosen], axis=0, weights=result.weights) - X.mean(axis=0)
    assert np.linalg.norm(after) < 0.25
