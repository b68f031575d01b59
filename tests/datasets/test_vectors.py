"""Vectors of records: the same each time, kept once made, and no label in them."""

import http.server
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from probgap import datasets
from probgap.datasets import DataFileError, load_benchmark, load_tcdb_vectors
from probgap.exceptions import InvalidInputError, MissingLibraryError


@pytest.fixture
def counts():
    """Records of two kinds, each with words of its own."""
    rng = np.random.default_rng(0)
    rate = np.repeat([[3.0] * 10 + [0.2] * 10, [0.2] * 10 + [3.0] * 10], 30, axis=0)
    return sp.csr_array(rng.poisson(rate))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBGAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tell_apart(vectors):
    """Give the share of records on their own side of the line between the kinds."""
    kinds = vectors[:30].mean(axis=0), vectors[30:].mean(axis=0)
    side = (vectors - 0.5 * (kinds[0] + kinds[1])) @ (kinds[1] - kinds[0])
    return np.mean((side > 0) == np.repeat([False, True], 30))


def test_tfidf_vectors_tell_the_kinds_apart(counts):
    vectors = datasets.svd_vectors(counts, 3, seed=0)
    assert vectors.shape == (60, 3)
    assert tell_apart(vectors) == 1.0
    np.testing.assert_array_equal(vectors, datasets.svd_vectors(counts, 3, seed=0))


def test_doc2vec_vectors_are_trained_once_and_kept(counts, cache):
    pytest.importorskip("gensim")
    first = datasets.doc2vec_vectors(counts, 4, seed=0, epochs=200)
    assert first.shape == (60, 4)
    assert tell_apart(first) > 0.9
    assert len(list(cache.glob("doc2vec-*.npy"))) == 1
    path = next(cache.glob("doc2vec-*.npy"))
    np.save(path, first + 1.0)  # what is kept is taken as it is
    kept = datasets.doc2vec_vectors(counts, 4, seed=0, epochs=200)
    np.testing.assert_array_equal(kept, first + 1.0)
    path.unlink()
    np.testing.assert_array_equal(
        datasets.doc2vec_vectors(counts, 4, seed=0, epochs=200), first
    )


def test_other_data_or_settings_are_not_mistaken_for_what_is_kept(counts, cache):
    pytest.importorskip("gensim")
    for seed, content in ((0, counts), (1, counts), (0, counts[::-1])):
        datasets.doc2vec_vectors(sp.csr_array(content), 4, seed=seed, epochs=1)
    assert len(list(cache.glob("doc2vec-*.npy"))) == 3


def test_a_damaged_file_is_made_anew(counts, cache):
    pytest.importorskip("gensim")
    first = datasets.doc2vec_vectors(counts, 4, seed=0, epochs=1)
    path = next(cache.glob("doc2vec-*.npy"))
    path.write_bytes(path.read_bytes()[:50])
    np.testing.assert_array_equal(
        datasets.doc2vec_vectors(counts, 4, seed=0, epochs=1), first
    )
    assert not list(cache.glob("*.part"))


def test_vectors_serve_without_a_cache(counts, cache):
    pytest.importorskip("gensim")
    cache.write_text("a file where the folder should be")
    assert datasets.doc2vec_vectors(counts, 4, seed=0, epochs=1).shape == (60, 4)


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("gensim", "text", lambda counts: datasets.doc2vec_vectors(counts, 4, 0)),
        ("pooch", "data", lambda _: datasets._download("heart.npz", "http://x", "0")),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    counts, monkeypatch, library, extra, call
):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingLibraryError, match=rf"{library} .*probgap\[{extra}\]"):
        call(counts)


@pytest.mark.parametrize(
    "arguments", [{"method": "word2vec"}, {"n_dimensions": 0}], ids=str
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InvalidInputError, match="must be"):
        load_tcdb_vectors(**arguments)


@pytest.fixture
def server(tmp_path):
    """An address that serves a folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def test_a_missing_file_is_downloaded_once_and_checked(server, cache, monkeypatch):
    pytest.importorskip("pooch")
    folder, address = server
    monkeypatch.setenv("PROBGAP_DATA_URL", address)
    monkeypatch.delenv("PROBGAP_DATA", raising=False)
    with pytest.raises(DataFileError, match=r"heart\.npz could not be downloaded"):
        load_benchmark("heart")
    np.savez(folder / "heart.npz", X=np.ones((3, 2)), y=np.array([1, -1, 1]))
    with pytest.raises(DataFileError, match=r"heart\.npz could not be downloaded"):
        load_benchmark("heart")
    content = (folder / "heart.npz").read_bytes()
    digest = __import__("hashlib").sha256(content).hexdigest()
    monkeypatch.setitem(datasets._SHA256, "heart", digest)
    assert load_benchmark("heart").X.shape == (3, 2)
    (folder / "heart.npz").unlink()
    assert load_benchmark("heart").X.shape == (3, 2)
    assert (cache / "heart.npz").read_bytes() == content
