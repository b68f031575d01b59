"""
Weights that make some samples represent all
============================================

Relabelling by the paper's rule leaves out what it cannot decide, and what is left is a biased
sample: it has nothing near the border. Kernel mean matching weights it so that it represents
all samples. It can only do so where the chosen samples reach.
"""

# %%
# Leave out the middle
# --------------------
# Samples on a line, of which those in the middle were mostly left out.
import matplotlib.pyplot as plt
import numpy as np

from probgap.reweight import kernel_mean_matching

rng = np.random.default_rng(0)
samples = rng.normal(size=(1500, 1))
left_out = np.exp(-2.0 * samples[:, 0] ** 2)
chosen = samples[rng.random(1500) > 0.85 * left_out]
result = kernel_mean_matching(chosen, samples, upper=1000.0)
print(f"{len(chosen)} chosen, largest weight {result.weights.max():.1f}")
print(f"as good as {result.effective_sample_size:.0f} samples of equal weight")
print(f"converged: {result.converged}, certified gap {result.duality_gap:.1e}")

# %%
# And where nothing is left, no weight helps
# ------------------------------------------
# The same with *everything* between -0.7 and 0.7 left out: a hole. The samples at its edges
# get all the weight that the middle should have had. A small effective sample size shows it.
with_hole = samples[np.abs(samples[:, 0]) > 0.7]
hole = kernel_mean_matching(with_hole, samples, upper=1000.0)
print(f"{len(with_hole)} chosen, largest weight {hole.weights.max():.1f}")
print(f"as good as {hole.effective_sample_size:.0f} samples of equal weight")

# %%
# The picture
# -----------
ALL, CHOSEN, WEIGHTED = "#888888", "#0072b2", "#d55e00"
bins = np.linspace(-3.5, 3.5, 36)
for source, found, title in (
    (chosen, result, "Thinned out in the middle: corrected"),
    (with_hole, hole, "A hole in the middle: not corrected"),
):
    figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
    ax.hist(
        samples[:, 0], bins, density=True, color=ALL, alpha=0.35, label="all samples"
    )
    line = {"density": True, "histtype": "step", "lw": 2}
    ax.hist(source[:, 0], bins, color=CHOSEN, label="chosen", **line)
    ax.hist(
        source[:, 0],
        bins,
        weights=found.weights,
        color=WEIGHTED,
        label="chosen and weighted",
        **line,
    )
    size = f"effective sample size {found.effective_sample_size:.0f} of {len(source)}"
    ax.set_title(f"{title}\n{size}", loc="left")
    ax.set(xlabel="feature", ylabel="density", yticks=[])
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()
