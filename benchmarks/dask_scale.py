"""Fit to a table in Parquet files that is larger than the workers' memory; predict all.

Writes files of rows with 20 features to a temporary folder, fits to them with two
worker processes that may take 3 GB together, predicts every row, and measures time and
peak memory of both.

    python benchmarks/dask_scale.py --rows 1e6 2e6
    python benchmarks/dask_scale.py --rows 1e6 5e6 20e6   # 3.5 GB of disk
"""

import resource
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask import dataframe
from dask.distributed import Client, LocalCluster

from probgap import PGPUClassifier
from probgap.dask import DaskPGPUClassifier

N_FEATURES = 20
NAMES = [f"x{k}" for k in range(N_FEATURES)]
ROWS_IN_A_FILE = 1_000_000
ROWS_IN_A_BLOCK = 250_000


def draw_rows(n, seed):
    """Draw two classes that overlap, easy positives labelled first."""
    rng = np.random.default_rng([seed, 7])
    X = rng.normal(size=(n, N_FEATURES))
    score = 2.0 * X[:, 0] - X[:, 1] + X[:, 2] * X[:, 3] - 1.0
    posterior = 1.0 / (1.0 + np.exp(-2.0 * score))
    y = rng.random(n) < posterior
    s = y & (rng.random(n) < 0.6 * posterior)
    return X, y.astype(np.int8), s.astype(np.int8)


def write_table(folder, n_rows):
    for k, first in enumerate(range(0, n_rows, ROWS_IN_A_FILE)):
        X, _, s = draw_rows(min(ROWS_IN_A_FILE, n_rows - first), k)
        table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "flagged": s})
        path = folder / f"part-{k:04d}.parquet"
        pq.write_table(table, path, row_group_size=ROWS_IN_A_BLOCK)


def used():
    """Return the CPU seconds of this process so far, and its peak in GB."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def measure(folder, n_rows, memory):
    workers = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": memory / 2}
    with (
        LocalCluster(**workers, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        frame = dataframe.read_parquet(f"{folder}/*.parquet")
        model = DaskPGPUClassifier(PGPUClassifier(verbose=1), random_state=0)
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(frame[NAMES], frame["flagged"])
        fitted = time.perf_counter()
        model.predict(frame[NAMES]).sum().compute()
        ended, cpu = time.perf_counter(), time.process_time() - cpu
        workers_cpu, workers_peak = np.sum(list(client.run(used).values()), axis=0)
        X, y, _ = draw_rows(20_000, 10**6)
        right = float((model.predict(pd.DataFrame(X, columns=NAMES)) == y).mean())
    return {
        "rows": f"{n_rows:,}",
        "table, GB": 8e-9 * n_rows * N_FEATURES,
        "drawn": f"{model.sample_rows_.size:,}",
        "fit, s": fitted - started,
        "predict, s": ended - fitted,
        "workers' CPU s": workers_cpu,
        "client's CPU s": cpu,
        "workers' peak GB": workers_peak,
        "right": f"{right:.1%}",
    }


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--memory", type=float, default=3e9, help="of all workers")
    parser.add_argument("--folder", type=Path, default=None)
    options = harness.parse(parser)
    found = []
    for n_rows in [20_000] if options.quick else map(int, options.rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            write_table(Path(folder), n_rows)
            row, peak = harness.alone(measure, folder, n_rows, options.memory)
            found.append(row | {"client's peak GB": peak})
    harness.show(pd.DataFrame(found), 2)


if __name__ == "__main__":
    main()
