"""Measure the command ``probgap``: CPU seconds and peak memory of whole processes.

    python benchmarks/tool.py                          # all shapes; the last takes minutes
    python benchmarks/tool.py --shape 5.7kx20 text     # some of them
    python benchmarks/tool.py --fast                   # without the checks
    python benchmarks/tool.py --compare                # probgap compare instead
    python benchmarks/tool.py --predict                # long files through probgap predict

Tables are drawn; labels go to the clearest positives first. Every command runs in a process of
its own, with one thread; its CPU time includes the start of Python.
"""

import tempfile
from pathlib import Path

import harness
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
# Words of messages, from what harmless ones are about to what others are.
THINGS = ["dinner", "film", "bus", "lecture", "coffee", "mother", "key", "book"]
THINGS += ["train", "phone", "answer", "parcel", "ticket", "message", "money", "code"]
THINGS += ["offer", "cash", "account", "reward", "prize"]
FILLERS = [f"{a}{b}" for a in "bcdfghlmnprstvw" for b in ("ana", "elo", "iri", "umo")]
LENGTHS = (100_000, 400_000, 1_000_000)  # of files to predict


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
    """Draw messages of some sentences, of words about ``THINGS`` among fillers."""
    score = rng.normal(size=n)
    weight = np.exp(1.5 * np.outer(score, np.linspace(-1.0, 1.0, len(THINGS))))
    texts = []
    for share in weight / weight.sum(axis=1, keepdims=True):
        size = rng.integers(1, 6)
        things = rng.choice(THINGS, size=(size, 1), p=share)
        words = np.hstack([things, rng.choice(FILLERS, size=(size, 8))])
        texts.append(". ".join(" ".join(sentence) for sentence in words))
    return pd.DataFrame({"message": texts}), score


def write(path, *shape, **options):
    """Write a table by a process of its own: the peak of a command counts its parent's memory."""
    harness.alone(_write, path, shape, options)


def _write(path, shape, options):
    draw(*shape, **options).to_csv(path, index=False)


def took(ran):
    return {"wall s": ran.wall, "CPU s": ran.cpu, "peak GB": ran.peak}


def measure_shapes(folder, options):
    found = {}
    for shape in options.shape:
        path = folder / f"{shape}.csv"
        write(path, *SHAPES[shape])
        words = ["compare", path] if options.compare else ["fit", path, "--force"]
        words += ["--label", "found", "-q"]
        words += [] if options.compare else ["--out", folder / "results"]
        words += ["--fast"] if options.fast else []
        found[shape] = took(harness.run_command(*harness.PROBGAP, *words, must=True))
    harness.show(harness.lines(found, "shape"), 2)


def measure_predictions(folder, lengths, n_fitted=3000):
    train, results, path = (folder / name for name in ("train.csv", "out", "rows.csv"))
    write(train, n_fitted, 20)
    words = ("fit", train, "--label", "found", "--out", results, "-q")
    harness.run_command(*harness.PROBGAP, *words, must=True)
    found = []
    for n in lengths:
        write(path, n, 20, seed=1)
        words = ("predict", results, path, "--out", folder / f"{n}.csv", "-q")
        ran = harness.run_command(*harness.PROBGAP, *words, must=True)
        row = {"rows": n, "CSV, MB": path.stat().st_size / 1e6}
        found.append(row | took(ran) | {"rows / CPU s": round(n / ran.cpu)})
    harness.show(pd.DataFrame(found), 2)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--fast", action="store_true", help="leave out the checks")
    parser.add_argument("--compare", action="store_true", help="run probgap compare")
    parser.add_argument("--predict", action="store_true", help="run probgap predict")
    options = harness.parse(parser)
    if options.quick:
        options.shape, options.fast = ["text"], not options.compare
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.predict:
            measure_predictions(folder, [20_000] if options.quick else LENGTHS)
        else:
            measure_shapes(folder, options)


if __name__ == "__main__":
    main()
