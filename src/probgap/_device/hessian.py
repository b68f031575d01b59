"""The Hessian of a quadratic programme: a kernel, and a preconditioner."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap._device.arrays import Tensor
from probgap._device.kernel import DeviceKernel
from probgap._device.plan import FACTOR_ROWS

_SEED = 20180806
# Jitter for the diagonal, as shares of its mean: matrices are definite up to rounding.
_JITTER = (1e-9, 1e-7, 1e-5, 1e-3, 1.0)
# Lower bound of the residual diagonal, which would otherwise be rounding.
_LEAST_REST = 1e-7


class DeviceHessian:
    """``scale * K``, and its Nystroem approximation ``scale * (F F^T + diag(rest))``.

    The approximation serves as a preconditioner, and replaces K in the first steps of a
    solver.
    """

    def __init__(self, kernel: DeviceKernel, *, scale: float = 1.0) -> None:
        self.kernel, self.device, self.scale = kernel, kernel.device, scale
        rng = np.random.default_rng(_SEED)
        drawn = np.sort(rng.choice(kernel.n, size=kernel.plan.rank, replace=False))
        landmarks = self.device.put_rows(drawn)
        columns = kernel.columns(landmarks)
        xp = self.device.xp
        lower = _cholesky(columns[:, landmarks], xp)
        factor = xp.linalg.solve_triangular(lower, columns, upper=False)
        self._factor = factor.T.contiguous()
        rest = 1.0 - (self._factor * self._factor).sum(dim=1, keepdim=True)
        self._rest = rest.clamp_(min=_LEAST_REST)

    def product(self, vectors: Tensor, *, careful: bool = False) -> Tensor:
        """Multiply with columns."""
        return self.scale * self.kernel.product(vectors, careful=careful)

    def thin_product(self, vectors: Tensor) -> Tensor:
        """Multiply the approximation with columns."""
        product = self._factor @ (self._factor.T @ vectors) + self._rest * vectors
        return self.scale * product

    def precondition(self, diagonal: Tensor, inside: Tensor) -> Preconditioner:
        """Invert the approximation plus a diagonal, for each problem's variables."""
        inverse = 1.0 / (self.scale * self._rest + diagonal)
        inverse = self.device.xp.where(inside, inverse, 0.0)
        return Preconditioner(self._factor, inverse, self.scale, self.device.xp)

    def part(self, *_: Any) -> tuple[slice, DeviceHessian]:
        """Return all rows: there may be no memory to copy some."""
        return slice(None), self


def _cholesky(square: Tensor, xp: Any) -> Tensor:
    """Factorise a matrix that is definite up to rounding, with as much jitter as needed."""
    unit = square.diagonal().mean()
    for jitter in _JITTER:
        square.diagonal().add_(jitter * unit)
        lower, fault = xp.linalg.cholesky_ex(square)
        if not int(fault):
            break
    return lower


class Preconditioner:
    """Inverse of ``scale * F F^T + diag(d)`` for each problem; ``inverse`` is 1 / d."""

    def __init__(self, factor: Tensor, inverse: Tensor, scale: float, xp: Any) -> None:
        self._factor, self._inverse, self._scale = factor, inverse, scale
        rank, n_problems = factor.shape[1], inverse.shape[1]
        self._small = factor.new_empty(n_problems, rank, rank)
        for problem in range(n_problems):
            square = factor.new_zeros(rank, rank)
            for top in range(0, factor.shape[0], FACTOR_ROWS):
                part = factor[top : top + FACTOR_ROWS]
                weighed = part * inverse[top : top + FACTOR_ROWS, problem, None]
                square.addmm_(part.T, weighed, alpha=scale)
            square.diagonal().add_(1.0)
            # It is applied so often that an explicit inverse pays.
            self._small[problem] = xp.cholesky_inverse(_cholesky(square, xp))

    def __call__(self, residual: Tensor) -> Tensor:
        """Apply to several columns for each problem: (n_variables, n_problems, k)."""
        n, n_problems, k = residual.shape
        plain = residual * self._inverse[:, :, None]
        inner = self._factor.T @ plain.reshape(n, n_problems * k)
        rank = inner.shape[0]
        inner = self._small @ inner.reshape(rank, n_problems, k).permute(1, 0, 2)
        flat = inner.permute(1, 0, 2).reshape(rank, n_problems * k)
        spread = (self._factor @ flat).reshape(n, n_problems, k)
        return plain - self._scale * self._inverse[:, :, None] * spread
