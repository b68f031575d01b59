"""Fit on a table in Parquet files that is larger than the workers' memory.

Writes files of rows with 20 features to a temporary folder, fits on them with two
worker processes that may take 3 GB together, and measures time and the workers' peak
memory. Then it works out, from the cost of a block, what more rows on more workers
would take.

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
PAPER_ROWS, PAPER_WORKERS = 1_000_000_000, 64


@dataclass(frozen=True)
class Run:
    """What a fit took."""

    rows: int
    seconds: float
    cpu_of_workers: float
    cpu_of_client: float
    passes: int
    peak_of_workers: float
    peak_of_client: float
    kept: bool
    agrees: float

    @property
    def row_cost(self) -> float:
        """Seconds of a worker's CPU for one row in one pass, all else included."""
        return self.cpu_of_workers / (self.passes * self.rows)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.rows // ROWS_IN_A_BLOCK)


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


def fit_once(folder: Path, n_rows: int, memory: float, features: int | None) -> Run:
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
        model = PGPUClassifier(
            kernel_features=features or "auto", random_state=0, verbose=1
        )
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(frame[names], frame["flagged"])
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        watch.stop()
        X, y, _ = draw_rows(20_000, 10**6)
        agrees = float((model.predict(pd.DataFrame(X, columns=names)) == y).mean())
    return Run(
        n_rows,
        seconds,
        watch.cpu,
        cpu,
        model.n_passes_,
        watch.workers,
        watch.client,
        model.kept_,
        agrees,
    )


def on_paper(runs: list[Run]) -> float:
    """Work out the hours of a billion rows on 64 workers.

    Workers: the CPU of a row in the last run, shared out. The machine that calls: what it
    took grows with the number of blocks, by the line through the first and the last run
    (through nothing, with one run); it works while workers wait.
    """
    first, last = runs[0], runs[-1]
    workers = last.row_cost * last.passes * PAPER_ROWS / PAPER_WORKERS
    per_block = last.cpu_of_client / last.blocks
    if last.blocks > first.blocks:
        more = last.cpu_of_client - first.cpu_of_client
        per_block = max(0.0, more / (last.blocks - first.blocks))
    alone = per_block * (PAPER_ROWS / ROWS_IN_A_BLOCK - last.blocks)
    return (workers + last.cpu_of_client + alone) / 3600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--memory", type=float, default=3e9, help="of all workers")
    parser.add_argument("--features", type=int, help="landmarks; by default, auto")
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    print("| rows | table | time | workers' CPU | client's CPU | passes ", end="")
    print("| workers' peak | client's peak | kept | right |")
    print("|" + "---|" * 10)
    runs = []
    for n_rows in map(int, arguments.rows):
        folder = Path(tempfile.mkdtemp(prefix="probgap-", dir=arguments.folder))
        try:
            write_table(folder, n_rows)
            run = fit_once(folder, n_rows, arguments.memory, arguments.features)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        runs.append(run)
        print(
            f"| {run.rows:,} | {8e-9 * run.rows * N_FEATURES:.2f} GB "
            f"| {run.seconds:.0f} s | {run.cpu_of_workers:.0f} s "
            f"| {run.cpu_of_client:.0f} s | {run.passes} | {run.peak_of_workers:.2f} GB "
            f"| {run.peak_of_client:.2f} GB | {'yes' if run.kept else 'no'} "
            f"| {run.agrees:.1%} |",
            flush=True,
        )
    last = runs[-1]
    print(
        f"\nA pass costs a worker {1e6 * last.row_cost:.2f} s for a million rows "
        f"({last.row_cost * ROWS_IN_A_BLOCK:.2f} s for a block of {ROWS_IN_A_BLOCK:,}). "
        f"On paper, {PAPER_ROWS:,} rows on {PAPER_WORKERS} workers take "
        f"{on_paper(runs):.1f} hours."
    )
    print(json.dumps([run.__dict__ for run in runs]), file=sys.stderr)


if __name__ == "__main__":
    main()
