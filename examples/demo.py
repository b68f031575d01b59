"""Hide the labels of a real data set, easy positives labelled first, and win them back.

Runs offline in seconds: ``python examples/demo.py``.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.datasets import hide_labels, platt_gap
from probgap.metrics import recovered_share

SEED = 0


def label_the_easy_ones(gap):
    """Leave a malignant tumour unlabelled with a chance of 1 - 0.6 gap^2."""
    return 1.0 - 0.6 * np.clip(gap, 0.0, 1.0) ** 2


def main():
    started = time.perf_counter()
    data = load_breast_cancer()
    X, y_true = data.data, 1 - data.target  # 1 = malignant
    gap = platt_gap(StandardScaler().fit_transform(X), y_true, random_state=SEED)
    observed = hide_labels(X, y_true, gap, label_the_easy_ones, random_state=SEED + 1)
    train, test = train_test_split(
        np.arange(len(X)), test_size=0.25, stratify=y_true, random_state=SEED
    )

    naive = make_pipeline(StandardScaler(), SVC()).fit(X[train], observed[train])
    clean = make_pipeline(StandardScaler(), SVC()).fit(X[train], y_true[train])
    pgpu = make_pipeline(StandardScaler(), PGPUClassifier(random_state=SEED))
    pgpu.fit(X[train], observed[train])

    hidden = (y_true[train] == 1) & (observed[train] == 0)
    print("Breast cancer: 30 measurements, which tumours are malignant?")
    print(
        f"{len(train)} tumours to learn from, {y_true[train].sum()} of them malignant. "
        f"Only {observed[train].sum()} are labelled, mostly easy ones;\n"
        f"{hidden.sum()} malignant ones hide among the unlabelled.\n"
    )
    print(f"{'':24}{'hidden found':>16}{'false alarms':>16}{'test accuracy':>16}")
    scores = {}
    for name, model in (
        ("unlabelled = negative", naive),
        ("probgap", pgpu),
        ("all labels known", clean),
    ):
        flagged = model.predict(X[train]) == 1
        alarms = int((flagged & (y_true[train] == 0)).sum())
        scores[name] = model.score(X[test], y_true[test])
        found = f"{(flagged & hidden).sum()} of {hidden.sum()}"
        print(f"{name:24}{found:>16}{alarms:>16}{scores[name]:>16.1%}")
    share = recovered_share(scores["probgap"], *(scores[n] for n in list(scores)[::2]))
    print(
        f"\nprobgap won back {share:.0%} of the accuracy that the missing labels cost."
    )
    print(
        f"Boundary: {pgpu[-1].boundary_.value:.2f}. Took {time.perf_counter() - started:.1f} s."
    )


if __name__ == "__main__":
    main()
