"""xgboost.dask on all rows, on a table whose classes part by steps.

Two worker processes fit ``probgap.dask.PGPUClassifier`` as it is, and with
``DaskXGBClassifier`` for the gap and for both steps; then one process does the same in
memory. Accuracy is on fresh rows with their true labels, beside that of the Bayes
classifier. Needs xgboost.

    python benchmarks/dask_estimators.py --rows 1e5
"""

from __future__ import annotations

import argparse
import time

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from xgboost.dask import DaskXGBClassifier

import probgap
from probgap.dask import PGPUClassifier

N_FEATURES = 20
N_TEST = 50_000


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features, posterior, and labels, easy positives first.

    Each of the first ten features adds a step of a size and at a place of its own.
    """
    fixed = np.random.default_rng(12)
    sizes, places = fixed.uniform(0.5, 2.0, 10), fixed.normal(scale=0.7, size=10)
    rng = np.random.default_rng([seed, 11])
    X = rng.normal(size=(n, N_FEATURES))
    score = np.where(X[:, :10] > places, sizes, -sizes).sum(axis=1)
    posterior = 1.0 / (1.0 + np.exp(-score))
    y = rng.random(n) < posterior
    s = y & (rng.random(n) < 0.6 * posterior)
    return X, posterior, np.column_stack([y, s]).astype(np.int8)


def report(name: str, seconds: float, model, test, best: float) -> np.ndarray:
    X, posterior, labels = test
    predicted = model.predict(X)
    right = (predicted == labels[:, 0]).mean()
    as_bayes = (predicted == (posterior > 0.5)).mean()
    share = model.reading_.class_prior
    print(
        f"{name:32s} {seconds:7.1f} s   right {right:.1%} (Bayes {best:.1%})   as Bayes "
        f"{as_bayes:.1%}   positives {share:.1%}   boundary {model.boundary_.value:.3f}",
        flush=True,
    )
    return predicted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    n, n_blocks = int(options.rows), options.blocks
    X, _, labels = draw_rows(n, 0)
    test = draw_rows(N_TEST, 1)
    best = ((test[1] > 0.5) == test[2][:, 0]).mean()
    print(f"{n:,} rows, {n_blocks} blocks; {labels[:, 0].mean():.1%} are positive")
    own = DaskXGBClassifier(n_estimators=options.trees, max_depth=5, learning_rate=0.1)
    cases = {
        "the default": {},
        "xgboost for the gap": {"gap_estimator": own},
        "xgboost for both": {"gap_estimator": own, "estimator": own},
    }
    size = -(-n // n_blocks)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        blocks = da.from_array(X, chunks=(size, N_FEATURES))
        observed = da.from_array(labels[:, 1], chunks=size)
        for name, parameters in cases.items():
            model = PGPUClassifier(random_state=0, **parameters)
            started = time.perf_counter()
            model.fit(blocks, observed)
            seconds = time.perf_counter() - started
            by_workers = report(name, seconds, model.model_, test, best)
    one = model.on_one_machine()
    for name, model in (
        ("in memory, xgboost for both", one),
        ("in memory, the default", probgap.PGPUClassifier(random_state=0)),
    ):
        started = time.perf_counter()
        model.fit(X, labels[:, 1])
        seconds = time.perf_counter() - started
        predicted = report(name, seconds, model, test, best)
        if model is one:
            same = (predicted == by_workers).mean()
            print(f"{'':32s} as on workers {same:.1%}", flush=True)


if __name__ == "__main__":
    main()
