"""Data drawn, data loaded, and labels hidden by a rate."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from scipy.stats import chi2_contingency, ks_2samp, spearmanr

from probgap import PGPUClassifier
from probgap.datasets import (
    from_positive_and_unlabelled,
    hide_labels,
    load_benchmark,
    make_rate,
    make_square,
    make_triangles,
    platt_gap,
)
from probgap.exceptions import InvalidInputError
from probgap.methods import NaiveClassifier

needs_data = pytest.mark.skipif(
    not Path(os.environ.get("PROBGAP_DATA", "none"), "heart.npz").is_file(),
    reason="PROBGAP_DATA names no folder with data",
)


def test_positives_and_unlabelled_samples_are_joined():
    positive, unlabelled = np.arange(6.0).reshape(3, 2), np.zeros((4, 2))
    rows = np.vstack([positive, unlabelled])
    for given in (np.asarray, csr_matrix, np.ndarray.tolist):
        X, y = from_positive_and_unlabelled(given(positive), given(unlabelled))
        assert y.tolist() == [1] * 3 + [0] * 4
        np.testing.assert_array_equal(X.toarray() if issparse(X) else X, rows)
    X, _ = from_positive_and_unlabelled(csr_matrix(positive), unlabelled)
    assert issparse(X)


def test_frames_are_joined_with_their_categories():
    pd = pytest.importorskip("pandas")
    kind = pd.CategoricalDtype(["a", "b"])
    frame = pd.DataFrame({"x": [1.0, 2.0], "c": pd.Series(["a", "b"], dtype=kind)})
    X, y = from_positive_and_unlabelled(frame[:1], frame)
    assert X["c"].dtype == kind
    assert X.index.tolist() == [0, 1, 2]
    assert y.tolist() == [1, 0, 0]
    for other in (frame[["c", "x"]], frame[["x"]], frame.to_numpy()):
        with pytest.raises(InvalidInputError, match="the same columns"):
            from_positive_and_unlabelled(frame, other)


def test_triangles_are_what_the_paper_says():
    X, y, posterior = make_triangles(2000, random_state=0)
    assert y.sum() == 1000
    np.testing.assert_array_equal(y == 1, X[:, 1] > X[:, 0])
    np.testing.assert_array_equal(posterior, y)
    # Uniform on the whole square: each quarter holds a quarter.
    quarters = np.histogram2d(X[:, 0], X[:, 1], bins=2)[0]
    assert np.abs(quarters - 500).max() < 80


def test_square_is_what_the_paper_says():
    X, y, posterior = make_square(20000, random_state=0)
    np.testing.assert_allclose(
        posterior, np.clip(0.5 - 10.0 * (X[:, 0] - X[:, 1]), 0, 1)
    )
    between = (posterior > 0) & (posterior < 1)
    assert between.mean() > 0.025
    for low in (0.1, 0.3, 0.5, 0.7):
        inside = (posterior >= low) & (posterior < low + 0.2)
        assert y[inside].mean() == pytest.approx(low + 0.1, abs=0.1)


@pytest.mark.parametrize("make", [make_triangles, make_square])
def test_seeds_decide_everything(make):
    np.testing.assert_array_equal(
        make(50, random_state=1).X, make(50, random_state=1).X
    )
    assert not np.array_equal(make(50, random_state=1).X, make(50, random_state=2).X)
    with pytest.raises(ValueError, match=r"n_samples must be an integer .* Got 1\."):
        make(1)


def test_features_labels_and_labelling_are_drawn_independently():
    X, y, posterior = make_square(20000, random_state=7)
    # Given the posterior, y says nothing more about where the sample is.
    sure = posterior == 1.0
    assert y[sure].all()
    s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.5), random_state=8)
    hidden = s[y == 1] == 0
    for feature in X[y == 1].T:
        assert ks_2samp(feature[hidden], feature[~hidden]).pvalue > 0.001
    assert abs(spearmanr(X[:, 0], X[:, 1]).statistic) < 0.03
    middle = (posterior > 0.4) & (posterior < 0.6) & (y == 1)
    table = np.histogram2d(X[middle, 0] > 0, s[middle], bins=2)[0]
    assert chi2_contingency(table).pvalue > 0.001


@pytest.mark.parametrize(
    ("rate", "gap", "expected"),
    [
        (("inverse", 0.1, 0.5), [0.0, 0.4, -0.5], [1 / 1.5, 0.1 / 0.5 / 1.5, 1 / 1.5]),
        (("linear", 0.6), [0.0, 1.0, -0.5, -1.0], [0.6, 0.0, 0.9, 1.0]),
        (("constant", 0.3), [0.0, 1.0], [0.3, 0.3]),
    ],
)
def test_rates_by_hand(rate, gap, expected):
    np.testing.assert_allclose(make_rate(rate)(np.array(gap)), expected)


def test_hidden_labels_follow_the_rate_and_leave_negatives_alone():
    X, y, posterior = make_square(20000, random_state=1)
    s = hide_labels(X, y, 2 * posterior - 1, lambda gap: 0.2 + 0 * gap, random_state=2)
    assert (s <= y).all()
    assert (s[y == 1] == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_labels_keep_their_names():
    X = np.zeros((6, 1))
    y = np.array(["no", "yes"] * 3)
    s = hide_labels(X, y, np.zeros(6), ("constant", 1.0), random_state=0)
    assert s.tolist() == ["no"] * 6


def test_without_a_gap_platt_scaling_gives_one():
    X, y, _ = make_triangles(300, random_state=0)
    gap = platt_gap(X, y, random_state=0)
    assert ((gap > 0) == (y == 1)).mean() > 0.95
    s = hide_labels(X, y, rate=("linear", 1.0), random_state=0)
    assert gap[(y == 1) & (s == 0)].mean() < gap[s == 1].mean()


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("inverse", r"rate must be a function, .* Got 'inverse'"),
        (("cubic", 1.0), r"rate must be a function, .* Got \('cubic', 1\.0\)"),
        (("inverse", 0.1), r"rate must be .* \('inverse', alpha, beta\), .* Got"),
        (("linear", 1.5), r"alpha must lie between 0 and 1\. Got 1\.5"),
        (("inverse", -0.1, 0.5), r"alpha must lie between 1e-12 and inf\. Got -0\.1"),
        (lambda gap: gap + 2.0, r"rate must lie in \[0, 1\]\. Got 2 to 2"),
        (3, r"rate must be a function, .* Got 3"),
    ],
)
def test_bad_rates_are_refused(rate, message):
    with pytest.raises(ValueError, match=message):
        hide_labels(np.zeros((2, 1)), [0, 1], [0.0, 0.0], rate)


def test_a_gap_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"gap must have one value for each of the 2"):
        hide_labels(np.zeros((2, 1)), [0, 1], [0.0])


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
        InvalidInputError, match=r"heart\.npz was not found in .* or set PROBGAP_DATA"
    ):
        load_benchmark("heart")


def test_another_file_of_that_name_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PROBGAP_DATA", str(tmp_path))
    np.savez(tmp_path / "heart.npz", X=np.zeros((2, 1)), y=np.array([-1, 1]))
    with pytest.raises(InvalidInputError, match=r"SHA-256 must be .* Got [0-9a-f]{64}"):
        load_benchmark("heart")
