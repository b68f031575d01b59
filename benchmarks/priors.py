"""Measure estimates of the share of positives, and how often their intervals hold it.

Two classes in triangles or a square, Gaussians in five dimensions at a distance of 4 or 2
(40% positive), and a rare class (10%, at a distance of 3), under labellings at random, the
paper's and with few labels. The nominal level is 90%.

    python benchmarks/priors.py                        # the numbers in the docstring
    python benchmarks/priors.py --method paper
    python benchmarks/priors.py --data square --draws 3
"""

from __future__ import annotations

import argparse
import os
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import FewLabels
from scipy.special import expit

from probgap import PGPUClassifier
from probgap.datasets import hide_labels, make_square, make_triangles, platt_gap

GAUSSIANS = {"gaussians_4": (0.4, 4.0), "gaussians_2": (0.4, 2.0), "rare": (0.1, 3.0)}
DATA = ("triangles", "square", *GAUSSIANS)
RATES = {
    "at random, 70% labelled": ("constant", 0.3),
    "at random, 30% labelled": ("constant", 0.7),
    "inverse(0.3, 0.5)": ("inverse", 0.3, 0.5),
    "linear(0.6)": ("linear", 0.6),
    "linear(1.0)": ("linear", 1.0),
    "few: 0.4 times the gap": FewLabels(0.4, 1),
    "few: 0.3 times gap squared": FewLabels(0.3, 2),
}
METHODS = {"default": PGPUClassifier, "paper": PGPUClassifier.paper}


def draw(name, n, rng):
    """Draw samples, true labels and the gap that labels go by."""
    if name not in GAUSSIANS:
        make = make_triangles if name == "triangles" else make_square
        X, y, _ = make(n, random_state=rng)
        return X, y, platt_gap(X, y, random_state=rng)
    share, distance = GAUSSIANS[name]
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += distance * y
    odds = distance * (X[:, 0] - distance / 2) + np.log(share / (1 - share))
    return X, y, 2.0 * expit(odds) - 1.0


def estimates(model, X, s):
    """Give other estimates of the share of positives than the one that the fit keeps."""
    known = s == 1
    chance = 0.5 * (1.0 + model.observed_gap_)
    posterior = getattr(model.gap_estimator_, "posterior_", None)
    if posterior is None:
        posterior = model.predict_proba(X)[:, model.positive_index_]
    return {
        "kept": model.estimated_class_prior_,
        "called positive or labelled": np.mean((model.predict(X) == 1) | known),
        "mean posterior": posterior.mean(),
        "mean posterior, labelled sure": np.where(known, 1.0, posterior).mean(),
        "what counts in training": np.nanmean(model.relabelling_.positive_share),
        "Elkan-Noto, mean chance": min(1.0, known.mean() / chance[known].mean()),
        "Elkan-Noto, highest chance": known.mean() / chance[known].max(),
    }


def measure(make, name, rate, n, seed):
    """Give the truth, estimates and the interval; None where there is no label."""
    rng = np.random.default_rng([seed, *name.encode()])
    X, y, gap = draw(name, n, rng)
    s = hide_labels(X, y, gap, rate, random_state=rng)
    if s.sum() < 5:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(random_state=seed).fit(X, s)
        found = estimates(model, X, s)
    return y.mean(), found, model.estimated_class_prior_interval_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--method", default="default", choices=tuple(METHODS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument(
        "--first", type=int, default=1000, help="seed of the first draw"
    )
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    errors = {}
    print("data         labels                      covered  truth  estimate  interval")
    for name in given.data:
        for label, rate in RATES.items():
            rows = [
                measure(METHODS[given.method], name, rate, given.samples, seed)
                for seed in range(given.first, given.first + given.draws)
            ]
            truth, found, intervals = zip(*filter(None, rows), strict=True)
            truth, ends = np.array(truth), np.array(intervals)
            covered = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            for estimate in found[0]:
                values = np.array([row[estimate] for row in found])
                errors.setdefault(estimate, []).append(np.abs(np.log(values / truth)))
            kept = np.mean([row["kept"] for row in found])
            low, high = ends.mean(axis=0)
            print(
                f"{name:12} {label:27} {covered:7.0%} {truth.mean():6.3f} {kept:9.3f}",
                f" {low:.3f} to {high:.3f}",
                flush=True,
            )
    print("\nmean error of the logarithm, and the error that one in ten exceeds")
    for estimate, found in errors.items():
        every = np.concatenate(found)
        print(f"{estimate:32} {every.mean():.3f}  {np.quantile(every, 0.9):.3f}")


if __name__ == "__main__":
    main()
