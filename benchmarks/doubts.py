"""Whether the warnings of ``fit`` tell fits that cannot be believed from others.

    python benchmarks/doubts.py        # five CPU minutes

Four data sets, few labels: of clear positives, of positives at random, or by a coin whatever
the sample is. By the number of labels: how often each warning is issued, how often the
interval of the count holds, and by which factor the count is typically off.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier
from probgap.datasets import make_square, platt_gap

N_LABELLED = (6, 9, 15, 30, 60)
N_DRAWS = 3


def data_sets() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    X, y = load_breast_cancer(return_X_y=True)
    yield StandardScaler().fit_transform(X), y == 0
    X, y = load_digits(return_X_y=True)
    yield X[:900] / 16.0, y[:900] % 3 == 0
    X, y, _ = make_square(600, random_state=3)
    yield X, y == 1
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 8))
    chance = 1.0 / (1.0 + np.exp(1.5 - 1.2 * X[:, 0] - X[:, 1]))
    yield X, rng.random(700) < chance


def judge(X: np.ndarray, positive: np.ndarray, rows: np.ndarray) -> tuple:
    """Fit to some labels; return warnings, whether the interval holds, and the factor."""
    labelled = np.isin(np.arange(len(X)), rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = PGPUClassifier(random_state=0).fit(X, labelled).reading_
    codes = {getattr(each.message, "code", "") for each in caught}
    hidden = (positive & ~labelled).sum()
    low, high = found.n_hidden_interval
    return codes, low <= hidden <= high, abs(np.log(found.n_hidden / hidden))


def main() -> None:
    rows = defaultdict(list)
    for X, positive in data_sets():
        gap = platt_gap(X, positive.astype(int), random_state=0)
        odds = {
            "clear": (gap.clip(0.0) ** 2 + 1e-3) * positive,
            "random": positive.astype(float),
            "coin": np.ones(len(X)),
        }
        for how, weight in odds.items():
            for n_labelled in N_LABELLED:
                for seed in range(N_DRAWS):
                    rng = np.random.default_rng([seed, n_labelled])
                    chance = weight / weight.sum()
                    drawn = rng.choice(len(X), n_labelled, replace=False, p=chance)
                    rows[how, n_labelled].append(judge(X, positive, drawn))
    print("labels         fits  few  indistinct  interval holds  count off by")
    for (how, n_labelled), fits in rows.items():
        few, indistinct = (
            sum(code in codes for codes, _, _ in fits) for code in ("few", "indistinct")
        )
        print(f"{how:8}{n_labelled:4}{len(fits):7}{few:5}{indistinct:12}", end="")
        if how != "coin":
            factor = np.exp(np.median([off for _, _, off in fits]))
            print(f"{sum(held for _, held, _ in fits):16}{factor:14.1f}", end="")
        print()


if __name__ == "__main__":
    main()
