"""Kernel features against scikit-learn's, and which samples are kept in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.kernels import KernelFeatures, map_training_samples


@pytest.fixture
def X(rng):
    return rng.normal(size=(150, 3))


def products(features, X):
    values = features.transform(X).astype(np.float64)
    return values @ values.T


def test_products_are_those_of_scikit_learns_features(X):
    ours = KernelFeatures.fit(X, 20, 0.3, 0)
    assert ours.landmarks.shape == (20, 3)
    theirs = Nystroem(gamma=0.3, n_components=20, random_state=0).fit(ours.landmarks)
    expected = theirs.transform(X) @ theirs.transform(X).T
    assert_allclose(products(ours, X), expected, atol=1e-4)
    # And that is the kernel after projection, not the kernel itself.
    kernel = rbf_kernel(X, gamma=0.3)
    between = rbf_kernel(X, ours.landmarks, gamma=0.3)
    within = rbf_kernel(ours.landmarks, gamma=0.3)
    projected = between @ np.linalg.solve(within, between.T)
    assert_allclose(products(ours, X), projected, atol=1e-4)
    assert np.abs(products(ours, X) - kernel).max() > 0.01


@pytest.mark.parametrize("n_landmarks", [150, 1000])
def test_with_every_sample_a_landmark_products_are_the_kernel(X, n_landmarks):
    features = KernelFeatures.fit(X, n_landmarks, 0.5, 0)
    assert features.n_components <= 150
    assert_allclose(products(features, X), rbf_kernel(X, gamma=0.5), atol=1e-4)


def test_landmarks_are_samples_and_the_seed_draws_them(X):
    one, same, other = (KernelFeatures.fit(X, 10, 0.5, seed) for seed in (1, 1, 2))
    assert_array_equal(one.landmarks, same.landmarks)
    assert not np.array_equal(one.landmarks, other.landmarks)
    rows = {tuple(row) for row in X}
    assert len({tuple(row) for row in one.landmarks} & rows) == 10


def test_directions_without_content_are_dropped(X):
    doubled = np.vstack([X[:8], X[:8]])
    features = KernelFeatures.fit(doubled, 16, 0.5, 0)
    assert features.n_components == 8
    assert_allclose(
        products(features, doubled), rbf_kernel(doubled, gamma=0.5), atol=1e-5
    )


def test_far_from_the_origin_features_are_as_good(X):
    features = KernelFeatures.fit(X + 1e4, 150, 0.5, 0)
    assert_allclose(products(features, X + 1e4), rbf_kernel(X, gamma=0.5), atol=1e-3)


def test_single_precision_is_only_another_way_to_write_samples(X):
    single = X.astype(np.float32)
    double = single.astype(np.float64)
    one, other = (KernelFeatures.fit(Z, 20, 0.3, 0) for Z in (single, double))
    assert one.landmarks.dtype == np.float64
    assert_array_equal(one.rotation, other.rotation)
    values = one.transform(single)
    assert values.dtype == np.float32
    assert_array_equal(values, other.transform(double))
    before_rounding = KernelFeatures.fit(X, 20, 0.3, 0)
    assert_allclose(products(one, single), products(before_rounding, X), atol=1e-5)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_samples_have_the_same_features(rng, make, dtype):
    X = rng.normal(size=(90, 5)) * (rng.random((90, 5)) < 0.4)
    X = X.astype(dtype)
    dense, sparse = KernelFeatures.fit(X, 30, 0.4, 0), make(X)
    other = KernelFeatures.fit(sparse, 30, 0.4, 0)
    assert sp.issparse(other.landmarks)
    assert_allclose(products(other, sparse), products(dense, X), atol=1e-4)
    coef = rng.normal(size=other.n_components)
    expected = other.transform(sparse) @ coef
    assert_allclose(other.score(sparse, coef), expected, atol=1e-3)
    # What was fitted on one kind is asked about the other.
    assert_allclose(other.transform(X), other.transform(sparse), atol=1e-5)
    assert_allclose(dense.transform(sparse), dense.transform(X), atol=1e-5)


def test_a_score_is_the_product_of_features_and_coefficients(rng, X):
    features = KernelFeatures.fit(X, 20, 0.3, 0)
    coef = rng.normal(size=features.n_components)
    many = np.tile(X, (800, 1))  # more than a block
    expected = features.transform(many).astype(np.float64) @ coef
    for dtype in (np.float32, np.float64):
        score = features.score(many, coef, dtype)
        assert score.dtype == np.float64
        assert_allclose(score, expected, atol=1e-4)


def test_with_memory_for_all_every_sample_is_there_once(X):
    features = KernelFeatures.fit(X, 20, 0.3, 0)
    training = map_training_samples(features, X, np.arange(150) < 20, 0)
    assert training.rows == slice(None)
    assert training.weight is None
    assert_array_equal(training.values, features.transform(X))


@pytest.mark.parametrize(
    ("n_labelled", "labelled_kept", "unlabelled_kept"),
    [
        (20, 20, 40),  # few labelled: all of them
        (30, 30, 30),
        (100, 30, 30),  # many: half of the room
        (140, 50, 10),  # few unlabelled: all of them, and no room left empty
        (149, 59, 1),
    ],
)
def test_with_memory_for_some_they_stand_for_all(
    rng, X, n_labelled, labelled_kept, unlabelled_kept
):
    features = KernelFeatures.fit(X, 10, 0.3, 0)
    room = {"most_values": 60 * features.n_components}
    labelled = rng.permutation(np.arange(150) < n_labelled)
    training = map_training_samples(features, X, labelled, 0, **room)
    assert_array_equal(np.unique(training.rows), training.rows)
    kept = labelled[training.rows]
    assert (kept.sum(), (~kept).sum()) == (labelled_kept, unlabelled_kept)
    assert_allclose(training.weight[kept], n_labelled / labelled_kept)
    assert_allclose(training.weight[~kept], (150 - n_labelled) / unlabelled_kept)
    assert_array_equal(training.values, features.transform(X[training.rows]))
    again = map_training_samples(features, X, labelled, 0, **room)
    other = map_training_samples(features, X, labelled, 1, **room)
    assert_array_equal(again.rows, training.rows)
    assert not np.array_equal(other.rows, training.rows)
