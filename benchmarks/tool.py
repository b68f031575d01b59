"""Measure the command ``probgap``: CPU seconds and peak memory of whole processes.

    python benchmarks/tool.py                          # all shapes; the last takes minutes
    python benchmarks/tool.py --shape 5.7kx20 text     # some of them
    python benchmarks/tool.py --fast                   # without the checks
    python benchmarks/tool.py --compare                # probgap compare instead
    python benchmarks/tool.py --predict                # long files through probgap predict
    python benchmarks/tool.py --imports                # imports, and refusals of bad input

Tables are drawn: numbers, three categories and a date, with cells missing; one of messages,
one of many columns that are mostly 0. Labels go to the clearest positives first. Every command
runs in a process of its own, with one thread; its CPU time includes the start of Python.

--predict fits 3000 rows of 20 columns, and predicts CSV files of more such rows.
--imports takes the best of 15 rounds; imports are less the start of an empty interpreter.
``import probgap`` loads its parts when they are asked for; what a user waits for in the end is
``from probgap import PGPUClassifier``, which loads them. A command that cannot do what it is
asked for refuses before it loads scikit-learn.
"""

from __future__ import annotations

import sys
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
SUBJECTS = ["I", "we", "you", "they", "nobody", "my friend", "our driver", "your bank"]
VERBS = ["meet", "call", "send", "win", "claim", "need", "want", "pay", "bring", "miss"]
# From what harmless messages are about to what others are.
THINGS = ["dinner", "film", "bus", "lecture", "coffee", "mother", "key", "book"]
THINGS += ["train", "phone", "answer", "parcel", "ticket", "message", "money", "code"]
THINGS += ["offer", "cash", "account", "reward", "prize"]
TIMES = ["today", "tomorrow", "now", "tonight", "later", "at five", "on Monday"]
LENGTHS = (100_000, 400_000, 1_000_000)  # of files to predict
STATEMENTS = (
    "pass",
    "import sklearn.svm",
    "import probgap",
    "from probgap import PGPUClassifier",
)
REFUSALS = (
    "--help",
    "fit t.csv --label nope --out out",
    "fit nowhere.csv --label found --out out",
    "fit t.csv --label found --positive ja --out out",
    "fit t.csv --label found --out out --class-prior 7",
    "fit t.csv --label found --out out --seed x",
    "compare t.csv --label nope",
    "predict nowhere t.csv",
    "explain nowhere",
)


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


def write(path, *shape, **options):
    """Write a table by a process of its own: the peak of a command counts its parent's memory."""
    harness.alone(_write, path, shape, options)


def _write(path, shape, options):
    draw(*shape, **options).to_csv(path, index=False)


def took(ran):
    return {"wall s": ran.wall, "CPU s": ran.cpu, "peak GB": ran.peak}


def measure_shapes(folder, options):
    lines = {}
    for shape in options.shape:
        path = folder / f"{shape}.csv"
        write(path, *SHAPES[shape])
        words = [
            "compare" if options.compare else "fit",
            path,
            "--label",
            "found",
            "-q",
        ]
        words += [] if options.compare else ["--out", folder / "results", "--force"]
        words += ["--fast"] if options.fast else []
        lines[shape] = took(harness.must_run(*harness.PROBGAP, *words))
    harness.show(pd.DataFrame.from_dict(lines, orient="index").rename_axis("shape"), 2)


def measure_predictions(folder, lengths, n_fitted=3000):
    write(folder / "train.csv", n_fitted, 20)
    words = [
        "fit",
        folder / "train.csv",
        "--label",
        "found",
        "--out",
        folder / "results",
    ]
    harness.must_run(*harness.PROBGAP, *words, "-q")
    lines = []
    for n in lengths:
        path, scores = folder / "rows.csv", folder / f"{n}.csv"
        write(path, n, 20, seed=1)
        words = ["predict", folder / "results", path, "--out", scores, "-q"]
        ran = harness.must_run(*harness.PROBGAP, *words)
        line = {"rows": n, "CSV, MB": path.stat().st_size / 1e6}
        lines.append(line | took(ran) | {"rows / CPU s": round(n / ran.cpu)})
    harness.show(pd.DataFrame(lines), 2)


def measure_imports(folder, rounds):
    (folder / "t.csv").write_text("a,b,found\n1,2,yes\n2,3,\n3,1,yes\n4,4,\n")
    words = {text: (sys.executable, "-c", text) for text in STATEMENTS}
    words |= {text: (*harness.PROBGAP, *text.split(" ")) for text in REFUSALS}
    seconds = dict.fromkeys(words, np.inf)
    for _ in range(rounds):
        for text, command in words.items():
            ran = harness.run_command(*command, folder=folder)
            seconds[text] = min(seconds[text], ran.cpu)
    empty = seconds.pop("pass")
    peer = seconds[STATEMENTS[1]] - empty
    own = {text: seconds[text] - empty for text in STATEMENTS[1:]}
    lines = {text: {"CPU s": s, "of sklearn.svm": s / peer} for text, s in own.items()}
    lines |= {f"probgap {text}": {"CPU s": seconds[text]} for text in REFUSALS}
    harness.show(
        pd.DataFrame.from_dict(lines, orient="index").rename_axis("command"), 3
    )


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--fast", action="store_true", help="leave out the checks")
    parser.add_argument("--compare", action="store_true", help="run probgap compare")
    parser.add_argument("--predict", action="store_true", help="run probgap predict")
    parser.add_argument("--imports", action="store_true", help="imports and refusals")
    options = harness.parse(parser)
    if options.quick:
        options.shape, options.fast = ["text"], True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.predict:
            measure_predictions(folder, [20_000] if options.quick else LENGTHS)
        elif options.imports:
            measure_imports(folder, 1 if options.quick else 15)
        else:
            measure_shapes(folder, options)


if __name__ == "__main__":
    main()
