"""Data: drawn with their posterior, loaded, joined, and labels hidden by a rate."""

import hashlib
import os
from collections.abc import Callable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from probgap._core.checks import check_gap, check_unit_interval, decode_labels
from probgap._core.errors import load_library, refuse
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Array, Matrix, Vector
from probgap.gap import ObservedGapEstimator

__all__ = [
    "SyntheticData",
    "from_positive_and_unlabelled",
    "hide_labels",
    "load_benchmark",
    "make_square",
    "make_triangles",
    "platt_gap",
]

GapFunction = Callable[[Vector], ArrayLike]
RateLike = GapFunction | Sequence[Any]

_POSITIVE_TRIANGLE = ((-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
_NEGATIVE_TRIANGLE = ((-1.0, -1.0), (1.0, 1.0), (1.0, -1.0))
# Files are identified by their content: another version would give other numbers.
SHA256 = {
    "banana": "ba36bff5f0b3070bbe958f986c79532800ac56c8fb2c0e2606a0979540a01f49",
    "heart": "07cc0859c7bef781576f9a7a8c1f5359e09dc4c11b0637c0a31bf01aafde6173",
    "image": "bcf2bd2111ee3affd66f6753706516e4980a497348d714396d27bf6084e2069c",
    "splice": "5b42993bbefd8368dd8bd0854859c26f704e08a2825fb74b40fdacedc6d60b5d",
    "twonorm": "617303784972dc561ec74f9fccd29d2cdb874bf837d559dda9684060150cdff5",
}


class SyntheticData(NamedTuple):
    """Samples with true labels and their posterior.

    Attributes
    ----------
    X : ndarray of shape (n_samples, 2)
        Samples.
    y : ndarray of shape (n_samples,)
        True labels, 1 or 0.
    posterior : ndarray of shape (n_samples,)
        P(Y=1 | x) of each sample. The true gap is ``2 * posterior - 1``.
    """

    X: Array
    y: NDArray[np.int64]
    posterior: Vector


def make_triangles(
    n_samples: int = 2000, *, random_state: RandomStateLike = None
) -> SyntheticData:
    """Draw two classes from two triangles that share an edge, without overlap.

    Half of the samples are positive, uniform on the triangle above the diagonal of
    the square [-1, 1]^2; the others are negative, uniform on the one below. The
    posterior is 0 or 1, so that the true gap does not show how near a sample is to the
    other class: estimate one with :func:`platt_gap`, as the paper does.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of samples. If it is odd, there is one more negative.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw.

    Returns
    -------
    SyntheticData
        Samples, true labels and posterior, in random order.

    Examples
    --------
    >>> from probgap.datasets import make_triangles
    >>> X, y, posterior = make_triangles(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    n = _check_n_samples(n_samples)
    rng = as_generator(random_state)
    triangles = ((_POSITIVE_TRIANGLE, n // 2), (_NEGATIVE_TRIANGLE, n - n // 2))
    X = np.concatenate([_uniform_on_triangle(*drawn, rng) for drawn in triangles])
    order = rng.permutation(n)
    y = (order < n // 2).astype(np.int64)
    return SyntheticData(X[order], y, y.astype(np.float64))


def make_square(
    n_samples: int = 2000, *, random_state: RandomStateLike = None
) -> SyntheticData:
    """Draw two classes that overlap along the diagonal of a square.

    Samples are uniform on [-1, 1]^2 and positive with probability
    ``clip(0.5 - 10 * (x1 - x2), 0, 1)``.

    Parameters
    ----------
    n_samples, random_state : object
        As in :func:`make_triangles`.

    Returns
    -------
    SyntheticData
        Samples, true labels and posterior.

    Examples
    --------
    >>> from probgap.datasets import make_square
    >>> X, y, posterior = make_square(100, random_state=0)
    >>> bool(((posterior >= 0) & (posterior <= 1)).all())
    True
    """
    n = _check_n_samples(n_samples)
    rng = as_generator(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    posterior = np.clip(0.5 - 10.0 * (X[:, 0] - X[:, 1]), 0.0, 1.0)
    y = (rng.random(n) < posterior).astype(np.int64)
    return SyntheticData(X, y, posterior)


def _uniform_on_triangle(
    corners: tuple[tuple[float, float], ...], n: int, rng: np.random.Generator
) -> Array:
    origin, first, second = np.asarray(corners)
    u = rng.random((n, 2))
    outside = u.sum(axis=1) > 1.0  # the other half of the parallelogram: fold it back
    u[outside] = 1.0 - u[outside]
    points: Array = origin + u @ (np.stack([first, second]) - origin)
    return points


def _check_n_samples(n_samples: int) -> int:
    if not isinstance(n_samples, Integral) or n_samples < 2:
        refuse(f"n_samples must be an integer of at least 2. Got {n_samples!r}.")
    return int(n_samples)


def make_rate(rate: RateLike) -> GapFunction:
    """Return the rate that :func:`hide_labels` takes as a function of the gap."""
    if callable(rate):
        return rate
    match rate:
        case ("inverse", alpha, beta):
            _require_within("alpha", alpha, 1e-12, np.inf)
            _require_within("beta", beta, 0.0, np.inf)
            # A positive whose gap is below 0 has the rate of gap 0: there is a pole.
            return lambda gap: alpha / (alpha + np.maximum(gap, 0.0)) / (1.0 + beta)
        case ("linear", alpha):
            _require_within("alpha", alpha, 0.0, 1.0)
            return lambda gap: np.minimum(alpha * (1.0 - gap), 1.0)
        case ("constant", alpha):
            _require_within("alpha", alpha, 0.0, 1.0)
            return lambda gap: np.full(gap.shape, alpha)
    known = "('inverse', alpha, beta), ('linear', alpha) or ('constant', alpha)"
    return refuse(f"rate must be a function, {known}. Got {rate!r}.")


def _require_within(name: str, value: Any, least: float, most: float) -> None:
    if not least <= value <= most:
        refuse(f"{name} must lie between {least:g} and {most:g}. Got {value!r}.")


def platt_gap(
    X: Matrix, y_true: ArrayLike, *, random_state: RandomStateLike = None
) -> Vector:
    """Estimate the true gap from true labels by a Platt-scaled SVM.

    The paper does this to decide which positives are easy where the posterior is not
    known. Scale the features first: the RBF kernel depends on distances.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y_true : array-like of shape (n_samples,)
        True labels; the greater value is positive.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds of the calibration.

    Returns
    -------
    ndarray of shape (n_samples,)
        P(Y=1 | x) - P(Y=0 | x), each in [-1, 1].

    Examples
    --------
    >>> from probgap.datasets import make_triangles, platt_gap
    >>> X, y, _ = make_triangles(200, random_state=0)
    >>> bool(platt_gap(X, y, random_state=0)[y == 1].mean() > 0.5)
    True
    """
    estimator = ObservedGapEstimator(method="in_sample", random_state=random_state)
    positive = decode_labels(y_true, ask=False).labelled
    return estimator.fit(X, positive).observed_gap_


def hide_labels(
    X: Matrix,
    y_true: ArrayLike,
    gap: ArrayLike | None = None,
    rate: RateLike = ("inverse", 0.1, 0.5),
    random_state: RandomStateLike = None,
) -> NDArray[np.generic]:
    """Leave positives unlabelled with a probability that depends on their gap.

    Parameters
    ----------
    X, y_true : object
        As in :func:`platt_gap`; ``X`` is used only if ``gap`` is None.
    gap : array-like of shape (n_samples,), default=None
        True gap of each sample, in [-1, 1]. ``None`` estimates it by
        :func:`platt_gap`.
    rate : tuple or callable, default=("inverse", 0.1, 0.5)
        The mislabelled rate: ``("inverse", alpha, beta)``, ``("linear", alpha)``,
        ``("constant", alpha)``, or any function from an array of gaps to an array of
        rates in [0, 1]. The method of the paper assumes one that falls with the gap.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw. Pass the Generator that drew the data, or a different seed: with
        the seed that drew the data, labels would depend on the features.

    Returns
    -------
    ndarray of shape (n_samples,)
        Observed labels: ``y_true`` with some positives turned into the other value.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(1000, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> bool((s <= y).all()), bool(0.6 < s.sum() / y.sum() < 0.8)
    (True, True)
    """
    labels = decode_labels(y_true, ask=False)
    rng = as_generator(random_state)
    true_gap = check_gap(platt_gap(X, y_true, random_state=rng) if gap is None else gap)
    n_samples = labels.labelled.size
    if true_gap.size != n_samples:
        rule = f"one value for each of the {n_samples} samples"
        refuse(f"gap must have {rule}. Got {true_gap.size}.")
    each = np.broadcast_to(make_rate(rate)(true_gap), true_gap.shape)
    rates = check_unit_interval(each, "rate", n_samples)
    observed = labels.labelled & (rng.random(n_samples) >= rates)
    at = np.where(observed, labels.positive, 1 - labels.positive)
    return np.asarray(labels.classes[at])


def from_positive_and_unlabelled(
    X_pos: Any, X_unl: Any
) -> tuple[Any, NDArray[np.int64]]:
    """Join an array of positives and one of unlabelled samples: the two-array form.

    Much of the literature keeps the two apart; here all samples are one array with one
    label each. Counts and class prior of a fit are about both arrays together, as if one
    population had been labelled in part. They fail where positives were collected
    elsewhere: where they differ from the hidden ones in other ways than being clearer.

    Parameters
    ----------
    X_pos, X_unl : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Positives, and samples of which nobody knows; both with the same columns, as frames
        of one library, or as arrays, or of which either is sparse.

    Returns
    -------
    (X, y)
        All samples, the positives first, and 1 for them, 0 for the others.

    Examples
    --------
    >>> from probgap.datasets import from_positive_and_unlabelled
    >>> X, y = from_positive_and_unlabelled([[1.0], [2.0]], [[0.0], [3.0], [1.0]])
    >>> X.shape, y.tolist()
    ((5, 1), [1, 1, 0, 0, 0])
    """
    parts = [X if hasattr(X, "shape") else np.asarray(X) for X in (X_pos, X_unl)]
    names = [list(map(str, getattr(X, "columns", ()))) for X in parts]
    shapes = [tuple(X.shape) for X in parts]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        refuse(f"X_pos and X_unl must have the same columns. Got shapes {shapes}.")
    if names[0] != names[1]:
        refuse(f"X_pos and X_unl must have the same columns. Got {names}.")
    y = np.repeat([1, 0], [shape[0] for shape in shapes])
    if not names[0]:
        sparse = any(map(issparse, parts))
        return sparse_vstack(parts, format="csr") if sparse else np.vstack(parts), y
    if hasattr(parts[0], "vstack"):  # polars
        return parts[0].vstack(parts[1]), y
    pandas = load_library("pandas", extra="tool", purpose="tables")
    return pandas.concat(parts, ignore_index=True), y


class BenchmarkData(NamedTuple):
    """Samples of a benchmark as published, not scaled, and their true labels, 1 or -1."""

    X: Array
    y: NDArray[np.int8]


def load_benchmark(name: str) -> BenchmarkData:
    """Load one of the five benchmark sets of the paper.

    The file is searched for in the folder named by the environment variable
    ``PROBGAP_DATA``, then in ``~/.cache/probgap`` (or ``PROBGAP_CACHE``). Its SHA-256 is
    checked.

    Parameters
    ----------
    name : {"splice", "banana", "twonorm", "image", "heart"}
        Which one.

    Returns
    -------
    (X, y)
        Samples as published, not scaled, and true labels, 1 or -1.

    Examples
    --------
    >>> from probgap.datasets import load_benchmark
    >>> X, y = load_benchmark("heart")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (270, 13)
    """
    if name not in SHA256:
        refuse(f"name must be one of {tuple(SHA256)}. Got {name!r}.")
    with open_data_file(name, SHA256[name]) as file:
        return BenchmarkData(file["X"], file["y"])


def data_folders() -> list[Path]:
    """Return the folders in which data files are searched for; the last is the cache."""
    cache = os.environ.get("PROBGAP_CACHE") or Path.home() / ".cache" / "probgap"
    chosen = os.environ.get("PROBGAP_DATA")
    return [*([Path(chosen)] if chosen else []), Path(cache)]


def open_data_file(name: str, sha256: str) -> Any:
    """Open the arrays of a data file, if its content is the expected one."""
    folders = data_folders()
    found = [path for folder in folders if (path := folder / f"{name}.npz").is_file()]
    if not found:
        searched = " or ".join(str(folder) for folder in folders)
        refuse(
            f"{name}.npz was not found in {searched}. Put the file there, or set "
            "PROBGAP_DATA to the folder that has it."
        )
    digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if digest != sha256:
        refuse(
            f"{found[0]} is not the expected file. Its SHA-256 must be {sha256}. "
            f"Got {digest}."
        )
    return np.load(found[0], allow_pickle=False)
