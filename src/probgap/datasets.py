"""Data: drawn with their posterior, loaded from files, and labels hidden by a rate."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from probgap._core.checks import check_gap, read_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.output import whole_file
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Matrix, Vector
from probgap.gap import ObservedGapEstimator

__all__ = [
    "BenchmarkData",
    "ConstantRate",
    "DataFileError",
    "InverseRate",
    "LinearRate",
    "SyntheticData",
    "TCDBData",
    "hide_labels",
    "load_benchmark",
    "load_tcdb",
    "load_tcdb_vectors",
    "make_square",
    "make_triangles",
    "paper_rates",
    "platt_gap",
]

GapFunction = Callable[[Vector], ArrayLike]
RateLike = GapFunction | Sequence[object]

_POSITIVE_TRIANGLE = ((-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
_NEGATIVE_TRIANGLE = ((-1.0, -1.0), (1.0, 1.0), (1.0, -1.0))
# Files are identified by their content: another version would give other numbers.
_SHA256 = {
    "banana": "ba36bff5f0b3070bbe958f986c79532800ac56c8fb2c0e2606a0979540a01f49",
    "heart": "07cc0859c7bef781576f9a7a8c1f5359e09dc4c11b0637c0a31bf01aafde6173",
    "image": "bcf2bd2111ee3affd66f6753706516e4980a497348d714396d27bf6084e2069c",
    "splice": "5b42993bbefd8368dd8bd0854859c26f704e08a2825fb74b40fdacedc6d60b5d",
    "tcdb_bow": "5092661ac25e769e6780a2c5b4cf36a4d1e07f05769e77e0f8fec288711561f5",
    "twonorm": "617303784972dc561ec74f9fccd29d2cdb874bf837d559dda9684060150cdff5",
}
_BENCHMARKS = tuple(name for name in _SHA256 if name != "tcdb_bow")


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
    n_samples : int, default=2000
        Number of samples.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw.

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
        msg = f"n_samples must be an integer of at least 2. Got {n_samples!r}."
        raise InvalidInputError(msg)
    return int(n_samples)


@dataclass(frozen=True, slots=True)
class InverseRate:
    """Mislabelled rate alpha / ((alpha + gap) (1 + beta)), for gaps above 0.

    It falls from 1 / (1 + beta) at gap 0. A positive whose gap is below 0 has the
    rate of gap 0, since the formula would rise without bound.
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        _require_within("alpha", self.alpha, 1e-12, np.inf)
        _require_within("beta", self.beta, 0.0, np.inf)

    def __call__(self, gap: Vector) -> Vector:
        """Return the chance that a positive with this gap is left unlabelled."""
        falls = self.alpha / (self.alpha + np.maximum(gap, 0.0))
        return falls / (1.0 + self.beta)


@dataclass(frozen=True, slots=True)
class LinearRate:
    """Mislabelled rate alpha (1 - gap), clipped at 1."""

    alpha: float

    def __post_init__(self) -> None:
        _require_within("alpha", self.alpha, 0.0, 1.0)

    def __call__(self, gap: Vector) -> Vector:
        """Return the chance that a positive with this gap is left unlabelled."""
        return np.minimum(self.alpha * (1.0 - gap), 1.0)


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """The same mislabelled rate everywhere: labels are missing at random."""

    alpha: float

    def __post_init__(self) -> None:
        _require_within("alpha", self.alpha, 0.0, 1.0)

    def __call__(self, gap: Vector) -> Vector:
        """Return the chance that a positive with this gap is left unlabelled."""
        return np.full(gap.shape, self.alpha)


Rate = InverseRate | LinearRate | ConstantRate
RATES: dict[str, Callable[..., Rate]]
RATES = {"inverse": InverseRate, "linear": LinearRate, "constant": ConstantRate}


def _require_within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        msg = f"{name} must lie between {least:g} and {most:g}. Got {value!r}."
        raise InvalidInputError(msg)


def paper_rates() -> list[Rate]:
    """List the 17 labellings of the paper's synthetic experiments.

    Returns
    -------
    list of InverseRate, LinearRate and ConstantRate
        Nine inverse, five linear and three constant rates.

    Examples
    --------
    >>> from probgap.datasets import paper_rates
    >>> len(paper_rates()), paper_rates()[0]
    (17, InverseRate(alpha=0.1, beta=0.5))
    """
    return [
        *(InverseRate(a, b) for a in (0.1, 0.2, 0.3) for b in (0.5, 1.0, 1.5)),
        *(LinearRate(a) for a in (0.2, 0.4, 0.6, 0.8, 1.0)),
        *(ConstantRate(a) for a in (0.1, 0.2, 0.3)),
    ]


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
    positive = read_labels(y_true, ask=False).labelled
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
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples. Used only if ``gap`` is None.
    y_true : array-like of shape (n_samples,)
        True labels, two values; the greater is positive.
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
    labels = read_labels(y_true, ask=False)
    rng = as_generator(random_state)
    true_gap = check_gap(platt_gap(X, y_true, random_state=rng) if gap is None else gap)
    n_samples = labels.labelled.size
    if true_gap.size != n_samples:
        rule = f"one value for each of the {n_samples} samples"
        msg = f"gap must have {rule}. Got {true_gap.size}."
        raise InvalidInputError(msg)
    rates = np.asarray(_make_rate(rate)(true_gap), dtype=np.float64)
    rates = np.broadcast_to(rates, true_gap.shape)
    if not ((rates >= 0.0) & (rates <= 1.0)).all():
        got = f"{rates.min():.6g} to {rates.max():.6g}"
        msg = f"rate must return values in [0, 1]. Got {got}."
        raise InvalidInputError(msg)
    observed = labels.labelled & (rng.random(n_samples) >= rates)
    at = np.where(observed, labels.positive, 1 - labels.positive)
    return np.asarray(labels.classes[at])


def _make_rate(rate: RateLike) -> GapFunction:
    if callable(rate):
        return rate
    name, *parameters = rate if isinstance(rate, Sequence) else (rate,)
    if not isinstance(name, str) or name not in RATES:
        rule = f"a function, or a tuple that begins with one of {sorted(RATES)}"
        msg = f"rate must be {rule}. Got {rate!r}."
        raise InvalidInputError(msg)
    try:
        return RATES[name](*parameters)
    except TypeError:
        expected = ", ".join(RATES[name].__annotations__)
        msg = f"rate must be ({name!r}, {expected}). Got {rate!r}."
        raise InvalidInputError(msg) from None


class DataFileError(InvalidInputError):
    """A data file is missing, or its content is not the expected one."""


class BenchmarkData(NamedTuple):
    """Samples and true labels of a benchmark.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples as published, not scaled.
    y : ndarray of shape (n_samples,)
        True labels, 1 or -1.
    """

    X: Array
    y: NDArray[np.int8]


class TCDBData(NamedTuple):
    """Protein records as word counts, with observed and true labels.

    Attributes
    ----------
    X : csr_array of shape (7359, 24080)
        Number of occurrences of each word in each record.
    s : ndarray of shape (7359,)
        Observed labels: 1 for records of the transport protein database, otherwise -1.
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

    The file is searched for in the folder named by the environment variable
    ``PROBGAP_DATA``, then in ``~/.cache/probgap`` (or ``PROBGAP_CACHE``). Otherwise it
    is downloaded to that cache from the address in ``PROBGAP_DATA_URL``, if set. Its
    SHA-256 is checked.

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

    The labels are real: positives known at the time are labelled, and 348 more were
    found by hand among the others. Word ids above 13086 occur in negatives alone, so
    never truncate the vocabulary by id. The file is searched for as in
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
        parts = file["data"], file["indices"], file["indptr"]
        counts = csr_array(parts, shape=tuple(file["shape"]))
        observed = np.where(file["s"] == 1, 1, -1).astype(np.int8)
        return TCDBData(counts, observed, file["y"], file["group"])


def _cache_folder() -> Path:
    chosen = os.environ.get("PROBGAP_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "probgap"


def _open(name: str) -> Any:
    path = _find(f"{name}.npz", _SHA256[name])
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256[name]:
        msg = (
            f"{path} is not the expected file. Its SHA-256 must be {_SHA256[name]}. "
            f"Got {found}."
        )
        raise DataFileError(msg)
    return np.load(path, allow_pickle=False)


def _find(file_name: str, sha256: str) -> Path:
    chosen = os.environ.get("PROBGAP_DATA")
    folders = [*([Path(chosen)] if chosen else []), _cache_folder()]
    for folder in folders:
        if (folder / file_name).is_file():
            return folder / file_name
    if address := os.environ.get("PROBGAP_DATA_URL"):
        return _download(file_name, address, sha256)
    searched = " or ".join(str(folder) for folder in folders)
    msg = (
        f"{file_name} was not found in {searched}. Put the file there, set "
        "PROBGAP_DATA to the folder that has it, or PROBGAP_DATA_URL to an address that "
        "serves it."
    )
    raise DataFileError(msg)


def _download(file_name: str, address: str, sha256: str) -> Path:
    pooch = load_library("pooch", extra="data", purpose="downloading")
    url = f"{address.rstrip('/')}/{file_name}"
    try:
        return Path(pooch.retrieve(url, sha256, file_name, _cache_folder()))
    except (OSError, ValueError) as error:
        msg = f"{url} could not be downloaded with the SHA-256 {sha256}: {error}"
        raise DataFileError(msg) from None


def load_tcdb_vectors(
    method: Literal["doc2vec", "svd"] = "doc2vec",
    *,
    n_dimensions: int = 32,
    seed: int = 0,
) -> Array:
    """Return the records of :func:`load_tcdb` as dense vectors, one row a record.

    No label is used. "doc2vec" is the paper's choice; as the records survive only as
    bags of words, it is the variant that ignores word order, PV-DBOW. It needs gensim
    (``pip install 'probgap[text]'``) and takes about 15 seconds, once: vectors are kept
    in the cache folder, under a hash of the data, the settings and gensim's version.
    "svd" is a truncated singular value decomposition of TF-IDF weights.

    Parameters
    ----------
    method : {"doc2vec", "svd"}, default="doc2vec"
        How vectors are computed.
    n_dimensions : int, default=32
        Length of a vector; 32 in the paper.
    seed : int, default=0
        Seeds the training, which runs on one thread: the same seed gives the same
        vectors.

    Returns
    -------
    ndarray of shape (7359, n_dimensions)
        The vectors, not scaled.

    Examples
    --------
    >>> from probgap.datasets import load_tcdb_vectors
    >>> load_tcdb_vectors().shape  # doctest: +SKIP
    (7359, 32)
    """
    if method not in ("doc2vec", "svd"):
        msg = f"method must be 'doc2vec' or 'svd'. Got {method!r}."
        raise InvalidInputError(msg)
    if n_dimensions < 1:
        msg = f"n_dimensions must be at least 1. Got {n_dimensions!r}."
        raise InvalidInputError(msg)
    make = svd_vectors if method == "svd" else doc2vec_vectors
    return make(load_tcdb().X, n_dimensions, seed)


def svd_vectors(counts: Any, n_dimensions: int, seed: int) -> Array:
    """Reduce TF-IDF weights of word counts by a truncated SVD."""
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    with one_thread():
        return TruncatedSVD(n_dimensions, random_state=seed).fit_transform(weights)


def doc2vec_vectors(
    counts: Any, n_dimensions: int, seed: int, *, epochs: int = 20
) -> Array:
    """Train PV-DBOW on word counts, or load the result of an equal training."""
    gensim = load_library("gensim", extra="text", purpose="Doc2Vec")
    settings = {"dm": 0, "vector_size": n_dimensions, "epochs": epochs}
    settings |= {"seed": seed, "workers": 1}
    key = hashlib.sha256(json.dumps([settings, gensim.__version__]).encode())
    for part in (counts.data, counts.indices, counts.indptr):
        key.update(np.ascontiguousarray(part).tobytes())
    path = _cache_folder() / f"doc2vec-{key.hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged
        return np.load(path, allow_pickle=False)
    vectors = _train(counts, settings)
    with suppress(OSError):  # no cache: the vectors are still good
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, binary=True) as file:
            np.save(file, vectors)
    return vectors


def _train(counts: Any, settings: dict[str, Any]) -> Array:
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument  # noqa: PLC0415

    # The order of words in a record is lost; a fixed random one favours none of them.
    rng = np.random.default_rng(settings["seed"])
    records = []
    for record in range(counts.shape[0]):
        here = slice(counts.indptr[record], counts.indptr[record + 1])
        words = np.repeat(counts.indices[here], counts.data[here].astype(np.intp))
        shuffled = [str(word) for word in rng.permutation(words)]
        records.append(TaggedDocument(shuffled, [record]))
    with one_thread():
        model = Doc2Vec(records, **{**settings, "seed": draw_seed(rng)})
    return model.dv.vectors.astype(np.float64)
