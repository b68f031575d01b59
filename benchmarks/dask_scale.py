"""Fit to a table in Parquet files that is larger than the workers' memory; predict all.

Writes files of rows with 20 features to a temporary folder, fits to them with two
worker processes that may take 3 GB together, predicts every row, and measures time and
peak memory of both.

    python benchmarks/dask_scale.py --rows 1e6 2e6
    python benchmarks/dask_scale.py --rows 1e6 5e6 20e6   # 3.5 GB of disk
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster

from probgap.dask import PGPUClassifier, read_parquet

N_FEATURES = 20
ROWS_IN_A_FILE = 1_000_000
ROWS_IN_A_BLOCK = 250_000


@dataclass(frozen=True)
class Run:
    """What a fit and the predictions of all rows took."""

    rows: int
    drawn: int
    fit: float
    predict: float
    cpu_of_workers: float
    cpu_of_client: float
    peak_of_workers: float
    peak_of_client: float
    right: float
    positives: float


def write_table(folder: Path, n_rows: int) -> None:
    for first in range(0, n_rows, ROWS_IN_A_FILE):
        n = min(ROWS_IN_A_FILE, n_rows - first)
        X, y, s = draw_rows(n, first // ROWS_IN_A_FILE)
        columns = {f"x{k}": X[:, k] for k in range(N_FEATURES)}
        table = pa.table({**columns, "flagged": s, "truth": y})
        path = folder / f"part-{first // ROWS_IN_A_FILE:04d}.parquet"
        pq.write_table(table, path, row_group_size=ROWS_IN_A_BLOCK)


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw two classes that overlap, easy positives labelled first."""
    rng = np.random.default_rng([seed, 7])
    X = rng.normal(size=(n, N_FEATURES))
    score = 2.0 * X[:, 0] - X[:, 1] + X[:, 2] * X[:, 3] - 1.0
    posterior = 1.0 / (1.0 + np.exp(-2.0 * score))
    y = rng.random(n) < posterior
    s = y & (rng.random(n) < 0.6 * posterior)
    return X, y.astype(np.int8), s.astype(np.int8)


class Watch:
    """Looks at the memory of worker processes, and of this one, every fifth of a second."""

    def __init__(self, cluster) -> None:
        self._processes = [
            psutil.Process(worker.pid) for worker in cluster.workers.values()
        ]
        self._here = psutil.Process()
        self.workers = self.client = self.cpu = 0.0
        self._going = True
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self._going:
            total, cpu = 0, 0.0
            for process in self._processes:
                for each in (process, *process.children(recursive=True)):
                    total += each.memory_info().rss
                    cpu += sum(each.cpu_times()[:2])
            self.cpu = cpu
            self.workers = max(self.workers, total / 1e9)
            self.client = max(self.client, self._here.memory_info().rss / 1e9)
            time.sleep(0.2)

    def stop(self) -> None:
        """Look no more."""
        self._going = False
        self._thread.join()


def fit_once(folder: Path, n_rows: int, memory: float) -> Run:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory / 2,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
    ):
        watch = Watch(cluster)
        names = [f"x{k}" for k in range(N_FEATURES)]
        frame = read_parquet(f"{folder}/*.parquet", columns=[*names, "flagged"])
        model = PGPUClassifier(random_state=0, verbose=1)
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(frame[names], frame["flagged"])
        fitted = time.perf_counter()
        called = float(model.predict(frame[names]).sum().compute())
        ended, cpu = time.perf_counter(), time.process_time() - cpu
        watch.stop()
        X, y, _ = draw_rows(20_000, 10**6)
        right = float((model.predict(pd.DataFrame(X, columns=names)) == y).mean())
    return Run(
        n_rows,
        model.sample_rows_.size,
        fitted - started,
        ended - fitted,
        watch.cpu,
        cpu,
        watch.workers,
        watch.client,
        right,
        called / n_rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--memory", type=float, default=3e9, help="of all workers")
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    print(
        "| rows | table | drawn | fit | predict | workers' CPU | client's CPU ", end=""
    )
    print("| workers' peak | client's peak | right | called positive |")
    print("|" + "---|" * 11)
    runs = []
    for n_rows in map(int, arguments.rows):
        folder = Path(tempfile.mkdtemp(prefix="probgap-", dir=arguments.folder))
        try:
            write_table(folder, n_rows)
            run = fit_once(folder, n_rows, arguments.memory)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        runs.append(run)
        print(
            f"| {run.rows:,} | {8e-9 * run.rows * N_FEATURES:.2f} GB | {run.drawn:,} "
            f"| {run.fit:.0f} s | {run.predict:.0f} s | {run.cpu_of_workers:.0f} s "
            f"| {run.cpu_of_client:.0f} s | {run.peak_of_workers:.2f} GB "
            f"| {run.peak_of_client:.2f} GB | {run.right:.1%} | {run.positives:.1%} |",
            flush=True,
        )
    print(json.dumps([run.__dict__ for run in runs]), file=sys.stderr)


if __name__ == "__main__":
    main()
