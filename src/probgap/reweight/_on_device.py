"""Kernel mean matching with the kernel on a device, and the certificate in numpy."""

from __future__ import annotations

from collections.abc import Callable

from probgap._core.errors import InvalidInputError
from probgap._device.arrays import Device
from probgap._device.estimators import as_dense
from probgap._device.kernel import DeviceKernel, DevicePoints
from probgap._device.plan import MemoryPlan, plan_memory
from probgap.reweight._problem import Best, KMMResult
from probgap.reweight._products import solve_by_products
from probgap.reweight._solvers import Task


def solve_on_device(
    task: Task,
    device: Device,
    *,
    budget: float | None = None,
    report: Callable[[MemoryPlan], None] | None = None,
) -> KMMResult:
    """Solve by products with the exact kernel on a device."""
    if task.kernel != "rbf":
        msg = f"kernel must be 'rbf' on a device. Got {task.kernel!r}."
        raise InvalidInputError(msg)
    source, target = as_dense(task.source), as_dense(task.target)
    n, d = source.shape
    plan = plan_memory(n, d, 1, device.budget() if budget is None else budget)
    if report is not None:
        report(plan)
    with device.computing():
        points = DevicePoints.of(device, source, task.params["gamma"], target)
        kernel = DeviceKernel(points, plan, scale=1.0 / n)
        kappa = device.get(points.mean_with(target, plan.tile))
        best = Best.of(task.bounds, kappa, task.tol)
        steps = solve_by_products(kernel, best, task.start)
        work = {
            "n_passes": kernel.traffic.passes,
            "bytes_moved": kernel.traffic.bytes_moved,
        }
        return best.result("device", steps, task.gamma, **work)
