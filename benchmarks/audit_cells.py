"""Tables and labellings of the benchmark of audits: see audit.py."""

from __future__ import annotations

import os
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import draw

from probgap import PGPUClassifier

# The interval was chosen on the first half and is reported on both.
HALVES = {
    "choosing": ("german", "spambase", "banana", "breast_cancer"),
    "reporting": ("magic", "waveform", "splice", "image", "twonorm"),
}
N_ROWS = 1500
FEWEST_LABELS = 8
RARE = 0.01


def easy_first(X, gap, rng):
    """Label a positive with probability 0.8 gap."""
    del X
    return rng.random(gap.size) < 0.8 * gap


def steep(X, gap, rng):
    """Label a positive with probability 0.5 gap^4: few labels, all easy."""
    del X
    return rng.random(gap.size) < 0.5 * np.maximum(gap, 0.0) ** 4


def at_random(X, gap, rng):
    """Label every positive with probability 0.3."""
    del X
    return rng.random(gap.size) < 0.3


def corner(X, gap, rng):
    """Label no positive on one side, and half of the others."""
    direction = rng.normal(size=X.shape[1])
    side = X @ direction
    return (side < np.median(side)) & (rng.random(gap.size) < 0.5)


def hard_first(X, gap, rng):
    """Label unclear positives first, the opposite of what the model assumes."""
    del X
    return rng.random(gap.size) < 0.6 * (1.0 - np.maximum(gap, 0.0)) + 0.05


LABELLINGS = {
    "easy first": easy_first,
    "steep": steep,
    "at random": at_random,
    "corner": corner,
    "hard first": hard_first,
    "rare": at_random,
}


def make_task(name, labelling, seed=0):
    """Return rows, their true classes and which are labelled."""
    cell = draw(name, 5 * N_ROWS if labelling == "rare" else N_ROWS, seed)
    rng = np.random.default_rng([seed, *f"{name} {labelling}".encode()])
    X, y, gap = cell.X, cell.y == 1, cell.gap
    if labelling == "rare":
        # As few positives as make 1% of the rows that stay, but at least 16.
        negative = np.flatnonzero(~y)[: N_ROWS - 20]
        n = max(round(RARE * negative.size), 2 * FEWEST_LABELS)
        kept = rng.permutation(np.append(negative, np.flatnonzero(y)[:n]))
        X, y, gap = X[kept], y[kept], gap[kept]
    rows = np.flatnonzero(y)
    s = np.zeros(y.size, dtype=bool)
    s[rows] = LABELLINGS[labelling](X[rows], gap[rows], rng)
    clearest = rows[np.argsort(-gap[rows])]
    s[clearest[~s[clearest]][: max(0, FEWEST_LABELS - int(s.sum()))]] = True
    return X, y, s


def fit(X, s, seed=0):
    """Fit the default, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PGPUClassifier(random_state=seed).fit(X, s)
