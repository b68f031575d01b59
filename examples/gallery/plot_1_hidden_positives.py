"""
Hidden positives, found again
=============================

Two classes meet along a wave. Positives far from it are labelled often, those close to it
seldom, and nothing is labelled negative. A classifier that treats the unlabelled as
negative places its border too far inside the positives. :class:`~probgap.PGPUClassifier`
sees the same data and comes much closer to the true border. It still errs, mostly on the
cautious side, where hardly anything is labelled.
"""

# %%
# The data
# --------
# The true probability of being positive is known here, so that we can hide labels by it: a
# positive with true gap g keeps its label with probability 0.6 g.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.datasets import hide_labels
from probgap.plotting import draw_relabelling


def true_posterior(X):
    """Return P(Y=1 | x) of each sample."""
    return 1.0 / (1.0 + np.exp(-3.0 * (X[:, 1] - np.sin(1.6 * X[:, 0]))))


rng = np.random.default_rng(1)
X = rng.uniform(-3.0, 3.0, size=(900, 2))
posterior = true_posterior(X)
y_true = (rng.random(900) < posterior).astype(int)
labelled = hide_labels(
    X,
    y_true,
    2.0 * posterior - 1.0,
    lambda gap: 1.0 - 0.6 * gap.clip(0.0),
    random_state=rng,
)
print(f"{y_true.sum()} positives, {labelled.sum()} of them labelled")

# %%
# Two classifiers
# ---------------
# Both see ``labelled`` and nothing else.
naive = SVC().fit(X, labelled)
model = PGPUClassifier(random_state=1).fit(X, labelled)
hidden = (y_true == 1) & (labelled == 0)
for name, fitted in (("naive", naive), ("probgap", model)):
    found = int(fitted.predict(X)[hidden].sum())
    print(f"{name:8} finds {found} of {hidden.sum()} hidden positives", end=", ")
    print(f"{fitted.score(X, y_true):.1%} of all samples right")

# %%
# The picture
# -----------
# Grey line: the true border. Black line: the border of the classifier.
POSITIVE, NEGATIVE, UNLABELLED = "#0072b2", "#d55e00", "#9a9a9a"
# sphinx_gallery_thumbnail_number = 3
edges = np.linspace(-3.0, 3.0, 200)
grid = np.stack(np.meshgrid(edges, edges), axis=-1).reshape(-1, 2)
truth = true_posterior(grid).reshape(200, 200)


def draw(title, parts, learnt=None):
    """Scatter the parts of the data, with the true border and the learnt one."""
    _, ax = plt.subplots(figsize=(3.6, 4.0), layout="constrained")
    ax.contour(edges, edges, truth, levels=[0.5], colors="#777777", linewidths=2.5)
    if learnt is not None:
        ax.contour(edges, edges, learnt.reshape(200, 200), levels=[0.0], colors="black")
    for colour, mask, label in parts:
        ax.scatter(*X[mask].T, s=6, c=colour, lw=0, label=f"{label} ({mask.sum()})")
    ax.set_title(title, loc="left")
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=2,
        frameon=False,
        markerscale=2.5,
        handletextpad=0.1,
    )


draw(
    "The truth",
    [(NEGATIVE, y_true == 0, "negative"), (POSITIVE, y_true == 1, "positive")],
)
draw(
    "What you have, naive border",
    [(UNLABELLED, labelled == 0, "unlabelled"), (POSITIVE, labelled == 1, "labelled")],
    naive.decision_function(grid),
)
predicted = model.predict(X)
draw(
    "What probgap makes of it",
    [(NEGATIVE, predicted == 0, "negative"), (POSITIVE, predicted == 1, "positive")],
    model.decision_function(grid),
)
plt.show()

# %%
# What each sample counted for
# ----------------------------
# :func:`~probgap.plotting.draw_relabelling`: labelled samples count as positive in training.
# An unlabelled one counts partly as positive and partly as negative, by its probability of
# being positive: the more samples like it are labelled, the more it counts as positive.
draw_relabelling(
    model.observed_gap_,
    labelled,
    model.relabelling_,
    sample_weight=model.sample_weight_,
    boundary=model.boundary_,
)
