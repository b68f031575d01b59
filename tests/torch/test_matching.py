"""Kernel mean matching on a device against that of the processor."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("torch", reason="needs torch: make test-torch")

from probgap._core.kernels import median_gamma
from probgap.exceptions import InvalidInputError
from probgap.reweight import kernel_mean_matching
from probgap.reweight._on_device import solve_on_device
from probgap.reweight._problem import Bounds
from probgap.reweight._solvers import Task


@pytest.fixture(scope="module")
def shifted():
    rng = np.random.default_rng(2)
    return rng.normal(size=(400, 3)), rng.normal(0.5, 0.8, size=(300, 3))


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("upper", [1000.0, 2.0])
def test_weights_are_as_good_as_those_of_the_processor(shifted, tol, upper):
    source, target = shifted
    options = {"tol": tol, "upper": upper, "gamma": median_gamma(target)}
    here = kernel_mean_matching(source, target, **options, solver="exact")
    there = kernel_mean_matching(source, target, **options, device="cpu")
    assert there.converged
    assert there.solver == "device"
    assert there.weights.min() >= 0.0
    assert there.weights.max() <= upper * (1.0 + 1e-12)
    assert 0.0 <= there.kkt_residual < 0.05
    assert there.objective - here.objective <= there.duality_gap + here.duality_gap
    assert there.objective >= here.objective - here.duality_gap - 1e-7
    assert there.n_passes >= 2.0
    assert there.bytes_moved >= 4.0 * 400**2


def test_a_kernel_that_is_not_kept_gives_the_same(device, shifted):
    source, target = shifted
    gamma = median_gamma(target)
    bounds = Bounds(400, 1000.0, 0.5)
    task = Task(source, target, "rbf", {"gamma": gamma}, bounds, 1e-4, 1e9, None)
    plans = []
    kept, free = (
        solve_on_device(task, device, budget=budget, report=plans.append)
        for budget in (None, 5.6e6)
    )
    assert [plan.stored for plan in plans] == [True, False]
    assert_allclose(free.objective, kept.objective, rtol=1e-4)


def test_only_one_kernel_is_there(shifted):
    with pytest.raises(InvalidInputError, match=r"kernel must be 'rbf' on a device\."):
        kernel_mean_matching(*shifted, kernel="linear", device="cpu")


def test_the_plan_is_said_before(shifted, capsys):
    kernel_mean_matching(*shifted, device="cpu", verbose=1)
    said = capsys.readouterr().err
    assert "kernel of 400 rows" in said
    assert "kept" in said


def test_where_guesses_do_not_come_right_the_interior_point_is_near(shifted):
    source, target = shifted
    matched = kernel_mean_matching(source, target, solver="exact")
    with pytest.warns(ConvergenceWarning, match="did not meet tol=1e-09"):
        hard = kernel_mean_matching(
            source, target, device="cpu", tol=1e-9, gamma=matched.gamma
        )
    assert hard.objective == pytest.approx(matched.objective, abs=1e-6)
