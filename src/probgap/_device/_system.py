"""Linear systems with a kernel on a device, for solvers that keep their vectors here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Vector
from probgap._device._hessian import Hessian, Preconditioner
from probgap._device._kernel import DeviceKernel
from probgap._device._newton import conjugate_gradients
from probgap._device._torch import Device, Tensor


class DeviceOperator:
    """A kernel matrix on a device, to multiply vectors of the processor with."""

    def __init__(self, kernel: DeviceKernel) -> None:
        self._kernel = kernel

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._kernel.n

    def product(self, vectors: Vector, *, careful: bool = False) -> Vector:
        """Multiply with one vector or several, ``careful`` with less rounding."""
        device = self._kernel.device
        columns = device.put(vectors.reshape(self.n, -1))
        product = device.get(self._kernel.product(columns, careful=careful))
        return product.reshape(vectors.shape)

    def restrict(self, rows: NDArray[np.intp]) -> None:
        """There may be no memory for a copy."""


@dataclass(slots=True)
class Inverse:
    """A preconditioner, and what a penalty on the sum adds to it."""

    device: Device
    inside: Tensor
    diagonal: Tensor
    plain: Preconditioner
    penalty: float
    of_one: Tensor

    def __call__(self, residual: Tensor) -> Tensor:
        """Apply to one column."""
        solution = self.plain(residual)
        if self.penalty > 0.0:
            share = self.penalty / (1.0 + self.penalty * self.of_one.sum())
            solution = solution - share * solution.sum() * self.of_one
        return solution


class DeviceSystem:
    """``K + diag(pull) + penalty``, whole or of those rows that are free.

    Parameters
    ----------
    hessian : Hessian
        The kernel and its factor.
    """

    def __init__(self, hessian: Hessian) -> None:
        self.kernel = DeviceOperator(hessian.kernel)
        self._hessian, self._device = hessian, hessian.device

    def solve_part(
        self,
        free: NDArray[np.bool_],
        right: Vector,
        pull: Vector,
        near: Vector,  # noqa: ARG002 (only of use for a copy)
        penalty: float,
        error: float,
    ) -> Vector:
        """Solve for the free rows; the others are zero in the solution."""
        if not free.any():
            return np.zeros(free.size)
        inverse = self._precondition(free, pull, penalty)
        return self.solve(np.where(free, right, 0.0), pull, inverse, error)

    def precondition(self, pull: Vector, penalty: float) -> Inverse:
        """Prepare to solve for all rows."""
        return self._precondition(np.ones(pull.size, dtype=bool), pull, penalty)

    def _precondition(
        self, free: NDArray[np.bool_], pull: Vector, penalty: float
    ) -> Inverse:
        device = self._device
        diagonal = device.put(pull[:, None])
        inside = device.put(free[:, None]) > 0.0
        plain = self._hessian.precondition(diagonal, inside)
        of_one = device.zeros(1)
        if penalty > 0.0:
            of_one = plain(inside.to(diagonal.dtype)[:, :, None])
        return Inverse(device, inside, diagonal, plain, penalty, of_one)

    def solve(
        self, right: Vector, pull: Vector, inverse: Inverse, error: float
    ) -> Vector:
        """Solve until no entry of the residual is above the error."""
        del pull  # the inverse has it
        xp = self._device.xp

        def times(vectors: Tensor) -> Tensor:
            flat = (
                self._hessian.product(vectors[:, :, 0])
                + inverse.diagonal * (vectors[:, :, 0])
            )
            flat = flat + inverse.penalty * vectors.sum()
            return xp.where(inverse.inside, flat, 0.0)[:, :, None]

        residual = self._device.put(right[:, None, None])
        solution, _ = conjugate_gradients(
            times,
            inverse,
            0.0 * residual,
            residual,
            self._device.zeros(1, 1) + error,
            xp,
        )
        return self._device.get(solution)[:, 0, 0]
