"""Samples of overlapping classes, and torch's own processor to solve on."""

import numpy as np
import pytest
from scipy.special import expit

from probgap._device.arrays import open_device


@pytest.fixture(scope="session")
def device():
    pytest.importorskip("torch", reason="needs torch: make test-torch")
    return open_device("cpu")


def draw_classes(n, seed=0, n_features=4):
    """Draw samples whose classes overlap along a curved border."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7 + 0.5 * X[:, 2] * X[:, 3]
    return X, rng.random(n) < expit(3.0 * score)


@pytest.fixture(scope="session")
def overlapping():
    X, positive = draw_classes(900)
    X.setflags(write=False)
    positive.setflags(write=False)
    return X, positive
