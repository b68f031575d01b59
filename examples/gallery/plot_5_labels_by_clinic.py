"""
When it fails: labels that depend on the clinic
===============================================

The method takes "likely to be labelled" for "clearly positive". If one clinic reports its
cases and another does not, it learns the clinic. This example shows what that looks like,
and what changes once the column is declared to say who was looked at.
"""

# %%
# One clinic labels, the other does not
# -------------------------------------
# The class depends on one measurement. Clinic A labels 8 of 10 of its positives, clinic B 1 of
# 20, whatever the measurement says. The clinic is in the table, as the second feature.
import matplotlib.pyplot as plt
import numpy as np

from probgap import PGPUClassifier

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
# As a feature, left out, declared
# --------------------------------
# With the clinic among the features, nearly all positives of clinic B are missed: in its rows
# being unlabelled looks like being negative. Without it the clinics fare alike, but every
# positive that clinic B did not report still stands against the model. Declared in
# ``labelled_by``, the clinic leaves the model of the truth and enters that of the labels: an
# unlabelled row of clinic B says little.
with_clinic = PGPUClassifier(random_state=0).fit(X, labelled)
without = PGPUClassifier(random_state=0).fit(X[:, :1], labelled)
declared = PGPUClassifier(labelled_by=[1], random_state=0).fit(X, labelled)
predictions = {
    "clinic among the features": with_clinic.predict(X),
    "clinic left out": without.predict(X[:, :1]),
    "clinic declared": declared.predict(X),
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
# How often each clinic labelled
# ------------------------------
# ``labelling_`` has the rates, relative to the group whose positives were labelled most (0.05
# / 0.8 is 6% here), and where the hidden positives are. ``probability_`` of a training row
# goes by its clinic, too: an unlabelled row of clinic B is likelier positive than one of
# clinic A that is like it.
for group in declared.labelling_.groups:
    rows = clinic_a == (group.level == "1")
    print(f"clinic {['B', 'A'][group.level == '1']}: rate {group.rate:.0%}", end=" ")
    print(f"({group.rate_low:.0%} to {group.rate_high:.0%}), hidden", end=" ")
    print(f"{group.hidden_low:.0f} to {group.hidden_high:.0f};", end=" ")
    print(f"in truth {(y_true & ~labelled & rows).sum()}")
for name, model in (("as a feature", with_clinic), ("declared", declared)):
    low, high = model.estimate_.n_hidden_interval
    print(f"{name}: {low:.0f} to {high:.0f} hidden positives")

# %%
# What each calls positive
# ------------------------
# Ask, before fitting, whether some column says who *labels* rather than who is positive: site,
# year, device, agent. That the truth does not depend on the clinic once the measurement is
# known is an assumption, which these data cannot test; an audit by clinic can.
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
