"""Platt-scaled machines on a device: a machine and those of its folds, solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.calibration import _SigmoidCalibration

from probgap._core.kernels import scale_gamma
from probgap._core.runtime import one_thread, remark
from probgap._core.types import Mask, Matrix, Vector
from probgap._device._estimators import (
    DeviceMachine,
    DevicePlatt,
    as_dense,
    warn_unless_converged,
)
from probgap._device._machines import solve_machines
from probgap._device._torch import open_device

# Machines that are solved together at most: what they need in memory besides the kernel
# grows with their number.
_MOST = 48


@dataclass(frozen=True, slots=True)
class PlattTask:
    """Rows to fit on, and which of them each fold holds out.

    Attributes
    ----------
    train : ndarray of bool of shape (n,)
        The rows.
    held_out : list of ndarray of bool of shape (n,)
        A partition of them.
    """

    train: Mask
    held_out: list[Mask]


def fit_platt(
    samples: Matrix,
    labelled: Mask,
    tasks: Sequence[PlattTask],
    *,
    device: str,
    verbose: int = 0,
) -> tuple[DevicePlatt, list[Vector]]:
    """Fit a Platt-scaled machine for each task; all have the kernel of all samples.

    A machine's decisions about the samples that it was not fitted on come out of its
    last product with the kernel. Those of the folds place the sigmoid.

    Returns
    -------
    DevicePlatt
        The classifier of the first task.
    list of ndarray of shape (n,)
        For each task, the chance of every sample to be labelled by its classifier.
    """
    place = open_device(device)
    dense = as_dense(samples)
    gamma = scale_gamma(dense)
    first: DevicePlatt | None = None
    chances: list[Vector] = []
    for batch in _batches(tasks):
        caps = [mask for task in batch for mask in _trained(task)]
        with one_thread():
            solved = solve_machines(
                place,
                dense,
                labelled,
                np.column_stack(caps).astype(np.float64),
                gamma=gamma,
                tol=DeviceMachine().tol,
                say=remark if verbose else None,
            )
        warn_unless_converged(solved, DeviceMachine().tol)
        column = 0
        for task in batch:
            held_out = np.empty(labelled.size)
            for k, mask in enumerate(task.held_out, start=column + 1):
                held_out[mask] = solved.decision[mask, k]
            sigmoid = _SigmoidCalibration().fit(
                held_out[task.train], labelled[task.train].astype(np.int8)
            )
            machine = DeviceMachine(device=device)
            at = np.arange(labelled.size)
            machine._store(dense, gamma, solved, column, at)
            machine.classes_ = np.array([0, 1])
            machine.n_features_in_ = dense.shape[1]
            platt = DevicePlatt(machine, float(sigmoid.a_), float(sigmoid.b_))
            chances.append(platt.chance(solved.decision[:, column]))
            first = platt if first is None else first
            column += 1 + len(task.held_out)
    assert first is not None  # there is a task
    return first, chances


def _trained(task: PlattTask) -> list[Mask]:
    """Give the rows of the machine, and of that of each fold."""
    return [task.train, *(task.train & ~mask for mask in task.held_out)]


def _batches(tasks: Sequence[PlattTask]) -> list[list[PlattTask]]:
    batches: list[list[PlattTask]] = []
    room = 0
    for task in tasks:
        size = 1 + len(task.held_out)
        if not batches or size > room:
            batches.append([])
            room = _MOST
        batches[-1].append(task)
        room -= size
    return batches
