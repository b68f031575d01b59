"""From the name of a data set and a labelling to one split, the same in every process."""

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
from probgap._core.types import Mask
from probgap.datasets import (
    hide_labels,
    load_benchmark,
    load_tcdb,
    load_tcdb_vectors,
    make_square,
    make_triangles,
    platt_gap,
)
from probgap.experiments._spec import REAL, Labelling

Samples = NDArray[np.float64]

_DRAWN = {"triangles": make_triangles, "square": make_square}
_LOADED = ("splice", "banana", "twonorm", "image", "heart")
_PROTEINS = {"tcdb": "doc2vec", "tcdb-svd": "svd"}
DATA = (*_DRAWN, *_LOADED, *_PROTEINS)
_SIZE_OF_DRAWN = 2000


@dataclass(frozen=True, slots=True)
class Problem:
    """Samples with true and observed labels."""

    X: Samples
    y: Mask
    s: Mask


@dataclass(frozen=True, slots=True)
class Split:
    """A training part and a test part, standardised by the training part."""

    X_train: Samples
    y_train: Mask
    s_train: Mask
    X_test: Samples
    y_test: Mask


def seed_for(*parts: object) -> int:
    """Give a seed that depends on what it is for, and on nothing else.

    Data, labelling and splits are drawn from seeds of their own, so that a job gives the
    same numbers alone, in any order and in any process.
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
    if data in _PROTEINS:
        if labelling.rate != REAL:
            msg = f"the rate of {data} must be {REAL!r}. Got {labelling}."
            raise InvalidInputError(msg)
        proteins = load_tcdb()
        X = _vectors(data)
        return _some(Problem(X, proteins.y > 0, proteins.s > 0), data, max_rows)
    if labelling.rate == REAL:
        msg = f"the rate of {data} must be a function: it has no observed labels. Got {labelling}."
        raise InvalidInputError(msg)
    X, y, gap = _samples(data, labelling, max_rows)
    observed = hide_labels(
        X, y, gap, labelling.function(), seed_for("labels", data, labelling)
    )
    problem = Problem(X, y, observed.astype(np.bool_))
    return _some(problem, data, max_rows)


def check_data(names: set[str]) -> None:
    """Find out before the first job whether all data sets are there.

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
    >>> from probgap.experiments import check_data
    >>> check_data({"triangles", "square"})
    """
    for name in sorted(names):
        if name not in DATA:
            msg = f"data must be one of {DATA}. Got {name!r}."
            raise InvalidInputError(msg)
        if name in _LOADED:
            load_benchmark(name)
        elif name in _PROTEINS:
            _vectors(name)


def size_of(data: str, max_rows: int | None) -> int:
    """Give the number of samples, which says how long a job may take."""
    sizes = {
        "splice": 2991,
        "banana": 5300,
        "twonorm": 7400,
        "image": 2086,
        "heart": 270,
        "tcdb": 7359,
        "tcdb-svd": 7359,
    }
    size = sizes.get(data, _SIZE_OF_DRAWN)
    return size if max_rows is None else min(size, max_rows)


def _samples(
    data: str, labelling: Labelling, max_rows: int | None
) -> tuple[Samples, Mask, Samples]:
    if data not in _DRAWN:
        return _benchmark(data)
    X, y, _ = _DRAWN[data](
        size_of(data, max_rows), random_state=seed_for("data", data, labelling)
    )
    return X, y.astype(np.bool_), _gap(X, y, data)


@lru_cache(maxsize=2)
def _benchmark(data: str) -> tuple[Samples, Mask, Samples]:
    X, y = load_benchmark(data)
    return X, y > 0, _gap(X, y, data)


@lru_cache(maxsize=1)
def _vectors(data: str) -> Samples:
    return load_tcdb_vectors("svd" if _PROTEINS[data] == "svd" else "doc2vec")


def _gap(X: Samples, y: NDArray[np.generic], data: str) -> Samples:
    with threadpool_limits(1):
        scaled = StandardScaler().fit_transform(X)
        return platt_gap(scaled, y, random_state=seed_for("gap", data))


def _some(problem: Problem, data: str, max_rows: int | None) -> Problem:
    size = problem.y.size
    if max_rows is None or size <= max_rows:
        return problem
    rng = np.random.default_rng(seed_for("rows", data))
    rows = np.sort(rng.choice(size, max_rows, replace=False))
    return Problem(problem.X[rows], problem.y[rows], problem.s[rows])
