"""Measure ``probgap predict`` on long files: rows a second, and memory that does not grow.

    python benchmarks/predict_stream.py
    python benchmarks/predict_stream.py --rows 10000 100000 --fit-rows 1000

Writes CSV files of 18 numbers and 2 categories, fits on --fit-rows rows with the real
command, then runs ``probgap predict FILE --out SCORES`` on each in a process of its own, of
which the wall clock, the CPU time and the peak of resident memory are reported. One
thread. The time includes starting Python and loading the model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

N_NUMBERS = 18
REGIONS = np.array(["north", "east", "south", "west"])
CHANNELS = np.array([f"channel {i}" for i in range(12)])
CHUNK = 50_000
PROBGAP = str(Path(sys.executable).with_name("probgap"))


def draw(n, rng):
    """Draw rows, and the label that the clearest of the positives got."""
    X = rng.normal(size=(n, N_NUMBERS))
    region, channel = rng.integers(4, size=n), rng.integers(12, size=n)
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 1.5 + 0.8 * (region == 1) + 0.1 * channel
    chance = expit(3.0 * score)
    labelled = rng.random(n) < 0.7 * np.clip(2.0 * chance - 1.0, 0.0, 1.0) ** 2
    frame = pd.DataFrame(X.round(4), columns=[f"x{i}" for i in range(N_NUMBERS)])
    frame["region"], frame["channel"] = REGIONS[region], CHANNELS[channel]
    return frame, labelled


def write_rows(path, n, seed):
    rng = np.random.default_rng(seed)
    for start in range(0, n, CHUNK):
        frame, _ = draw(min(CHUNK, n - start), rng)
        frame.to_csv(path, mode="a", header=start == 0, index=False)


def fit_model(folder, n):
    frame, labelled = draw(n, np.random.default_rng(0))
    frame["found"] = np.where(labelled, "yes", "")
    frame.to_csv(folder / "train.csv", index=False)
    results = folder / "results"
    command = ["fit", folder / "train.csv", "--label", "found", "--out", results, "-q"]
    subprocess.run([PROBGAP, *map(str, command)], check=True)
    return results / "model.skops"


def measure(model, path):
    """Give wall seconds, CPU seconds and peak memory in MB of one run."""
    scores = path.with_suffix(".scores.csv")
    arguments = [PROBGAP, "predict", str(model), str(path), "--out", str(scores), "-q"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    started = time.perf_counter()
    child = os.posix_spawn(PROBGAP, arguments, environment)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        sys.exit(f"predict ended with status {status}")
    scores.unlink()
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--fit-rows", type=int, default=3000)
    parser.add_argument("--model", type=Path, help="A model of an earlier run.")
    parser.add_argument("--keep", type=Path, help="Keep the model in this folder.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = arguments.model or fit_model(folder, arguments.fit_rows)
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(model, arguments.keep / "model.skops")
        print("     rows  MB of CSV  wall s   CPU s  rows / CPU s  peak MB")
        for n in arguments.rows:
            path = folder / f"rows{n}.csv"
            write_rows(path, n, seed=1)
            wall, cpu, peak = measure(model, path)
            size = path.stat().st_size / 1e6
            print(
                f"{n:9,d} {size:10.0f} {wall:7.1f} {cpu:7.1f} {n / cpu:13,.0f} {peak:8.0f}",
                flush=True,
            )
            path.unlink()


if __name__ == "__main__":
    main()
