"""What a device asks of the computer, tested where there is no torch."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap._core.arrays import Arrays, open_device
from probgap._core.kernel_svm import KernelSVM, PlattSVM
from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.gap import ObservedGapEstimator
from probgap.reweight import kernel_mean_matching


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.fixture
def no_gpu(monkeypatch):
    nothing = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=nothing))


@pytest.mark.parametrize("name", ["gpu", "cuda:first", "mps", ""])
def test_names_of_devices(name):
    with pytest.raises(InvalidInputError, match=r"device must be 'cuda'.*Got "):
        open_device(name)


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, s: PGPUClassifier.paper(device="cuda").fit(X, s),
        lambda X, s: ObservedGapEstimator(device="cuda").fit(X, s),
        lambda X, s: kernel_mean_matching(X[s == 1], X, device="cuda"),
    ],
    ids=["classifier", "gap", "matching"],
)
def test_without_torch_one_sentence_says_what_to_install(square, fit):
    X, _, _, s = square
    with pytest.raises(MissingLibraryError, match=r"probgap\[gpu\]") as error:
        fit(X, s)
    assert "device='cuda'" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_one_sentence_says_what_to_choose(square):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"Got 'cuda', with 0 CUDA") as error:
        PGPUClassifier.paper(device="cuda").fit(X, s)
    assert "choose device=None or 'cpu'" in str(error.value)
    assert open_device("cpu").name == "cpu"


def test_the_arrays_of_a_device_are_all_that_differs(square, monkeypatch):
    """numpy's arrays in the place of a device's."""
    monkeypatch.setattr("probgap.reweight._kmm.open_device", lambda _: Arrays())
    X, _, _, s = square
    result = kernel_mean_matching(csr_array(X[s == 1]), X, device="cuda")
    here = kernel_mean_matching(X[s == 1], X)
    assert (result.solver, result.converged) == ("iterative", True)
    assert result.objective - here.objective <= result.duality_gap + here.duality_gap
    with pytest.raises(InvalidInputError, match=r"kernel must be 'rbf' on a device\."):
        kernel_mean_matching(X[s == 1], X, kernel="linear", device="cuda")


@pytest.fixture
def platt_here(monkeypatch):
    """Platt-scaled SVMs of scikit-learn in the place of ours; returns tasks."""
    asked = []

    def fit(samples, labelled, tasks, *, device, gamma):
        asked.append((tasks, device))
        chances = []
        for task in tasks:
            svc = SVC(gamma=0.5).fit(samples[task.train], labelled[task.train])
            chances.append(1.0 / (1.0 + np.exp(-svc.decision_function(samples))))
        return PlattSVM(KernelSVM(), -1.0, 0.0), chances

    monkeypatch.setattr("probgap.gap.fit_platt", fit)
    return asked


@pytest.mark.parametrize("method", ["in_sample", "out_of_fold"])
def test_folds_for_a_device_are_a_partition(square, platt_here, method):
    X, _, _, s = square
    model = ObservedGapEstimator(
        method=method, cv=3, random_state=0, device="cuda"
    ).fit(X, s)
    [(tasks, device)] = platt_here
    assert device == "cuda"
    assert len(tasks) == (4 if method == "out_of_fold" else 1)
    for task in tasks:
        assert_array_equal(sum(mask.astype(int) for mask in task.held_out), task.train)
    if method == "out_of_fold":
        left_out = sum((~task.train).astype(int) for task in tasks[1:])
        assert_array_equal(left_out, 1)
    assert model.observed_gap_[s == 1].mean() > model.observed_gap_[s == 0].mean()


def test_folds_for_a_device_split_no_group(square, platt_here):
    X, _, _, s = square
    group = np.arange(s.size) // 2
    gap = ObservedGapEstimator(cv=3, random_state=0, device="cuda")
    gap.fit(X, s, groups=group)
    [(tasks, _)] = platt_here
    masks = [mask for task in tasks for mask in task.held_out]
    masks += [~task.train for task in tasks]
    for mask in masks:
        inside = np.bincount(group, mask)
        assert np.isin(inside, (0.0, 2.0)).all()


def test_a_classifier_of_ones_own_is_refused(square, platt_here):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"estimator must be None with a dev"):
        ObservedGapEstimator(SVC(), device="cuda").fit(X, s)
    assert not platt_here
