"""Measure ``probgap fit``, the whole command with its page: CPU seconds and peak memory.

    python benchmarks/tool.py                          # all shapes; the last takes minutes
    python benchmarks/tool.py --shape 5.7kx20 text     # some of them
    python benchmarks/tool.py --fast                   # without the checks
    python benchmarks/tool.py --compare                # probgap compare instead

Tables are drawn: numbers, three categories and a date, with cells missing; one of messages,
one of many columns that are mostly 0. Labels go to the clearest positives first. The command
runs in a process of its own, with one thread; its CPU time includes the start of Python.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

SHAPES = {
    "5.7kx20": (5_700, 20),
    "36kx16": (36_000, 16),
    "text": (4_500, 1),
    "1.6kx1555": (1_600, 1_555),
    "80kx24": (80_000, 24),
    "1Mx20": (1_000_000, 20),
}
SIZES = {"region": 4, "product": 12, "town": 150}  # levels of the categories
SUBJECTS = ["I", "we", "you", "they", "nobody", "my friend", "our driver", "your bank"]
VERBS = ["meet", "call", "send", "win", "claim", "need", "want", "pay", "bring", "miss"]
# From what harmless messages are about to what others are.
THINGS = [
    "dinner",
    "film",
    "bus",
    "lecture",
    "coffee",
    "mother",
    "key",
    "book",
    "train",
]
THINGS += ["phone", "answer", "parcel", "ticket", "message", "money", "code", "offer"]
THINGS += ["cash", "account", "reward", "prize"]
TIMES = ["today", "tomorrow", "now", "tonight", "later", "at five", "on Monday"]


def draw(n, n_columns, seed=0):
    """Return a table, with a column ``found`` that is yes for labelled positives."""
    rng = np.random.default_rng(seed)
    make = messages if n_columns == 1 else flags if n_columns > 500 else mixed
    frame, score = make(n, n_columns, rng)
    positive = rng.random(n) < expit(3.0 * (score - np.quantile(score, 0.75)))
    clear = np.argsort(np.argsort(score)) / n
    labelled = positive & (rng.random(n) < clear**5)
    frame["found"] = np.where(labelled, "yes", "")
    return frame


def mixed(n, n_columns, rng):
    """Draw numbers, categories and a date, of which some are missing."""
    n_numbers = n_columns - len(SIZES) - 1
    X = rng.normal(size=(n, n_numbers))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 + X[:, 2] * (X[:, 3] > 0.0)
    X[:, 4:8] = np.floor(np.exp(X[:, 4:8] + 2.0))  # counts
    frame = pd.DataFrame(X.round(3), columns=[f"x{j}" for j in range(n_numbers)])
    for name, size in SIZES.items():
        level = (rng.random(n) ** 2 * size).astype(int)
        score = score + rng.normal(size=size)[level] / 2.0
        frame[name] = np.array([f"{name} {k}" for k in range(size)])[level]
    days = rng.integers(2000, size=n)
    frame["since"] = (np.datetime64("2019-01-01") + days).astype(str)
    for name in [*frame.columns[:6], *SIZES, "since"]:
        frame[name] = frame[name].mask(rng.random(n) < 0.03)
    return frame, score + days / 1000.0


def flags(n, n_columns, rng):
    """Draw columns of 0 and 1 that few topics explain, and three numbers."""
    topic = rng.normal(size=(n, 8))
    odds = topic @ rng.normal(size=(8, n_columns - 3)) - 5.0
    frame = pd.DataFrame((rng.random(odds.shape) < expit(odds)).astype(int))
    frame.columns = [f"has {j}" for j in frame.columns]
    for j, name in enumerate(("height", "width", "ratio")):
        frame[name] = np.exp(topic[:, j] + 4.0).round(2)
        frame[name] = frame[name].mask(rng.random(n) < 0.2)
    return frame, topic[:, 0] + topic[:, 1] + topic[:, 3]


def messages(n, _, rng):
    """Draw messages of one to five sentences, about ``THINGS``."""
    score = rng.normal(size=n)
    weight = np.linspace(-1.0, 1.0, len(THINGS))
    words = [f"{a}{b}" for a in "bcdfghlmnprstvw" for b in ("ana", "elo", "iri", "umo")]
    texts = []
    for value in score:
        share = np.exp(1.5 * value * weight)
        text = []
        for _ in range(rng.integers(1, 6)):
            thing = rng.choice(THINGS, p=share / share.sum())
            parts = (rng.choice(SUBJECTS), rng.choice(VERBS), "the", thing)
            filler = rng.choice(words, size=rng.integers(1, 6))
            text.append(" ".join([*parts, *filler, rng.choice(TIMES)]) + ".")
        texts.append(" ".join(text))
    return pd.DataFrame({"message": texts}), score


def measure(command, *arguments):
    """Return wall seconds, CPU seconds and peak memory in GB of one run."""
    words = ["-m", "probgap", command, *map(str, arguments), "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    started = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, *words],
            environment,
            file_actions=actions,
        )
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"probgap {command} ended with status {status}")
    spent = used.ru_utime + used.ru_stime
    return time.perf_counter() - started, spent, used.ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--fast", action="store_true", help="leave out the checks")
    parser.add_argument("--compare", action="store_true", help="run probgap compare")
    parser.add_argument(
        "--rounds", type=int, default=1, help="of which the best counts"
    )
    given = parser.parse_args()
    print("shape       wall s   CPU s  peak GB")
    with tempfile.TemporaryDirectory() as folder:
        for shape in given.shape:
            table = Path(folder, f"{shape}.csv")
            draw(*SHAPES[shape]).to_csv(table, index=False)
            arguments = [table, "--label", "found"]
            if not given.compare:
                arguments += ["--out", Path(folder, "results"), "--force"]
            if given.fast:
                arguments.append("--fast")
            command = "compare" if given.compare else "fit"
            runs = [measure(command, *arguments) for _ in range(given.rounds)]
            wall, spent, peak = min(runs, key=lambda run: run[1])
            print(f"{shape:10} {wall:7.1f} {spent:7.1f} {peak:8.2f}", flush=True)


if __name__ == "__main__":
    main()
