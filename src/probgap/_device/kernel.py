"""The RBF kernel on a device: stored, or computed in tiles for each product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from probgap._core.types import Array, Vector
from probgap._device.arrays import Device, Tensor
from probgap._device.plan import MemoryPlan

# Exponents are differences; their terms must not exceed this, or single precision would
# leave fewer than six digits.
_LARGEST_FOR_SINGLE = 8.0
# Lengths of sums that lose hardly a digit in single precision, and that are fastest.
_SHORT, _LONG = 256, 4096
# Memory traffic of a computed value: written, exponentiated in place, read.
_BYTES_COMPUTED = 20.0
# Tiles of decisions: most values, and the share of free memory that they may take.
_TILE = 2**26
_SHARE = 0.25
_BYTES_PER_VALUE = 24.0


@dataclass(frozen=True, slots=True)
class Points:
    """Samples with their squared norm and a one: ``exp(left @ right.T)`` is the kernel.

    They are scaled, and centred so that norms are small; in single precision where that is
    accurate enough.
    """

    device: Device
    left: Tensor
    right: Tensor
    centre: Vector
    scale: float
    single: bool

    @classmethod
    def of(
        cls, device: Device, samples: Array, gamma: float, others: Array | None = None
    ) -> Points:
        """Copy samples to the device; ``others`` will be compared with them."""
        centre = samples.mean(axis=0)
        scale = float(np.sqrt(2.0 * gamma))
        farthest = max(
            float(((scale * (some - centre)) ** 2).sum(axis=1).max())
            for some in (samples, others)
            if some is not None
        )
        single = 0.5 * farthest <= _LARGEST_FOR_SINGLE
        empty = cls(device, None, None, centre, scale, single)
        left, right = empty._both_sides(samples)
        return replace(empty, left=left, right=right)

    @property
    def n(self) -> int:
        return int(self.left.shape[0])

    def only(self, rows: Tensor) -> Points:
        return replace(self, left=self.left[rows], right=self.right[rows])

    def _both_sides(self, samples: Array) -> tuple[Tensor, Tensor]:
        rows = self.scale * (samples - self.centre)
        norm = -0.5 * np.einsum("ij,ij->i", rows, rows)
        ones = np.ones(rows.shape[0])
        left, right = (
            np.column_stack([*pair, rows]) for pair in ((norm, ones), (ones, norm))
        )
        put = self.device.put
        return put(left, single=self.single), put(right, single=self.single)

    def tile(self, left: Tensor, right: Tensor) -> Tensor:
        """Return kernel values in single precision."""
        exponent = left @ right.T
        return exponent.clamp_(max=0.0).exp_().float()

    def mean_with(self, others: Array, side: int) -> Tensor:
        """Average the kernel of each sample with other samples, by square tiles."""
        total = self.device.zeros(self.n)
        for part in _slices(others.shape[0], side):
            _, right = self._both_sides(others[part])
            for some in _slices(self.n, side):
                tile = self.tile(self.left[some], right)
                total[some] += tile.sum(dim=1, dtype=self.device.xp.float64)
        return total / others.shape[0]


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
    """``exp(-gamma |x_i - x_j|^2)`` in single precision, with accurate exponents."""

    def __init__(
        self, points: Points, plan: MemoryPlan, traffic: Traffic | None = None
    ) -> None:
        self.points, self.plan = points, plan
        self.device, self.n = points.device, points.n
        self.traffic = Traffic(self.n) if traffic is None else traffic
        self._stored: Tensor | None = None
        self._parts = list(_slices(self.n, plan.tile))
        if plan.stored:
            self._stored = self.device.empty(self.n, self.n, single=True)
            for here, there in product(self._parts, self._parts):
                tile = points.tile(points.left[here], points.right[there])
                self._stored[here, there] = tile

    def columns(self, rows: Tensor) -> Tensor:
        """Return some columns of the kernel in double precision, transposed."""
        left, right = self.points.left[rows], self.points.right
        exponent = left.double() @ right.double().T
        return exponent.clamp_(max=0.0).exp_()

    def product(self, vectors: Tensor, *, careful: bool = False) -> Tensor:
        """Multiply with columns in double precision; ``careful`` keeps more digits.

        Long sums are split into short ones, added in double precision. A careful product
        splits each vector into a sum of two in single precision.
        """
        self.traffic.values += float(self.n) ** 2
        return _in_two(vectors, self._multiply, careful)

    def _multiply(self, vectors: Tensor, width: int) -> Tensor:
        result = self.device.zeros(*vectors.shape)
        if self._stored is not None:
            self.traffic.bytes_moved += 4.0 * self.n**2
            # The matrix is symmetric, and its transpose is read faster.
            add_product(result, self._stored.T, vectors, width)
            return result
        # The lower triangle of tiles; each serves its transpose, too.
        points = self.points
        for k, here in enumerate(self._parts):
            for there in self._parts[: k + 1]:
                tile = points.tile(points.left[here], points.right[there])
                self.traffic.bytes_moved += _BYTES_COMPUTED * tile.numel()
                add_product(result[here], tile, vectors[there], width)
                if here != there:
                    add_product(result[there], tile.T, vectors[here], width)
        return result


def _slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def multiply_part(
    points: Points, rows: Tensor, vectors: Tensor, side: int, traffic: Traffic
) -> Tensor:
    """Multiply some columns of a kernel carefully, in tiles that are not stored."""
    chosen = points.right[rows]
    traffic.values += float(points.n) * rows.shape[0]

    def multiply(some: Tensor, width: int) -> Tensor:
        result = points.device.zeros(points.n, some.shape[1])
        for part in _slices(rows.shape[0], side):
            for here in _slices(points.n, side):
                tile = points.tile(points.left[here], chosen[part])
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
    budget = device.budget() if budget is None else budget
    values = min(_TILE, _SHARE * budget / _BYTES_PER_VALUE)
    centre, scale = vectors.mean(axis=0), np.sqrt(2.0 * gamma)
    decision = np.zeros(samples.shape[0])
    with device.computing():
        right = device.put(scale * (vectors - centre))
        of_right = 0.5 * (right * right).sum(dim=1)
        weights = device.put(coef)
        for some in _slices(samples.shape[0], max(1, int(values) // coef.size)):
            left = device.put(scale * (samples[some] - centre))
            exponent = left @ right.T
            exponent -= 0.5 * (left * left).sum(dim=1, keepdim=True)
            exponent -= of_right
            total = exponent.clamp_(max=0.0).exp_() @ weights
            decision[some] = device.get(total)
    return decision
