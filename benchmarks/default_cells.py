"""Data sets and labellings for the bench of the default: see default.py."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from probgap.datasets import (
    load_benchmark,
    load_tcdb,
    load_tcdb_vectors,
    make_square,
    make_triangles,
    paper_rates,
    platt_gap,
)

UCI = ("banana", "heart", "image", "splice", "twonorm", "breast_cancer")
DRAWN = ("triangles", "square", "curved")
DATA = (*DRAWN, *UCI, "digits", "tcdb")
MOST_TEST = 2000
TEST_SHARE = 0.25  # of sets too small for more

# Rare classes that hardly part: dimensions, share of positives, and how far the means lie
# apart (in "ring" positives lie on a ring that negatives cross, in "spread" they have the
# same mean and a wider spread).
FAINT = {
    "faint-a": ("shift", 5, 0.05, 1.0),
    "faint-b": ("shift", 2, 0.10, 1.5),
    "faint-c": ("shift", 10, 0.20, 1.0),
    "faint-d": ("shift", 5, 0.10, 2.0),
    "faint-e": ("shift", 20, 0.10, 1.0),
    "faint-f": ("shift", 3, 0.05, 1.5),
    "faint-g": ("ring", 2, 0.15, 2.0),
    "faint-h": ("spread", 4, 0.10, 2.0),
}


@dataclass(frozen=True)
class FewLabels:
    """A positive is labelled with probability c * gap**k, and never at gaps below 0."""

    c: float
    k: int

    def __call__(self, gap):
        """Give the chance that a positive with this gap is left unlabelled."""
        return 1.0 - self.c * np.maximum(gap, 0.0) ** self.k


PAPER_RATES = {str(rate): rate for rate in paper_rates()}
FEW_RATES = {
    **{
        str(FewLabels(c, k)): FewLabels(c, k)
        for k in (1, 2)
        for c in (0.1, 0.2, 0.3, 0.4, 0.5)
    },
    "random(0.6)": ("constant", 0.6),
    "random(0.8)": ("constant", 0.8),
}
RARE_RATES = {f"random({a})": ("constant", a) for a in (0.6, 0.7, 0.8, 0.9)}
NOTHING_HIDDEN = {"nothing hidden": ("constant", 0.0)}


@dataclass(frozen=True)
class Cell:
    """Samples for training and test, standardised, true labels and the true gap."""

    X: np.ndarray
    y: np.ndarray
    gap: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@lru_cache(maxsize=2)
def draw(name, n_train, seed):
    """Draw ``n_train`` samples for training, and the rest or 2000 for test."""
    rng = np.random.default_rng([seed, *name.encode()])
    if name in DRAWN or name in FAINT:
        X, y = _generate(name, n_train + MOST_TEST, rng)
    else:
        X, y = _load(name)
    order = rng.permutation(y.size)
    n_train = min(n_train, round((1.0 - TEST_SHARE) * y.size))
    train, test = order[:n_train], order[n_train : n_train + MOST_TEST]
    scaler = StandardScaler().fit(X[train])
    X_train = scaler.transform(X[train])
    gap = platt_gap(X_train, y[train], random_state=seed)
    return Cell(X_train, y[train], gap, scaler.transform(X[test]), y[test])


def _generate(name, n, rng):
    if name == "triangles":
        return make_triangles(n, random_state=rng)[:2]
    if name == "square":
        return make_square(n, random_state=rng)[:2]
    if name == "curved":
        return _curved(n, rng)
    shape, dimensions, share, apart = FAINT[name]
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, dimensions))
    if shape == "shift":
        X[:, 0] += apart * y
    elif shape == "spread":
        X *= np.where(y == 1, apart, 1.0)[:, None]
    else:
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        ring = apart * np.column_stack([np.cos(angle), np.sin(angle)])
        X = np.where((y == 1)[:, None], ring + 0.5 * X, X)
    return X, y


def _curved(n, rng):
    """Positives above a parabola that leaves them a third of the square, with overlap."""
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    above = X[:, 1] - (X[:, 0] ** 2 - 0.1) - 0.2 * np.sin(4.0 * X[:, 0])
    posterior = 1.0 / (1.0 + np.exp(-12.0 * above))
    return X, (rng.random(n) < posterior).astype(np.int64)


@lru_cache(maxsize=1)
def _load(name):
    if name == "breast_cancer":
        X, benign = load_breast_cancer(return_X_y=True)
        return X, 1 - benign
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        return X, np.isin(digit, (3, 5, 6, 8, 9)).astype(np.int64)
    if name == "tcdb":
        return load_tcdb_vectors("svd"), (load_tcdb().y > 0).astype(np.int64)
    X, y = load_benchmark(name)
    return X, (y > 0).astype(np.int64)
