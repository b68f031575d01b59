"""The paper's real data sets, from files that the user has."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, load_library

# The files are known by their content: another version would give other numbers.
_SHA256 = {
    "banana": "ba36bff5f0b3070bbe958f986c79532800ac56c8fb2c0e2606a0979540a01f49",
    "heart": "07cc0859c7bef781576f9a7a8c1f5359e09dc4c11b0637c0a31bf01aafde6173",
    "image": "bcf2bd2111ee3affd66f6753706516e4980a497348d714396d27bf6084e2069c",
    "splice": "5b42993bbefd8368dd8bd0854859c26f704e08a2825fb74b40fdacedc6d60b5d",
    "tcdb_bow": "5092661ac25e769e6780a2c5b4cf36a4d1e07f05769e77e0f8fec288711561f5",
    "twonorm": "617303784972dc561ec74f9fccd29d2cdb874bf837d559dda9684060150cdff5",
}
_BENCHMARKS = tuple(name for name in _SHA256 if name != "tcdb_bow")


class DataFileError(InvalidInputError):
    """A data file is missing, or is not the file it should be."""


class BenchmarkData(NamedTuple):
    """Samples and true labels of a benchmark.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples, as they were published: scale them.
    y : ndarray of shape (n_samples,)
        True labels, 1 or -1.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int8]


class TCDBData(NamedTuple):
    """Protein records as word counts, with observed and true labels.

    Attributes
    ----------
    X : csr_array of shape (7359, 24080)
        How often each word occurs in each record.
    s : ndarray of shape (7359,)
        Observed labels: 1 for the records of the transport protein database, -1 else.
    y : ndarray of shape (7359,)
        True labels: 1 for transport proteins, in the database or found by hand.
    group : ndarray of shape (7359,)
        "P" for labelled positives, "Q" for those found by hand, "N" for the rest.
    """

    X: Any
    s: NDArray[np.int8]
    y: NDArray[np.int8]
    group: NDArray[np.str_]


def load_benchmark(name: str) -> BenchmarkData:
    """Load one of the five benchmark sets of the paper.

    The file is looked for in the folder that the environment variable ``PROBGAP_DATA``
    names, then in ``~/.cache/probgap`` (or ``PROBGAP_CACHE``), then fetched into that
    cache from the address in ``PROBGAP_DATA_URL``, if there is one; and checked by its
    SHA-256.

    Parameters
    ----------
    name : {"splice", "banana", "twonorm", "image", "heart"}
        Which one.

    Returns
    -------
    BenchmarkData
        Samples and true labels.

    Examples
    --------
    >>> from probgap.datasets import load_benchmark
    >>> X, y = load_benchmark("heart")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (270, 13)
    """
    if name not in _BENCHMARKS:
        msg = f"name must be one of {_BENCHMARKS}. Got {name!r}."
        raise InvalidInputError(msg)
    with _open(name) as file:
        return BenchmarkData(file["X"], file["y"])


def load_tcdb() -> TCDBData:
    """Load the transport proteins of Elkan and Noto, as bags of words.

    The labels are real: the positives that were known are labelled, and 348 more were
    found by hand among the others. Word ids above 13086 occur in negatives alone, so
    never cut the vocabulary by id. The file is looked for as in
    :func:`load_benchmark`.

    Returns
    -------
    TCDBData
        Word counts, observed labels, true labels and groups.

    Examples
    --------
    >>> from probgap.datasets import load_tcdb
    >>> load_tcdb().X.shape  # doctest: +SKIP
    (7359, 24080)
    """
    with _open("tcdb_bow") as file:
        counts = sp.csr_array(
            (file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"])
        )
        observed = np.where(file["s"] == 1, 1, -1).astype(np.int8)
        return TCDBData(counts, observed, file["y"], file["group"])


def cache_folder() -> Path:
    """Return the folder for what can be made or fetched again."""
    chosen = os.environ.get("PROBGAP_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "probgap"


def _open(name: str) -> Any:
    path = _find(f"{name}.npz", _SHA256[name])
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256[name]:
        msg = (
            f"{path} must have the SHA-256 {_SHA256[name]}, or the numbers would be of "
            f"other data. Got {found}."
        )
        raise DataFileError(msg)
    return np.load(path, allow_pickle=False)


def _find(file_name: str, sha256: str) -> Path:
    chosen = os.environ.get("PROBGAP_DATA")
    folders = [*([Path(chosen)] if chosen else []), cache_folder()]
    for folder in folders:
        if (folder / file_name).is_file():
            return folder / file_name
    if address := os.environ.get("PROBGAP_DATA_URL"):
        return _download(file_name, address, sha256)
    looked = " and ".join(str(folder) for folder in folders)
    msg = (
        f"{file_name} must be in the folder that PROBGAP_DATA names or in the cache. "
        f"Got neither: looked in {looked}. Put the file there, set PROBGAP_DATA to the "
        "folder that has it, or PROBGAP_DATA_URL to an address that serves it."
    )
    raise DataFileError(msg)


def _download(file_name: str, address: str, sha256: str) -> Path:
    pooch = load_library("pooch", extra="data", purpose="downloading")
    url = f"{address.rstrip('/')}/{file_name}"
    try:
        return Path(pooch.retrieve(url, sha256, file_name, cache_folder()))
    except (OSError, ValueError) as error:
        msg = f"{url} must serve the file with the SHA-256 {sha256}. Got {error}"
        raise DataFileError(msg) from None
