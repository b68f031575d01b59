"""Kernel mean matching on a device: the kernel is there, the certificate is made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from probgap._core.errors import InvalidInputError
from probgap._device._estimators import as_dense
from probgap._device._hessian import Hessian
from probgap._device._kernel import DeviceKernel
from probgap._device._plan import MemoryPlan, plan_memory
from probgap._device._points import Points
from probgap._device._system import DeviceSystem
from probgap._device._torch import Device
from probgap.reweight._certificate import Goal
from probgap.reweight._routes import KKT_SHARE, Outcome, Task, judge
from probgap.reweight._system import solve_with


@dataclass(frozen=True, slots=True)
class Work:
    """What an answer took: products with the whole kernel, and bytes that they moved."""

    n_passes: float
    bytes_moved: float
    plan: MemoryPlan


def match_on_device(
    task: Task,
    device: Device,
    *,
    budget: float | None = None,
    say: Callable[[MemoryPlan], None] | None = None,
) -> tuple[Outcome, Work]:
    """Solve with the exact kernel, by products with it on a device."""
    if task.kernel != "rbf":
        msg = f"kernel must be 'rbf' on a device. Got {task.kernel!r}."
        raise InvalidInputError(msg)
    source, target = as_dense(task.source), as_dense(task.target)
    budget = device.budget() if budget is None else budget
    plan = plan_memory(source.shape[0], source.shape[1], source.shape[0], 1, budget)
    if say is not None:
        say(plan)
    with device.computing():
        points = Points.of(device, source, task.params["gamma"], target)
        kernel = DeviceKernel(points, plan)
        kappa = device.get(points.mean_with(target, plan.tile))
        goal = Goal(task.tol, KKT_SHARE * task.tol)
        certified = solve_with(
            DeviceSystem(Hessian(kernel)), kappa, task.bounds, goal, task.start
        )
    traffic = kernel.traffic
    work = Work(traffic.passes, traffic.bytes_moved, plan)
    return judge(certified, goal, "device"), work
