"""The data of the experiments: drawn or loaded, with labels hidden, split in two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from probgap import datasets
from probgap._core.runtime import one_thread
from probgap._core.types import Array, Mask, Vector
from probgap.exceptions import InvalidInputError
from research.paper import tcdb

_REAL = "real"  # the labels that came with the data
_DRAWN = {"triangles": datasets.make_triangles, "square": datasets.make_square}
_PROTEINS = "tcdb"
SIZES = {
    "triangles": 2000,
    "square": 2000,
    "splice": 2991,
    "banana": 5300,
    "twonorm": 7400,
    "image": 2086,
    "heart": 270,
    "tcdb": 7359,
}


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which positives are left unlabelled: a mislabelled rate, or real labels."""

    rate: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if (self.rate, *self.parameters) != (_REAL,):
            self.function()

    def __str__(self) -> str:
        """Return it as the tables write it: inverse(0.1, 0.5)."""
        numbers = ", ".join(f"{value:g}" for value in self.parameters)
        return f"{self.rate}({numbers})" if numbers else self.rate

    def function(self) -> datasets.GapFunction:
        """Return the mislabelled rate as a function of the gap."""
        return datasets.make_rate((self.rate, *self.parameters))

    @property
    def true_boundary(self) -> float | None:
        """The observed gap where the true gap is 0; unknown for real labels."""
        if self.rate == _REAL:
            return None
        return -float(np.asarray(self.function()(np.zeros(1)))[0])


class Sample(NamedTuple):
    """What splits are drawn from: a data set, its labels, size and scale of features."""

    data: str
    labelling: Labelling
    size: int
    standardise: bool = True


class Problem(NamedTuple):
    """Samples with true and observed labels."""

    X: Array
    y: Mask
    s: Mask


def check_data(names: Iterable[str]) -> None:
    """Load all data sets before the first job, so that none is missing later."""
    for name in sorted(set(names) - set(_DRAWN)):
        if name == _PROTEINS:
            tcdb.load_vectors()
        else:
            datasets.load_benchmark(name)


def seed_for(*parts: object) -> int:
    """Return a seed by purpose, so that a job does not depend on order or process."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) // 2


def draw_split(sample: Sample, split: int, share: float) -> tuple[Problem, Problem]:
    """Draw a training and a test part, standardised by the training part if at all."""
    X, y, s = _draw_problem(sample)
    seed = seed_for("split", sample.data, sample.labelling, split)
    train, test = train_test_split(
        np.arange(y.size), test_size=share, random_state=seed
    )
    if sample.standardise:
        X = StandardScaler().fit(X[train]).transform(X)
    return Problem(X[train], y[train], s[train]), Problem(X[test], y[test], s[test])


@cache
def _draw_problem(sample: Sample) -> Problem:
    """Draw or load the samples, and hide labels: once for all splits."""
    data, labelling, size, _ = sample
    if (data == _PROTEINS) != (labelling.rate == _REAL):
        rule = repr(_REAL) if data == _PROTEINS else "a function: no observed labels"
        msg = f"the rate of {data} must be {rule}. Got {labelling}."
        raise InvalidInputError(msg)
    if data == _PROTEINS:
        _, y, s = tcdb.load_tcdb()
        X = tcdb.load_vectors()
    else:
        if data in _DRAWN:
            seed = seed_for("data", data, labelling)
            drawn = _DRAWN[data](size, random_state=seed)
            X, y = drawn.X, drawn.y > 0
            gap = _gap(data, X, drawn.y)
        else:
            X, y, gap = _load(data)
        seed = seed_for("labels", data, labelling)
        s = datasets.hide_labels(X, y, gap, labelling.function(), seed).astype(np.bool_)
    if y.size == size:
        return Problem(X, y, s)
    rng = np.random.default_rng(seed_for("rows", data))
    rows = np.sort(rng.choice(y.size, size, replace=False))
    return Problem(X[rows], y[rows], s[rows])


@cache
def _load(data: str) -> tuple[Array, Mask, Vector]:
    X, y = datasets.load_benchmark(data)
    return X, y > 0, _gap(data, X, y)


def _gap(data: str, X: Array, y: NDArray[np.generic]) -> Vector:
    with one_thread():
        scaled = StandardScaler().fit_transform(X)
        return datasets.platt_gap(scaled, y, random_state=seed_for("gap", data))
