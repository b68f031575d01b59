"""What a device asks of the computer, tested where there is no torch."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap._device.arrays import open_device
from probgap._device.estimators import DevicePlatt, DeviceSVM
from probgap._device.plan import plan_memory, tile_values
from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.gap import ObservedGapEstimator
from probgap.reweight import kernel_mean_matching

GIB = 2.0**30


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
    assert open_device("cpu").is_cpu


def test_what_fits_is_kept():
    plan = plan_memory(100_000, 20, 6, 125 * GIB)
    assert plan.stored
    assert plan.kernel_bytes == 4e10
    assert plan.kernel_bytes + plan.other_bytes <= plan.budget
    assert str(plan).startswith(
        "kernel of 100,000 rows, 37.25 GiB in single precision, kept; "
    )


def test_what_does_not_fit_is_computed_in_tiles():
    plan = plan_memory(300_000, 20, 6, 125 * GIB)
    assert not plan.stored
    assert plan.other_bytes <= plan.budget < plan.kernel_bytes
    assert "computed in tiles for each product" in str(plan)


def test_with_less_memory_tiles_and_preconditioner_shrink():
    plans = [
        plan_memory(300_000, 20, 6, budget * GIB) for budget in (125.0, 40.0, 8.0, 2.0)
    ]
    for more, less in pairwise(plans):
        assert less.tile <= more.tile
        assert less.rank <= more.rank
        assert less.other_bytes <= less.budget
    assert plans[-1].rank < plans[0].rank


def test_what_cannot_be_is_said_before():
    with pytest.raises(InvalidInputError, match=r"for 300,000 rows\. Got 0\.10 GiB"):
        plan_memory(300_000, 20, 6, 0.1 * GIB)


def test_tiles_for_one_product():
    assert tile_values(100 * GIB) == 8192**2
    assert tile_values(1e6) == 12_500
    assert tile_values(0.0) == 1


@pytest.mark.usefixtures("no_torch")
def test_svms_decide_without_torch(square):
    X, _, _, s = square
    svc = SVC(gamma=0.5).fit(X, s)
    svm = DeviceSVM(device="cuda")
    svm.support_vectors_, svm.gamma_ = svc.support_vectors_, 0.5
    svm.dual_coef_, svm.intercept_ = svc.dual_coef_, svc.intercept_
    svm.classes_, svm.n_features_in_ = svc.classes_, 2
    assert_allclose(svm.decision_function(X), svc.decision_function(X))
    assert_array_equal(svm.predict(X), svc.predict(X))
    platt = DevicePlatt(svm, -2.0, 0.3)
    chance = 1.0 / (1.0 + np.exp(-2.0 * svc.decision_function(X) + 0.3))
    assert_allclose(platt.predict_proba(X)[:, 1], chance)


@pytest.fixture
def platt_here(monkeypatch):
    """Platt-scaled SVMs of this computer in the place of a device's; returns tasks."""
    asked = []

    def fit(samples, labelled, tasks, *, device, verbose):
        asked.append((tasks, device, verbose))
        chances = []
        for task in tasks:
            svc = SVC(gamma=0.5).fit(samples[task.train], labelled[task.train])
            chances.append(1.0 / (1.0 + np.exp(-svc.decision_function(samples))))
        return DevicePlatt(DeviceSVM(), -1.0, 0.0), chances

    monkeypatch.setattr("probgap.gap.fit_platt", fit)
    return asked


@pytest.mark.parametrize("method", ["in_sample", "out_of_fold"])
def test_folds_for_a_device_are_a_partition(square, platt_here, method):
    X, _, _, s = square
    model = ObservedGapEstimator(
        method=method, cv=3, random_state=0, device="cuda", verbose=1
    ).fit(X, s)
    [(tasks, device, verbose)] = platt_here
    assert (device, verbose) == ("cuda", 1)
    assert len(tasks) == (4 if method == "out_of_fold" else 1)
    for task in tasks:
        assert_array_equal(sum(mask.astype(int) for mask in task.held_out), task.train)
    if method == "out_of_fold":
        left_out = sum((~task.train).astype(int) for task in tasks[1:])
        assert_array_equal(left_out, 1)
    assert model.observed_gap_[s == 1].mean() > model.observed_gap_[s == 0].mean()


def test_a_classifier_of_ones_own_is_refused(square, platt_here):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match=r"estimator must be None with a dev"):
        ObservedGapEstimator(SVC(), device="cuda").fit(X, s)
    assert not platt_here
