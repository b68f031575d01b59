"""Fit on Parquet files with local worker processes, as on a cluster.

python examples/local_cluster.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from dask import dataframe
from dask.distributed import Client, LocalCluster

from probgap import PGPUClassifier
from probgap.dask import DaskPGPUClassifier

N_FILES, N_ROWS = 4, 25_000
NAMES = [f"x{k}" for k in range(8)]


def draw_rows(seed: int) -> pd.DataFrame:
    """Draw two classes that overlap, easy positives flagged first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, len(NAMES)))
    posterior = 1.0 / (1.0 + np.exp(-3.0 * (X[:, 0] + np.sin(2.0 * X[:, 1]))))
    truth = rng.random(N_ROWS) < posterior
    flagged = truth & (rng.random(N_ROWS) < 0.6 * posterior)
    return pd.DataFrame(X, columns=NAMES).assign(flagged=flagged, truth=truth)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        # On a cluster: Client("tcp://scheduler:8786"), and nothing else changes.
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1.5GB"
        ) as cluster,
        Client(cluster) as client,
    ):
        print("Watch it at", client.dashboard_link)
        for k in range(N_FILES):
            draw_rows(k).to_parquet(Path(folder) / f"part-{k}.parquet", index=False)
        table = dataframe.read_parquet(f"{folder}/*.parquet")
        model = DaskPGPUClassifier(PGPUClassifier(verbose=1), random_state=0)
        model.fit(table[NAMES], table["flagged"])
        called = model.predict(table[NAMES])  # nothing is computed yet
        right = (called == table["truth"]).mean().compute()
        estimate = model.model_.estimate_
        print(f"{len(table):,} rows, {estimate.n_labelled:,.0f} flagged")
        low, high = estimate.n_hidden_interval
        print(f"{low:,.0f} to {high:,.0f} hidden; {right:.1%} of the calls are right")
        # What is left when the cluster is gone needs no dask.
        print(model.model_.predict(draw_rows(99)[NAMES])[:10])


if __name__ == "__main__":
    main()
