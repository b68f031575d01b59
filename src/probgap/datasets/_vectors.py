"""Protein records as dense vectors: the paper's Doc2Vec, and a plain second road."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from probgap._core.errors import InvalidInputError, load_library
from probgap._core.output import whole_file
from probgap._core.runtime import draw_seed
from probgap.datasets._files import cache_folder, load_tcdb

Vectors = NDArray[np.float64]


def load_tcdb_vectors(
    method: Literal["doc2vec", "svd"] = "doc2vec",
    *,
    n_dimensions: int = 32,
    seed: int = 0,
) -> Vectors:
    """Return the records of :func:`load_tcdb` as dense vectors, one row a record.

    No label is used. "doc2vec" is the paper's choice; as the records survive only as
    bags of words, it is the form that ignores their order, PV-DBOW. It needs gensim
    (``pip install 'probgap[text]'``) and some 15 seconds, once: the vectors are kept in
    the cache folder under a hash of the data, the settings and gensim's version. "svd"
    is a truncated singular value decomposition of TF-IDF weights.

    Parameters
    ----------
    method : {"doc2vec", "svd"}, default="doc2vec"
        How vectors are made.
    n_dimensions : int, default=32
        Length of a vector; 32 in the paper.
    seed : int, default=0
        Seeds the training. One thread trains, so that the same seed gives the same
        vectors.

    Returns
    -------
    ndarray of shape (7359, n_dimensions)
        The vectors. Scale them.

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
    counts = load_tcdb().X
    if method == "svd":
        return svd_vectors(counts, n_dimensions, seed)
    return doc2vec_vectors(counts, n_dimensions, seed)


def svd_vectors(counts: Any, n_dimensions: int, seed: int) -> Vectors:
    """Reduce TF-IDF weights of word counts to their main directions."""
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    with threadpool_limits(1):
        reduction = TruncatedSVD(n_dimensions, random_state=seed)
        vectors: Vectors = reduction.fit_transform(weights)
    return vectors


def doc2vec_vectors(
    counts: Any, n_dimensions: int, seed: int, *, epochs: int = 20
) -> Vectors:
    """Train PV-DBOW on word counts, or fetch what an equal training gave before."""
    gensim = load_library("gensim", extra="text", purpose="Doc2Vec")
    settings = {
        "dm": 0,
        "vector_size": n_dimensions,
        "epochs": epochs,
        "seed": seed,
        "workers": 1,
    }
    key = hashlib.sha256(json.dumps([settings, gensim.__version__]).encode())
    for part in (counts.data, counts.indices, counts.indptr):
        key.update(np.ascontiguousarray(part).tobytes())
    path = cache_folder() / f"doc2vec-{key.hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged
        kept: Vectors = np.load(path, allow_pickle=False)
        return kept
    vectors = _train(counts, settings)
    with suppress(OSError):  # without a cache the vectors still serve
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, binary=True) as file:
            np.save(file, vectors)
    return vectors


def _train(counts: Any, settings: dict[str, Any]) -> Vectors:
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument  # noqa: PLC0415

    # The order of words in a record is lost; a fixed random one favours none of them.
    rng = np.random.default_rng(settings["seed"])
    records = []
    for record in range(counts.shape[0]):
        here = slice(counts.indptr[record], counts.indptr[record + 1])
        words = np.repeat(counts.indices[here], counts.data[here].astype(np.intp))
        shuffled = [str(word) for word in rng.permutation(words)]
        records.append(TaggedDocument(shuffled, [record]))
    with threadpool_limits(1):
        model = Doc2Vec(records, **{**settings, "seed": draw_seed(rng)})
    return model.dv.vectors.astype(np.float64)
