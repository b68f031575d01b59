"""Measure how often the test of random labelling cries wolf, and how often it sees one.

Labels that fell at random must be called biased in about 5% of the draws (size); labels
that went by the gap should be, as often as possible (power). The gap of triangles, square
and breast cancer is the paper's, by a Platt-scaled support vector machine on true labels;
that of the Gaussians, two of them at a distance of 2 or 4 in one of five dimensions, is
the true one.

    # the numbers in the docstring, about a minute
    python benchmarks/scar_test.py --labels random --samples 500 --draws 30 --resamples 39
    python benchmarks/scar_test.py --labels gap --draws 8 --resamples 39
"""

from __future__ import annotations

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from probgap._core.errors import InvalidInputError
from probgap.datasets import hide_labels, make_square, make_triangles, platt_gap
from probgap.diagnostics import scar_test

DATA = ("triangles", "square", "breast_cancer", "gaussians_4", "gaussians_2")
RATES = {
    "at random, 70% labelled": ("constant", 0.3),
    "at random, 30% labelled": ("constant", 0.7),
    "inverse(0.3, 0.5)": ("inverse", 0.3, 0.5),
    "linear(0.6)": ("linear", 0.6),
    "linear(1.0)": ("linear", 1.0),
    "few: 0.4 times the gap": lambda gap: 1.0 - 0.4 * np.maximum(gap, 0.0),
}


def draw(name, n_samples, rng):
    """Draw samples, true labels and the gap that labels go by."""
    if name.startswith("gaussians"):
        distance, share = float(name.rpartition("_")[2]), 0.4
        y = (rng.random(n_samples) < share).astype(int)
        X = rng.normal(size=(n_samples, 5))
        X[:, 0] += distance * y
        log_odds = distance * (X[:, 0] - distance / 2) + np.log(share / (1 - share))
        return X, y, 2.0 * expit(log_odds) - 1.0
    if name == "breast_cancer":
        X, benign = load_breast_cancer(return_X_y=True)
        X, y = StandardScaler().fit_transform(X), 1 - benign
        gap = platt_gap(X, y, random_state=rng)
        rows = rng.permutation(y.size)[: min(n_samples, 450)]
        return X[rows], y[rows], gap[rows]
    make = make_triangles if name == "triangles" else make_square
    X, y, _ = make(n_samples, random_state=rng)
    return X, y, platt_gap(X, y, random_state=rng)


def test_once(name, rate, n_samples, n_resamples, seed):
    rng = np.random.default_rng(seed)
    X, y, gap = draw(name, n_samples, rng)
    s = hide_labels(X, y, gap, rate, random_state=rng)
    try:
        found = scar_test(X, s == 1, n_resamples=n_resamples, random_state=rng)
    except InvalidInputError:
        return np.nan, "none"
    return found.p_value, found.verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--labels", choices=("all", "random", "gap"), default="all")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=99)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    print(
        "data            labels                     p<=5%  biased random unclear none"
    )
    for name in given.data:
        for label, rate in RATES.items():
            if given.labels == ("gap" if "random" in label else "random"):
                continue
            started = time.perf_counter()
            found = Parallel(n_jobs=given.jobs)(
                delayed(test_once)(name, rate, given.samples, given.resamples, seed)
                for seed in range(given.draws)
            )
            p, verdicts = np.array([row[0] for row in found]), [row[1] for row in found]
            shares = [
                verdicts.count(verdict) / len(found)
                for verdict in ("biased", "random", "unclear", "none")
            ]
            print(
                f"{name:15} {label:26} {np.mean(p <= 0.05):6.0%}",
                *(f"{share:6.0%}" for share in shares),
                f"  {(time.perf_counter() - started) / len(found):.1f} s each",
                flush=True,
            )


if __name__ == "__main__":
    main()
