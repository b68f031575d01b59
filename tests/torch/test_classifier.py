"""torch's arrays against numpy's: solvers, the whole fit, and its files."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch", reason="needs torch: make test-torch")

from probgap import PGPUClassifier
from probgap._core.arrays import open_device
from probgap._core.kernel_svm import KernelSVM, solve_svms
from probgap._core.kernels import median_gamma
from probgap.exceptions import InvalidInputError
from probgap.gap import ObservedGapEstimator
from probgap.io import load, save
from probgap.reweight import kernel_mean_matching

BLOCKED = """
import sys


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("blocked", name=name)


sys.meta_path.insert(0, NoTorch())
import numpy as np
from probgap.io import load
model = load(sys.argv[1])
X, expected = np.load(sys.argv[2]), np.load(sys.argv[3])
assert np.abs(model.decision_function(X) - expected).max() < 1e-9
assert ((model.decision_function(X) > 0) == (expected > 0)).all()
print(model.predict_proba(X).shape, "torch" in sys.modules)
"""


@parametrize_with_checks(
    [
        # With other folds, one fit in a hundred to 20 samples warns that it did not converge.
        PGPUClassifier.paper(device="cpu", strict=False, random_state=0),
        ObservedGapEstimator(device="cpu", random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted(square):
    X, _, _, s = square
    return PGPUClassifier.paper(random_state=0, device="cpu").fit(X, s)


def test_the_fit_is_about_that_of_the_processor(square, fitted):
    X, y_true, _, s = square
    here = PGPUClassifier.paper(random_state=0).fit(X, s)
    assert_allclose(fitted.observed_gap_, here.observed_gap_, atol=0.05)
    assert (fitted.predict(X) == here.predict(X)).mean() >= 0.98
    assert fitted.score(X, y_true) >= here.score(X, y_true) - 0.02
    assert isinstance(fitted.estimator_, KernelSVM)
    assert fitted.kmm_.solver == "iterative"
    assert fitted.estimator_.converged_
    assert fitted.estimator_.duality_gap_ <= 1e-4


def test_the_final_svm_is_that_of_scikit_learn(square, fitted):
    X = square[0]
    weight = fitted.sample_weight_
    used = weight > 0.0
    svc = SVC(tol=1e-5, gamma=fitted.estimator_.gamma_).fit(
        X[used], fitted.relabelling_.labels[used] > 0, sample_weight=weight[used]
    )
    theirs = svc.decision_function(X)
    away = np.abs(theirs) > 1e-3
    same = (theirs > 0.0) == (fitted.estimator_.decision_function(X) > 0.0)
    assert same[away].mean() >= 0.999


def test_the_default_runs_there_too(square):
    X, y_true, _, s = square
    model = PGPUClassifier(random_state=0, device="cpu").fit(X, s)
    assert model.score(X, y_true) > 0.93


def test_the_same_seed_gives_the_same_bits(square, fitted):
    X, _, _, s = square
    again = clone(fitted).fit(X, s)
    assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_sparse_samples_become_dense(square, fitted):
    X, _, _, s = square
    sparse = clone(fitted).fit(csr_array(X), s)
    assert_allclose(sparse.decision_function(X), fitted.decision_function(X))


def test_a_model_from_a_device_predicts_without_torch(square, fitted, tmp_path):
    X = np.ascontiguousarray(square[0])
    path = tmp_path / "model.probgap"
    save(fitted, path)
    decision = fitted.decision_function(X)
    assert_array_equal(load(path).decision_function(X), decision)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "decision.npy", decision)
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            BLOCKED,
            str(path),
            str(tmp_path / "X.npy"),
            str(tmp_path / "decision.npy"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == f"({len(X)}, 2) False"


def test_a_gpu_that_is_not_there_is_said_in_one_sentence(square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"Got 'cuda:99', with \d+ CUDA") as e:
        PGPUClassifier.paper(device="cuda:99").fit(X, s)
    assert "choose device=None or 'cpu'" in str(e.value)
    assert "\n" not in str(e.value)


def test_svms_are_those_of_numpy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    positive = X[:, 0] + 0.7 * X[:, 1] ** 2 + rng.normal(size=500) > 0.5
    caps = np.column_stack([np.ones(500), np.arange(500) % 5 > 0])
    here, there = (
        solve_svms(X, positive, caps, gamma=0.25, device=device)
        for device in (None, "cpu")
    )
    assert there.converged.all()
    assert_allclose(there.dual_objective, here.dual_objective, rtol=1e-4)
    assert_allclose(there.decision, here.decision, atol=0.02)
    assert (there.coef[::5, 1] == 0.0).all()


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("upper", [1000.0, 2.0])
@pytest.mark.parametrize("slack", [None, 0.0])
def test_weights_are_as_good_as_those_of_numpy(tol, upper, slack):
    rng = np.random.default_rng(2)
    source, target = rng.normal(size=(400, 3)), rng.normal(0.5, 0.8, size=(300, 3))
    options = {"upper": upper, "slack": slack, "gamma": median_gamma(target)}
    here = kernel_mean_matching(source, target, **options, solver="exact")
    there = kernel_mean_matching(source, target, **options, tol=tol, device="cpu")
    assert there.converged
    assert there.weights.min() >= 0.0
    assert there.weights.max() <= upper * (1.0 + 1e-12)
    assert there.objective - here.objective <= there.duality_gap + here.duality_gap
    assert there.objective >= here.objective - here.duality_gap - 1e-7


def test_a_matrix_that_is_not_definite_has_no_factor():
    arrays = open_device("cpu")
    assert arrays.cholesky(arrays.put(-np.eye(2))) is None


def test_memory_that_runs_out_is_said_in_one_sentence():
    arrays = open_device("cpu")
    with (
        pytest.raises(InvalidInputError, match=r"device must have more free memory"),
        arrays.computing(),
    ):
        raise arrays.xp.cuda.OutOfMemoryError
