"""Vectors of records: the same each time, kept once made, and no label in them."""

import numpy as np
import pytest
import scipy.sparse as sp

from probgap.exceptions import InvalidInputError
from research.paper import tcdb


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


def test_doc2vec_vectors_are_trained_once_and_kept(counts, cache):
    pytest.importorskip("gensim")
    first = tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=200)
    assert first.shape == (60, 4)
    assert tell_apart(first) > 0.9
    assert len(list(cache.glob("doc2vec-*.npy"))) == 1
    path = next(cache.glob("doc2vec-*.npy"))
    np.save(path, first + 1.0)  # what is kept is taken as it is
    kept = tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=200)
    np.testing.assert_array_equal(kept, first + 1.0)
    path.unlink()
    np.testing.assert_array_equal(
        tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=200), first
    )


def test_other_data_or_settings_are_not_mistaken_for_what_is_kept(counts, cache):
    pytest.importorskip("gensim")
    for seed, content in ((0, counts), (1, counts), (0, counts[::-1])):
        tcdb.doc2vec_vectors(sp.csr_array(content), 4, seed=seed, epochs=1)
    assert len(list(cache.glob("doc2vec-*.npy"))) == 3


def test_a_damaged_file_is_made_anew(counts, cache):
    pytest.importorskip("gensim")
    first = tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=1)
    path = next(cache.glob("doc2vec-*.npy"))
    path.write_bytes(path.read_bytes()[:50])
    np.testing.assert_array_equal(
        tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=1), first
    )


def test_vectors_serve_without_a_cache(counts, cache):
    pytest.importorskip("gensim")
    cache.write_text("a file where the folder should be")
    assert tcdb.doc2vec_vectors(counts, 4, seed=0, epochs=1).shape == (60, 4)


def test_transport_proteins_are_those_of_elkan_and_noto():
    try:
        found = tcdb.load_tcdb()
    except InvalidInputError:
        pytest.skip("PROBGAP_DATA names no folder with data")
    assert found.X.shape == (7359, 24080)
    assert found.s.sum() == 2453
    assert (found.y & ~found.s).sum() == 348
    assert not (found.s & ~found.y).any()
