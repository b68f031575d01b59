"""The whole fit on a device, its files, and what others may rely on."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch", reason="needs torch: make test-torch")

from probgap import PGPUClassifier
from probgap._device.estimators import DeviceSVM, PlattTask, fit_platt
from probgap._device.kernel import stream_decisions
from probgap.exceptions import InvalidInputError
from probgap.gap import ObservedGapEstimator
from probgap.io import load, save

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
        PGPUClassifier.paper(device="cpu"),
        ObservedGapEstimator(device="cpu"),
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
    assert isinstance(fitted.estimator_, DeviceSVM)
    assert fitted.kmm_.solver == "device"
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


def test_folds_are_solved_in_batches(square):
    X, _, _, s = square
    folds = [np.arange(len(X)) % 3 == k for k in range(3)]
    tasks = [PlattTask(~fold, [~fold & other for other in folds]) for fold in folds]
    tasks = [PlattTask(t.train, [f for f in t.held_out if f.any()]) for t in tasks]
    together, apart = (
        fit_platt(X, s == 1, tasks, device="cpu", most=most)[1] for most in (48, 4)
    )
    assert len(together) == len(apart) == 3
    assert_allclose(together, apart, atol=0.01)


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


def test_decisions_do_not_depend_on_the_tiles(device, overlapping):
    X, _ = overlapping
    rng = np.random.default_rng(0)
    coef = rng.normal(size=40)
    whole = stream_decisions(device, X, X[:40], coef, 0.3)
    tiled = stream_decisions(device, X, X[:40], coef, 0.3, budget=2000.0)
    assert_allclose(whole, tiled, atol=1e-12)


def test_the_plan_is_printed(square, capsys):
    X, _, _, s = square
    PGPUClassifier.paper(random_state=0, device="cpu", verbose=1).fit(X, s)
    said = capsys.readouterr().err
    assert said.count("[probgap] kernel of ") == 3
    assert "kernel of 400 rows, 0.00 GiB in single precision, kept" in said


def test_what_did_not_converge_says_so(overlapping):
    X, positive = overlapping[0][:200], overlapping[1][:200]
    svm = DeviceSVM(tol=1e-18)
    with pytest.warns(ConvergenceWarning, match=r"did not meet tol=1e-18: the rel"):
        svm.fit(X, positive)
    assert not svm.converged_


def test_weights_and_classes_are_checked(overlapping):
    X, positive = overlapping[0][:50], overlapping[1][:50]
    with pytest.raises(ValueError, match=r"y must have two classes.*Got 1"):
        DeviceSVM().fit(X, np.ones(50))
    with pytest.raises(InvalidInputError, match=r"positive for some sample of each"):
        DeviceSVM().fit(X, positive, sample_weight=positive.astype(float))


def test_a_classifier_of_ones_own_is_refused_on_a_device(square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"estimator must be None with a dev"):
        ObservedGapEstimator(SVC(), device="cpu").fit(X, s)


def test_a_gpu_that_is_not_there_is_said_in_one_sentence(square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"Got 'cuda:99', with \d+ CUDA") as e:
        PGPUClassifier.paper(device="cuda:99").fit(X, s)
    assert "choose device=None or 'cpu'" in str(e.value)
    assert "\n" not in str(e.value)
