"""
The gap and the boundary
========================

The method rests on one number for each sample, the *observed gap*: how much likelier
it is labelled than not. Where the two classes are equally likely, the observed gap is
not 0 but the *boundary* l, well below it, since many positives there are unlabelled.
"""

# %%
# Fit, and keep the truth aside
# -----------------------------
# Two classes that meet along a wave and overlap there. A positive with true gap g is labelled
# with probability 0.25 (1 + g): half of the clearest ones, a quarter of those on the border.
# So 0.75 of these stay unlabelled, and the true boundary is -0.75.
import matplotlib.pyplot as plt
import numpy as np

from probgap import PGPUClassifier
from probgap.datasets import hide_labels
from probgap.plotting import draw_boundary, draw_gaps

rng = np.random.default_rng(3)
X = rng.uniform(-3.0, 3.0, size=(1500, 2))
true_gap = np.tanh(2.0 * (X[:, 1] - np.sin(1.6 * X[:, 0])))
y_true = (rng.random(1500) < (1.0 + true_gap) / 2.0).astype(int)
observed = hide_labels(
    X, y_true, true_gap, lambda gap: 1.0 - 0.25 * (1.0 + gap), random_state=rng
)
labelled = observed == 1
model = PGPUClassifier(random_state=0).fit(X, labelled)
boundary = model.boundary_
print(f"boundary {boundary.value:.2f}, with a spread of {boundary.spread:.2f}")
print(f"{boundary.n_negative} samples at or below it")
print(f"{boundary.n_undecided} between it and 0, {boundary.n_positive} above 0")

# %%
# What the data show, and what they hide
# --------------------------------------
# First, by :func:`~probgap.plotting.draw_gaps`: the observed gaps of all samples. At or below l
# means negative, above 0 positive, and between the two the gap alone decides nothing.
draw_gaps(model.observed_gap_, labelled, boundary=boundary)

# %%
# The same gaps against the truth, which one does not have in practice. The estimate rises with the
# true gap, as the method needs it to, and a single negative number, not 0, is where the class
# changes. The estimate of it is off by some hundredths here. It is off by more where most
# positives are labelled: then such data do not say how much of the overlap is real and how much
# is labels that are missing. ``spread`` says how much the boundary moves with the sample, not how
# far off it is.
TRUTH = "#009e73"
figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
ax.scatter(true_gap, model.observed_gap_, s=6, c="#999999", lw=0, label="samples")
grid = np.linspace(-1.0, 1.0, 200)
ax.plot(grid, 0.25 * (1.0 + grid) ** 2 - 1.0, c=TRUTH, lw=2.5, label="true curve")
ax.axhline(boundary.value, color="black", ls="--", label="estimated boundary")
ax.axhline(-0.75, color=TRUTH, ls=":", lw=2, label="true boundary")
ax.axvline(0.0, color="black", lw=0.8)
ax.set(xlabel="true gap", ylabel="observed gap", ylim=(-1.03, 1.03))
ax.legend(loc="upper left", frameon=False)
plt.show()

# %%
# What another boundary would do
# ------------------------------
# :func:`~probgap.plotting.draw_boundary` moves the boundary along. The further up, the more
# unlabelled samples are called negative, and the more labelled ones contradict it. Each figure
# gives what it draws as a table.
table = draw_boundary(model.observed_gap_, labelled, boundary=boundary).frame()
print(table.set_index("boundary").loc[[-0.9, -0.75, -0.5, 0.0]].round(2))

# %%
# And as a picture, where the table has a row for each hundredth.
draw_boundary(model.observed_gap_, labelled, boundary=boundary)
