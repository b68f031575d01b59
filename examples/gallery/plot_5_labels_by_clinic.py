"""
When it fails: labels that depend on the clinic
===============================================

The method takes "likely to be labelled" for "clearly positive". If one clinic reports its
cases and another does not, it learns the clinic. This example shows what that looks like,
how to notice it before fitting, and what helps.
"""

# %%
# One clinic labels, the other does not
# -------------------------------------
# The class depends on one measurement. Clinic A labels 8 of 10 of its positives, clinic B 1 of
# 20, whatever the measurement says. The clinic is in the table, as the second feature.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from probgap import PGPUClassifier
from probgap.methods import ElkanNotoClassifier

rng = np.random.default_rng(0)
measurement, clinic_a = rng.normal(size=1200), rng.random(1200) < 0.5
y_true = rng.random(1200) < 1.0 / (1.0 + np.exp(-4.0 * measurement))
rate = np.where(clinic_a, 0.8, 0.05)
labelled = y_true & (rng.random(1200) < rate)
X = np.column_stack([measurement, 2.0 * clinic_a - 1.0])
print(
    f"clinic A: {y_true[clinic_a].sum()} positives, {labelled[clinic_a].sum()} labelled"
)
print(
    f"clinic B: {y_true[~clinic_a].sum()} positives, {labelled[~clinic_a].sum()} labelled"
)

# %%
# With the clinic, and without
# ----------------------------
# With the clinic among the features, nearly all positives of clinic B are missed: in its rows
# being unlabelled looks like being negative. Without it the clinics fare alike. With respect
# to the measurement, labels are then missing at random, while the default allows for easy
# positives having been labelled first: it calls slightly too many rows positive. Elkan and
# Noto's method assumes random labels, and is right here.
with_clinic = PGPUClassifier(random_state=0).fit(X, labelled)
without = PGPUClassifier(random_state=0).fit(X[:, :1], labelled)
at_random = ElkanNotoClassifier(gap_estimator=LogisticRegression(), random_state=0)
at_random.fit(X[:, :1], labelled)
predictions = {
    "clinic among the features": with_clinic.predict(X),
    "clinic left out": without.predict(X[:, :1]),
    "clinic left out, Elkan-Noto": at_random.predict(X[:, :1]),
}
for name, predicted in predictions.items():
    for clinic, rows in (("A", clinic_a), ("B", ~clinic_a)):
        recall, alarms = (
            predicted[rows & y_true].mean(),
            predicted[rows & ~y_true].mean(),
        )
        print(f"{name}, clinic {clinic}:", end=" ")
        print(f"finds {recall:.0%}, false alarms {alarms:.0%}")

# %%
# How to notice it before fitting
# -------------------------------
# Ask, before fitting, whether some column says who *labels* rather than who is positive: site,
# year, device, agent. Look at the share of labelled rows by its values. If the shares differ
# more than the true shares can, leave the column out, or fit one model for each value.
COLOURS = ("#d55e00", "#0072b2")
edges = np.linspace(-2.0, 2.0, 17)
middle = (edges[1:] + edges[:-1]) / 2.0
bins = np.digitize(measurement, edges) - 1
for name, predicted in predictions.items():
    figure, ax = plt.subplots(figsize=(4.4, 3.7), layout="constrained")
    truth = 1.0 / (1.0 + np.exp(-4.0 * middle))
    ax.plot(middle, truth, c="black", lw=1.5, label="truly positive")
    for colour, clinic, rows in zip(COLOURS, "AB", (clinic_a, ~clinic_a), strict=True):
        share = [predicted[rows & (bins == i)].mean() for i in range(16)]
        ax.plot(
            middle, share, "o-", c=colour, ms=4, label=f"called so, clinic {clinic}"
        )
    ax.set_title(name[0].upper() + name[1:], loc="left")
    ax.set(xlabel="measurement", ylabel="share of the rows", ylim=(-0.03, 1.03))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", frameon=False, fontsize=9)
plt.show()
