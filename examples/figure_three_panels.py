"""Draw the README's picture: true labels, observed labels, what probgap recovered.

``python examples/figure_three_panels.py [FILE]`` writes docs/three_panels.png. Shares that
are right are of 20,000 new points.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.datasets import hide_labels

# Colours that people with colour blindness can tell apart.
POSITIVE, UNLABELLED, NEGATIVE = "#0072b2", "#b8b8b8", "#d55e00"
GREY = "#999999"
SEED = 1
EDGES = np.linspace(-3.2, 3.2, 300)


def true_posterior(X):
    return 1.0 / (1.0 + np.exp(-3.0 * (X[:, 1] - np.sin(1.6 * X[:, 0]))))


def draw_data(rng, n=900):
    """Draw two classes that meet along a wave, and their true posterior."""
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    posterior = true_posterior(X)
    return X, (rng.random(n) < posterior).astype(int), posterior


def panel(ax, title, X, colours, boundary):
    for values, colour, style in boundary:
        ax.contour(EDGES, EDGES, values, levels=[0.5], colors=colour, linestyles=style)
    for colour, chosen, label in colours:
        ax.scatter(*X[chosen].T, s=9, c=colour, label=f"{label} ({chosen.sum()})", lw=0)
    ax.set_title(title, fontsize=12, loc="left")
    ax.set(xticks=[], yticks=[], xlim=(-3.1, 3.1), ylim=(-3.1, 3.1), aspect="equal")
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2,
        frameon=False,
        markerscale=2,
    )
    for spine in ax.spines.values():
        spine.set_color("#dddddd")


def main(path):
    rng = np.random.default_rng(SEED)
    X, y, posterior = draw_data(rng)
    gap = 2.0 * posterior - 1.0
    s = hide_labels(X, y, gap, lambda g: 1.0 - 0.6 * np.clip(g, 0, 1), random_state=rng)
    model = PGPUClassifier(random_state=SEED).fit(X, s)
    found = model.predict(X) == 1
    grid = np.stack(np.meshgrid(EDGES, EDGES), axis=-1).reshape(-1, 2)
    shape = (EDGES.size, EDGES.size)
    truth = true_posterior(grid).reshape(shape)
    naive = SVC().fit(X, s)
    taken = 0.5 + naive.decision_function(grid).reshape(shape)
    learnt = model.predict_proba(grid)[:, 1].reshape(shape)
    X_new, y_new, posterior_new = draw_data(rng, 20_000)

    figure, axes = plt.subplots(1, 3, figsize=(12, 5.0), layout="constrained")
    panel(
        axes[0],
        f"The truth\nBest possible: {np.mean((posterior_new > 0.5) == y_new):.1%} right",
        X,
        [(NEGATIVE, y == 0, "negative"), (POSITIVE, y == 1, "positive")],
        [(truth, GREY, "solid")],
    )
    panel(
        axes[1],
        f"What you have\nUnlabelled = negative (dashed): {naive.score(X_new, y_new):.1%} right",
        X,
        [(UNLABELLED, s == 0, "unlabelled"), (POSITIVE, s == 1, "labelled")],
        [(truth, GREY, "solid"), (taken, "black", "dashed")],
    )
    panel(
        axes[2],
        f"What probgap recovered\nprobgap (black): {model.score(X_new, y_new):.1%} right",
        X,
        [(NEGATIVE, ~found, "negative"), (POSITIVE, found, "positive")],
        [(truth, GREY, "solid"), (learnt, "black", "solid")],
    )
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/three_panels.png"))
