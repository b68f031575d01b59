"""Support vector machines on a device: all that share samples and kernel at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Vector
from probgap._device._kernel import Traffic
from probgap._device._parts import Field, solve_in_parts
from probgap._device._plan import MemoryPlan
from probgap._device._points import Points
from probgap._device._programme import Programmes
from probgap._device._torch import Device


@dataclass(frozen=True, slots=True)
class MachineSolutions:
    """Dual solutions of support vector machines, one column or number for each.

    Attributes
    ----------
    coef : ndarray of shape (n_variables, n_machines)
        Label times dual variable.
    decision : ndarray of shape (n_variables, n_machines)
        Decision, with the intercept, of the sample of each variable.
    intercept, dual_objective, duality_gap, kkt_residual : ndarray of shape (n_machines,)
        The gap is relative to the primal objective. The residual is how far a unit
        step against the gradient moves a dual variable, cut to its bounds.
    converged : ndarray of bool of shape (n_machines,)
        Whether the gap is what was asked for.
    n_iter : int
        Steps of the interior point method, of all parts.
    n_passes : float
        Products with the kernel, in values of the whole one.
    bytes_moved : float
        Bytes that these products read or wrote.
    plan : MemoryPlan
        What was kept of the largest part.
    """

    coef: NDArray[np.float64]
    decision: NDArray[np.float64]
    intercept: Vector
    dual_objective: Vector
    duality_gap: Vector
    kkt_residual: Vector
    converged: NDArray[np.bool_]
    n_iter: int
    n_passes: float
    bytes_moved: float
    plan: MemoryPlan


def solve_machines(
    device: Device,
    samples: NDArray[np.float64],
    positive: NDArray[np.bool_],
    caps: NDArray[np.float64],
    *,
    gamma: float,
    tol: float,
    rows: NDArray[np.intp] | None = None,
    budget: float | None = None,
    say: Callable[[MemoryPlan], None] | None = None,
) -> MachineSolutions:
    """Solve the duals of machines with hinge loss that differ in what samples count for.

    Parameters
    ----------
    device : Device
        Where to.
    samples : ndarray of shape (n, n_features)
        The samples.
    positive : ndarray of bool of shape (n_variables,)
        The class of each variable.
    caps : ndarray of shape (n_variables, n_machines)
        What a sample counts for, C times its weight; 0 for one that is left out. Each
        machine has both classes.
    gamma : float
        Width of the RBF kernel.
    tol : float
        The relative duality gap.
    rows : ndarray of shape (n_variables,), default=None
        The sample of each variable, where one counts for both classes.
    budget : float, default=None
        Bytes to plan with, by default what the device has.
    say : callable, default=None
        Told each plan before memory is taken.
    """
    n_variables, n_machines = caps.shape
    with device.computing():
        field = Field(
            points=Points.of(device, samples, gamma),
            rows=None if rows is None else device.put_rows(rows),
            traffic=Traffic(samples.shape[0]),
            plans=[],
            budget=budget,
            say=say,
        )
        sign = device.put(np.where(positive, 1.0, -1.0)[:, None])
        cap = device.put(caps)
        zero = device.zeros(n_machines)
        problems = Programmes(
            device,
            linear=sign.expand(n_variables, n_machines),
            lower=-cap * (sign < 0.0),
            upper=cap * (sign > 0.0),
            low=zero,
            high=zero,
            reference=zero,
        )
        found = solve_in_parts(field, problems, tol)
        decision = found.gradient + sign + found.multiplier
        get = device.get
        return MachineSolutions(
            coef=get(found.x),
            decision=get(decision),
            intercept=get(found.multiplier),
            dual_objective=-get(found.objective),
            duality_gap=get(found.share),
            kkt_residual=get(found.residual),
            converged=get(found.converged),
            n_iter=found.n_iter,
            n_passes=field.traffic.passes,
            bytes_moved=field.traffic.bytes_moved,
            plan=max(field.plans, key=lambda plan: plan.n_rows),
        )
