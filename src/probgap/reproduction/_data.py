"""Data sets and labellings: one split of one problem, the same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

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
_PROTEINS: dict[str, Literal["doc2vec", "svd"]] = {"tcdb": "doc2vec", "tcdb-svd": "svd"}
DATA_SIZES = {
    "triangles": 2000,
    "square": 2000,
    "splice": 2991,
    "banana": 5300,
    "twonorm": 7400,
    "image": 2086,
    "heart": 270,
    "tcdb": 7359,
    "tcdb-svd": 7359,
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


class Problem(NamedTuple):
    """Samples with true and observed labels."""

    X: Array
    y: Mask
    s: Mask


def check_data(names: Iterable[str]) -> None:
    """Check before the first job that all data sets are there.

    Parameters
    ----------
    names : iterable of str
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
        if name in _PROTEINS:
            load_tcdb_vectors(_PROTEINS[name])
        elif name not in _DRAWN:
            load_benchmark(name)


def size_of(data: str, max_rows: int | None) -> int:
    """Return the number of samples."""
    return min(DATA_SIZES[data], max_rows or DATA_SIZES[data])


def seed_for(*parts: object) -> int:
    """Return a seed that depends on what it is for, and on nothing else.

    Data, labelling and splits each have a seed of their own, so that a job has the same
    numbers alone, in any order and in any process.
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) // 2


def draw_split(
    data: str, labelling: Labelling, split: int, test_share: float, max_rows: int | None
) -> tuple[Problem, Problem]:
    """Draw a training and a test part, standardised by the training part."""
    X, y, s = _draw_problem(data, labelling, max_rows)
    seed = seed_for("split", data, labelling, split)
    rows = train_test_split(np.arange(y.size), test_size=test_share, random_state=seed)
    scaler = StandardScaler().fit(X[rows[0]])
    train, test = (
        Problem(scaler.transform(X[part]), y[part], s[part]) for part in rows
    )
    return train, test


@cache
def _draw_problem(data: str, labelling: Labelling, max_rows: int | None) -> Problem:
    """Draw or load the samples, and hide labels: once for all splits, as in the paper."""
    if (data in _PROTEINS) != (labelling.rate == REAL):
        rule = repr(REAL) if data in _PROTEINS else "a function: no observed labels"
        msg = f"the rate of {data} must be {rule}. Got {labelling}."
        raise InvalidInputError(msg)
    if data in _PROTEINS:
        proteins = load_tcdb()
        X, y, s = load_tcdb_vectors(_PROTEINS[data]), proteins.y > 0, proteins.s > 0
    else:
        if data in _DRAWN:
            seed = seed_for("data", data, labelling)
            X, drawn, _ = _DRAWN[data](size_of(data, max_rows), random_state=seed)
            y, gap = drawn > 0, _gap(data, X, drawn)
        else:
            X, y, gap = _load(data)
        seed = seed_for("labels", data, labelling)
        s = hide_labels(X, y, gap, labelling.function(), seed).astype(np.bool_)
    if max_rows is None or y.size <= max_rows:
        return Problem(X, y, s)
    rng = np.random.default_rng(seed_for("rows", data))
    rows = np.sort(rng.choice(y.size, max_rows, replace=False))
    return Problem(X[rows], y[rows], s[rows])


@cache
def _load(data: str) -> tuple[Array, Mask, Vector]:
    X, y = load_benchmark(data)
    return X, y > 0, _gap(data, X, y)


def _gap(data: str, X: Array, y: NDArray[np.generic]) -> Vector:
    with threadpool_limits(1):
        scaled = StandardScaler().fit_transform(X)
        return platt_gap(scaled, y, random_state=seed_for("gap", data))
