import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from probgap._core.svm import FastSVC


def test_decisions_are_those_of_libsvm(rng):
    # More rows than are decided at a time.
    X = rng.normal(size=(1200, 4))
    y = np.where(X[:, 0] + rng.normal(size=1200) > 0, "b", "a")
    ours, theirs = FastSVC().fit(X, y), SVC().fit(X, y)
    decision = theirs.decision_function(X)
    assert_allclose(ours.decision_function(X), decision, atol=1e-10)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    linear = FastSVC(kernel="linear").fit(X, y)
    expected = SVC(kernel="linear").fit(X, y).decision_function(X)
    assert_array_equal(linear.decision_function(X), expected)
    sparse = FastSVC().fit(sp.csr_array(X), y)
    assert_allclose(sparse.decision_function(sp.csr_array(X)), decision, atol=1e-2)


def test_what_it_does_not_do_faster_it_does_as_libsvm_does(rng):
    X = rng.normal(size=(90, 3))
    three = np.repeat([0, 1, 2], 30)
    assert FastSVC().fit(X, three).decision_function(X).shape == (90, 3)
    y = three > 0
    mixed = FastSVC().fit(sp.csr_array(X), y).decision_function(X)
    assert_array_equal(mixed, SVC().fit(sp.csr_array(X), y).decision_function(X))
    with pytest.raises(NotFittedError):
        FastSVC().decision_function(X)
