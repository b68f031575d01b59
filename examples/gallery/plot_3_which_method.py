"""
Which method when
=================

Four ways in which labels can be missing, four methods. Where the easy positives were labelled
first, methods that assume random labels find too few. Where labels did fall at random,
dividing by the label rate (Elkan and Noto) is right. The default of probgap does about as
well where positives are many, and less well for a rare class. With two draws of each, read
the picture for what is far apart.
"""

# %%
# Two classes, and four labellings
# --------------------------------
# One feature is informative, three are noise, and the log-odds are linear: the best case for
# logistic regression, which Elkan and Noto's method is given here. Each labelling is drawn
# twice.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve

from probgap import PGPUClassifier
from probgap.datasets import hide_labels
from probgap.exceptions import UnreliableFitWarning
from probgap.methods import ElkanNotoClassifier, LiuTaoClassifier, NaiveClassifier


def draw(rng, n_samples, positive_share):
    """Draw samples, true labels and the true probability of being positive."""
    y = (rng.random(n_samples) < positive_share).astype(int)
    X = rng.normal(size=(n_samples, 4))
    X[:, 0] += 2.2 * y
    log_odds = np.log(positive_share / (1 - positive_share)) + 2.2 * (X[:, 0] - 1.1)
    return X, y, 1.0 / (1.0 + np.exp(-log_odds))


def easy_first(gap):
    """Leave a positive unlabelled with probability 1 - 0.6 gap."""
    return 1.0 - 0.6 * gap.clip(0.0)


SETTINGS = {
    "40% positive,\neasy ones labelled first": (0.4, easy_first),
    "40% positive,\n4 of 10 labelled at random": (0.4, ("constant", 0.6)),
    "5% positive,\neasy ones labelled first": (0.05, easy_first),
    "5% positive,\n4 of 10 labelled at random": (0.05, ("constant", 0.6)),
}
METHODS = {
    "unlabelled = negative": NaiveClassifier(),
    "Elkan-Noto, logistic": ElkanNotoClassifier(gap_estimator=LogisticRegression()),
    "Liu-Tao": LiuTaoClassifier(),
    "probgap": PGPUClassifier(),
}

# %%
# Judge by the truth
# ------------------
# By F1, since accuracy says little about a rare class. Warnings of a fit are left aside: the
# truth is known here.
warnings.simplefilter("ignore", UnreliableFitWarning)
scores = np.zeros((len(SETTINGS), len(METHODS) + 1, 2))
for row, (share, rate) in enumerate(SETTINGS.values()):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y, posterior = draw(rng, 1500 if share < 0.1 else 600, share)
        X_test, y_test, posterior_test = draw(rng, 4000, share)
        s = hide_labels(X, y, 2.0 * posterior - 1.0, rate, random_state=rng)
        for column, method in enumerate(METHODS.values()):
            model = method.set_params(random_state=seed).fit(X, s)
            scores[row, column, seed] = f1_score(y_test, model.predict(X_test))
        precision, recall, _ = precision_recall_curve(y_test, posterior_test)
        scores[row, -1, seed] = (2 * precision * recall / (precision + recall)).max()
means = scores.mean(axis=2)
for name, line in zip(SETTINGS, means, strict=True):
    text = ", ".join(f"{n} {v:.2f}" for n, v in zip(METHODS, line, strict=False))
    print(f"{' '.join(name.split())}: {text}")

# %%
# The picture
# -----------
# Small dots are single draws. The bar is the best possible score: that of the true
# probabilities with the best threshold on them.
COLOURS = ("#999999", "#0072b2", "#cc79a7", "#d55e00")
figure, ax = plt.subplots(figsize=(6.2, 4.8), layout="constrained")
for column, (name, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
    height = np.arange(len(SETTINGS)) + 0.14 * (column - 1.5)
    ax.plot(means[:, column], height, "o", c=colour, ms=9, label=name, zorder=3)
    for draws in range(2):
        ax.plot(scores[:, column, draws], height, "o", c=colour, ms=3, alpha=0.5)
best = means[:, -1]
rows = np.arange(len(SETTINGS))
ax.vlines(best, rows - 0.35, rows + 0.35, color="black", lw=2, label="best possible")
ax.set_yticks(rows, list(SETTINGS))
ax.invert_yaxis()
ax.set(xlabel="F1 against true labels (higher is better)", xlim=(-0.02, 0.95))
ax.grid(axis="x", color="#eeeeee")
ax.set_axisbelow(True)
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)
ax.legend(
    loc="lower center",
    bbox_to_anchor=(0.3, 1.0),
    ncols=3,
    frameon=False,
    columnspacing=1.2,
    handletextpad=0.3,
)
plt.show()
