"""Loaders: the right file, or a sentence that says what is missing."""

import os
from pathlib import Path

import numpy as np
import pytest

from probgap import PGPUClassifier
from probgap.datasets import DataFileError, hide_labels, load_benchmark, load_tcdb
from probgap.methods import NaiveClassifier

DATA = Path(os.environ.get("PROBGAP_DATA", "none"))
needs_data = pytest.mark.skipif(
    not (DATA / "heart.npz").is_file(), reason="PROBGAP_DATA names no folder with data"
)


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "n_positive"),
    [
        ("splice", (2991, 60), 1344),
        ("banana", (5300, 2), 2376),
        ("twonorm", (7400, 20), 3703),
        ("image", (2086, 18), 1188),
        ("heart", (270, 13), 120),
    ],
)
def test_benchmarks_are_those_of_the_paper(name, shape, n_positive):
    X, y = load_benchmark(name)
    assert X.shape == shape
    assert np.isfinite(X).all()
    assert set(np.unique(y)) == {-1, 1}
    assert (y == 1).sum() == n_positive


@needs_data
def test_transport_proteins_are_those_of_elkan_and_noto():
    data = load_tcdb()
    assert data.X.shape == (7359, 24080)
    assert {g: int((data.group == g).sum()) for g in "PQN"} == {
        "P": 2453,
        "Q": 348,
        "N": 4558,
    }
    np.testing.assert_array_equal(data.s == 1, data.group == "P")
    np.testing.assert_array_equal(data.y == 1, data.group != "N")


@needs_data
def test_hidden_positives_of_a_real_set_are_found():
    X, y = load_benchmark("heart")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    few = hide_labels(X, y, rate=lambda gap: 1 - 0.5 * gap.clip(0), random_state=0)
    naive = NaiveClassifier().fit(X, few).score(X, y)
    assert PGPUClassifier(random_state=0).fit(X, few).score(X, y) > naive + 0.1


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of .* Got 'iris'"):
        load_benchmark("iris")


def test_a_missing_file_is_named_with_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PROBGAP_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        DataFileError, match=r"heart\.npz was not found in .* set PROBGAP_DATA"
    ):
        load_benchmark("heart")
    monkeypatch.delenv("PROBGAP_DATA")
    with pytest.raises(DataFileError, match=r"tcdb_bow\.npz was not found in"):
        load_tcdb()


def test_another_file_of_that_name_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PROBGAP_DATA", str(tmp_path))
    np.savez(tmp_path / "heart.npz", X=np.zeros((2, 1)), y=np.array([-1, 1]))
    with pytest.raises(DataFileError, match=r"SHA-256 must be .* Got [0-9a-f]{64}"):
        load_benchmark("heart")
