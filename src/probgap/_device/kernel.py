"""The RBF kernel on a device: stored, or computed in tiles for each product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from probgap._core.types import Array, Vector
from probgap._device.arrays import Device, Tensor
from probgap._device.plan import FACTOR_ROWS, MemoryPlan, tile_values

# Exponents are differences; their terms must not exceed this, or single precision would
# leave fewer than six digits.
LARGEST_FOR_SINGLE = 8.0
# Lengths of sums that lose hardly a digit in single precision, and that are fastest.
_SHORT, _LONG = 256, 4096
# Memory traffic of a computed value: written, exponentiated in place, read.
_BYTES_COMPUTED = 20.0
_SEED = 20180806
# Jitter for the diagonal, as shares of its mean: matrices are definite up to rounding.
_JITTER = (1e-9, 1e-7, 1e-5, 1e-3, 1.0)
# Lower bound of the residual diagonal, which would otherwise be rounding.
_LEAST_REST = 1e-7


def rbf_sides(samples: Array, centre: Vector, scale: float) -> tuple[Array, Array]:
    """Return both factors of exponents: centred samples, their squared norm and a one."""
    rows = scale * (samples - centre)
    norm = -0.5 * np.einsum("ij,ij->i", rows, rows)
    ones = np.ones(norm.size)
    return np.column_stack([norm, ones, rows]), np.column_stack([ones, norm, rows])


@dataclass(frozen=True, slots=True)
class DevicePoints:
    """Samples such that ``exp(left @ right.T)`` is the kernel.

    They are in single precision where that is accurate enough.
    """

    device: Device
    centre: Vector
    scale: float
    single: bool
    left: Tensor = None
    right: Tensor = None

    @classmethod
    def of(
        cls, device: Device, samples: Array, gamma: float, others: Array | None = None
    ) -> DevicePoints:
        """Copy samples to the device; ``others`` will be compared with them."""
        centre = samples.mean(axis=0)
        scale = float(np.sqrt(2.0 * gamma))
        farthest = max(
            float(((scale * (some - centre)) ** 2).sum(axis=1).max())
            for some in (samples, others)
            if some is not None
        )
        points = cls(device, centre, scale, 0.5 * farthest <= LARGEST_FOR_SINGLE)
        left, right = points.sides(samples)
        return replace(points, left=left, right=right)

    @property
    def n(self) -> int:
        return int(self.left.shape[0])

    def only(self, rows: Tensor) -> DevicePoints:
        return replace(self, left=self.left[rows], right=self.right[rows])

    def sides(self, samples: Array) -> tuple[Tensor, Tensor]:
        """Copy samples to the device, as factors from the left and from the right."""
        left, right = rbf_sides(samples, self.centre, self.scale)
        put = self.device.put
        return put(left, single=self.single), put(right, single=self.single)

    def mean_with(self, others: Array, side: int) -> Tensor:
        """Average the kernel of each sample with other samples, by square tiles."""
        total = self.device.zeros(self.n)
        for part in _slices(others.shape[0], side):
            _, right = self.sides(others[part])
            for some in _slices(self.n, side):
                tile = _evaluate(self.left[some], right).float()
                total[some] += tile.sum(dim=1, dtype=self.device.xp.float64)
        return total / others.shape[0]


def _slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _evaluate(left: Tensor, right: Tensor) -> Tensor:
    exponent = left @ right.T
    return exponent.clamp_(max=0.0).exp_()


@dataclass(slots=True)
class Traffic:
    """Kernel values that were multiplied, and bytes that were moved for them."""

    n_rows: int
    values: float = 0.0
    bytes_moved: float = 0.0

    @property
    def passes(self) -> float:
        """The equivalent number of products with the whole kernel."""
        return self.values / self.n_rows**2


class DeviceKernel:
    """``scale * K`` with ``K_ij = exp(-gamma |x_i - x_j|^2)`` in single precision.

    Its Nystroem approximation ``scale * (F F^T + diag(rest))`` serves as a preconditioner,
    and replaces it in the first steps of a solver.
    """

    def __init__(
        self,
        points: DevicePoints,
        plan: MemoryPlan,
        traffic: Traffic | None = None,
        *,
        scale: float = 1.0,
    ) -> None:
        self.device, self.n, self._scale = points.device, points.n, scale
        self.traffic = Traffic(self.n) if traffic is None else traffic
        self._points, self._stored = points, None
        self._parts = list(_slices(self.n, plan.tile))
        if plan.stored:
            self._stored = self.device.empty(self.n, self.n, single=True)
            for here, there in product(self._parts, self._parts):
                self._stored[here, there] = self._tile(here, there)
        self._factor = self._nystroem(plan.rank)
        rest = 1.0 - (self._factor * self._factor).sum(dim=1, keepdim=True)
        self._rest = rest.clamp_(min=_LEAST_REST)

    def _tile(self, here: slice, there: slice) -> Tensor:
        return _evaluate(self._points.left[here], self._points.right[there]).float()

    def _nystroem(self, rank: int) -> Tensor:
        """Return the factor of some columns, computed in double precision."""
        rng = np.random.default_rng(_SEED)
        drawn = np.sort(rng.choice(self.n, size=rank, replace=False))
        landmarks = self.device.put_rows(drawn)
        left, right = self._points.left[landmarks], self._points.right
        columns = _evaluate(left.double(), right.double())
        xp = self.device.xp
        lower = _cholesky(columns[:, landmarks], xp)
        factor = xp.linalg.solve_triangular(lower, columns, upper=False)
        return factor.T.contiguous()

    def product(self, vectors: Tensor, *, careful: bool = False) -> Tensor:
        """Multiply with columns in double precision; ``careful`` keeps more digits.

        Long sums are split into short ones, added in double precision. A careful product
        splits each vector into a sum of two in single precision.
        """
        self.traffic.values += float(self.n) ** 2
        return self._scale * _in_two(vectors, self._multiply, careful)

    def _multiply(self, vectors: Tensor, width: int) -> Tensor:
        result = self.device.zeros(*vectors.shape)
        if self._stored is not None:
            self.traffic.bytes_moved += 4.0 * self.n**2
            # The matrix is symmetric, and its transpose is read faster.
            add_product(result, self._stored.T, vectors, width)
            return result
        # The lower triangle of tiles; each serves its transpose, too.
        for k, here in enumerate(self._parts):
            for there in self._parts[: k + 1]:
                tile = self._tile(here, there)
                self.traffic.bytes_moved += _BYTES_COMPUTED * tile.numel()
                add_product(result[here], tile, vectors[there], width)
                if here != there:
                    add_product(result[there], tile.T, vectors[here], width)
        return result

    def thin_product(self, vectors: Tensor) -> Tensor:
        """Multiply the approximation with columns."""
        product = self._factor @ (self._factor.T @ vectors) + self._rest * vectors
        return self._scale * product

    def precondition(
        self, diagonal: Tensor, inside: Tensor
    ) -> Callable[[Tensor], Tensor]:
        """Invert the approximation plus a diagonal, for each problem's variables.

        The inverse takes several columns for each problem: (n_variables, n_problems, k).
        """
        factor, scale, xp = self._factor, self._scale, self.device.xp
        inverse = xp.where(inside, 1.0 / (scale * self._rest + diagonal), 0.0)
        rank, n_problems = factor.shape[1], inverse.shape[1]
        small = factor.new_empty(n_problems, rank, rank)
        for problem in range(n_problems):
            square = factor.new_zeros(rank, rank)
            for rows in _slices(self.n, FACTOR_ROWS):
                weighed = factor[rows] * inverse[rows, problem, None]
                square.addmm_(factor[rows].T, weighed, alpha=scale)
            square.diagonal().add_(1.0)
            # It is applied so often that an explicit inverse pays.
            small[problem] = xp.cholesky_inverse(_cholesky(square, xp))

        def apply(residual: Tensor) -> Tensor:
            n, _, k = residual.shape
            plain = residual * inverse[:, :, None]
            inner = factor.T @ plain.reshape(n, n_problems * k)
            inner = small @ inner.reshape(rank, n_problems, k).permute(1, 0, 2)
            flat = inner.permute(1, 0, 2).reshape(rank, n_problems * k)
            spread = (factor @ flat).reshape(n, n_problems, k)
            return plain - scale * inverse[:, :, None] * spread

        return apply

    def part(self, *_: Any) -> tuple[slice, DeviceKernel]:
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


def multiply_part(
    points: DevicePoints, rows: Tensor, vectors: Tensor, side: int, traffic: Traffic
) -> Tensor:
    """Multiply some columns of a kernel carefully, in tiles that are not stored."""
    chosen = points.right[rows]
    traffic.values += float(points.n) * rows.shape[0]

    def multiply(some: Tensor, width: int) -> Tensor:
        result = points.device.zeros(points.n, some.shape[1])
        for part in _slices(rows.shape[0], side):
            for here in _slices(points.n, side):
                tile = _evaluate(points.left[here], chosen[part]).float()
                traffic.bytes_moved += _BYTES_COMPUTED * tile.numel()
                add_product(result[here], tile, some[part], width)
        return result

    return _in_two(vectors, multiply, careful=True)


def _in_two(
    vectors: Tensor, multiply: Callable[[Tensor, int], Tensor], careful: bool
) -> Tensor:
    """Multiply vectors in single precision; if ``careful``, also their rounding errors."""
    high = vectors.float()
    if not careful:
        return multiply(high, _LONG)
    n_columns = vectors.shape[1]
    left = (vectors - high.double()).float()
    both = high.new_empty(vectors.shape[0], 2 * n_columns)
    both[:, :n_columns], both[:, n_columns:] = high, left
    product = multiply(both, _SHORT)
    return product[:, :n_columns] + product[:, n_columns:]


def add_product(result: Tensor, matrix: Tensor, vectors: Tensor, width: int) -> None:
    """Add a product to ``result``, in sums of at most ``width`` terms."""
    if vectors.shape[1] == 1:  # libraries are faster with a plain vector
        result, vectors = result[:, 0], vectors[:, 0]
    for some in _slices(matrix.shape[1], width):
        result += matrix[:, some] @ vectors[some]


def stream_decisions(
    device: Device,
    samples: Array,
    vectors: Array,
    coef: Vector,
    gamma: float,
    *,
    budget: float | None = None,
) -> Vector:
    """Return weighted sums of kernel values with the support vectors, in double precision.

    ``budget`` is the memory in bytes to plan with, by default that of the device.
    """
    values = tile_values(device.budget() if budget is None else budget)
    points = DevicePoints(
        device, vectors.mean(axis=0), np.sqrt(2.0 * gamma), single=False
    )
    decision = np.zeros(samples.shape[0])
    with device.computing():
        weights, (_, right) = device.put(coef), points.sides(vectors)
        for some in _slices(samples.shape[0], max(1, values // coef.size)):
            left, _ = points.sides(samples[some])
            decision[some] = device.get(_evaluate(left, right) @ weights)
    return decision
