"""Data sets and labellings: one split of one problem, the same in every process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from probgap._core.errors import InvalidInputError
from probgap._core.types import Array, Mask, Vector
from probgap.datasets import (
    ConstantRate,
    InverseRate,
    LinearRate,
    hide_labels,
    load_benchmark,
    load_tcdb,
    load_tcdb_vectors,
    make_square,
    make_triangles,
    platt_gap,
)

REAL = "real"  # the labels that came with the data
_RATES = {"inverse": InverseRate, "linear": LinearRate, "constant": ConstantRate}
_DRAWN = {"triangles": make_triangles, "square": make_square}
_PROTEINS = ("tcdb", "tcdb-svd")
_SIZES = {
    **dict.fromkeys(_DRAWN, 2000),
    "splice": 2991,
    "banana": 5300,
    "twonorm": 7400,
    "image": 2086,
    "heart": 270,
    **dict.fromkeys(_PROTEINS, 7359),
}


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which positives are left unlabelled: a mislabelled rate, or labels as they came."""

    rate: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the rate by making it."""
        if self.rate == REAL and not self.parameters:
            return
        try:
            self.function()
        except (KeyError, TypeError):
            msg = (
                f"a rate must be [{REAL!r}], or one of {sorted(_RATES)} with its "
                f"parameters. Got {[self.rate, *self.parameters]}."
            )
            raise InvalidInputError(msg) from None

    def __str__(self) -> str:
        """Return it as the tables write it: inverse(0.1, 0.5)."""
        numbers = ", ".join(f"{value:g}" for value in self.parameters)
        return f"{self.rate}({numbers})" if numbers else self.rate

    def function(self) -> InverseRate | LinearRate | ConstantRate:
        """Return the mislabelled rate as a function of the gap."""
        return _RATES[self.rate](*self.parameters)

    @property
    def true_boundary(self) -> float | None:
        """The observed gap where the true gap is 0; unknown for real labels."""
        if self.rate == REAL:
            return None
        return -float(self.function()(np.zeros(1))[0])


@dataclass(frozen=True, slots=True)
class Problem:
    """Samples with true and observed labels."""

    X: Array
    y: Mask
    s: Mask


@dataclass(frozen=True, slots=True)
class Split:
    """A training part and a test part, standardised by the training part."""

    X_train: Array
    y_train: Mask
    s_train: Mask
    X_test: Array
    y_test: Mask


def check_data(names: set[str]) -> None:
    """Check before the first job that all data sets are there.

    Parameters
    ----------
    names : set of str
        Names of data sets.

    Raises
    ------
    DataFileError
        If a file is missing, or is not the file it should be.

    Examples
    --------
    >>> from probgap.reproduction import check_data
    >>> check_data({"triangles", "square"})
    """
    for name in sorted(names):
        check_name(name)
        if name in _PROTEINS:
            _vectors(name)
        elif name not in _DRAWN:
            load_benchmark(name)


def check_name(data: str) -> None:
    """Refuse an unknown data set."""
    if data not in _SIZES:
        msg = f"data must be one of {tuple(_SIZES)}. Got {data!r}."
        raise InvalidInputError(msg)


def size_of(data: str, max_rows: int | None) -> int:
    """Return the number of samples."""
    return min(_SIZES[data], max_rows or _SIZES[data])


def seed_for(*parts: object) -> int:
    """Return a seed that depends on what it is for, and on nothing else.

    Data, labelling and splits each have a seed of their own, so that a job has the same
    numbers alone, in any order and in any process.
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) // 2


def draw_split(
    data: str, labelling: Labelling, split: int, test_share: float, max_rows: int | None
) -> Split:
    """Draw one random split of one data set under one labelling."""
    problem = draw_problem(data, labelling, max_rows)
    train, test = train_test_split(
        np.arange(problem.y.size),
        test_size=test_share,
        random_state=seed_for("split", data, labelling, split),
    )
    scaler = StandardScaler().fit(problem.X[train])
    return Split(
        X_train=scaler.transform(problem.X[train]),
        y_train=problem.y[train],
        s_train=problem.s[train],
        X_test=scaler.transform(problem.X[test]),
        y_test=problem.y[test],
    )


@lru_cache(maxsize=4)
def draw_problem(data: str, labelling: Labelling, max_rows: int | None) -> Problem:
    """Draw or load the samples, and hide labels: once for all splits, as in the paper."""
    if (data in _PROTEINS) != (labelling.rate == REAL):
        rule = repr(REAL) if data in _PROTEINS else "a function: no observed labels"
        msg = f"the rate of {data} must be {rule}. Got {labelling}."
        raise InvalidInputError(msg)
    if data in _PROTEINS:
        proteins = load_tcdb()
        problem = Problem(_vectors(data), proteins.y > 0, proteins.s > 0)
    else:
        X, y, gap = (
            _drawn(data, labelling, max_rows) if data in _DRAWN else _loaded(data)
        )
        seed = seed_for("labels", data, labelling)
        s = hide_labels(X, y, gap, labelling.function(), seed)
        problem = Problem(X, y, s.astype(np.bool_))
    if max_rows is None or problem.y.size <= max_rows:
        return problem
    rng = np.random.default_rng(seed_for("rows", data))
    rows = np.sort(rng.choice(problem.y.size, max_rows, replace=False))
    return Problem(problem.X[rows], problem.y[rows], problem.s[rows])


def _drawn(
    data: str, labelling: Labelling, max_rows: int | None
) -> tuple[Array, Mask, Vector]:
    seed = seed_for("data", data, labelling)
    X, y, _ = _DRAWN[data](size_of(data, max_rows), random_state=seed)
    return X, y.astype(np.bool_), _gap(X, y, data)


@lru_cache(maxsize=2)
def _loaded(data: str) -> tuple[Array, Mask, Vector]:
    X, y = load_benchmark(data)
    return X, y > 0, _gap(X, y, data)


@lru_cache(maxsize=1)
def _vectors(data: str) -> Array:
    return load_tcdb_vectors("svd" if data == "tcdb-svd" else "doc2vec")


def _gap(X: Array, y: NDArray[np.generic], data: str) -> Vector:
    with threadpool_limits(1):
        scaled = StandardScaler().fit_transform(X)
        return platt_gap(scaled, y, random_state=seed_for("gap", data))
