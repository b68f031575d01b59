"""The RBF kernel of samples on a device: kept, or computed in tiles for each product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from probgap._device._plan import MemoryPlan
from probgap._device._points import Points
from probgap._device._torch import Tensor

# Sums of so many terms lose hardly a digit in single precision, or are the fastest.
_SHORT, _LONG = 256, 4096
# Bytes that a computed value moves: written, made an exponential in place, read.
_BYTES_COMPUTED = 20.0


@dataclass(slots=True)
class Traffic:
    """What was asked of a kernel: values that were multiplied, and bytes they moved."""

    n_rows: int
    values: float = 0.0
    bytes_moved: float = 0.0

    @property
    def passes(self) -> float:
        """Products with the whole kernel that these are as many values as."""
        return self.values / self.n_rows**2


class DeviceKernel:
    """``exp(-gamma |x_i - x_j|^2)`` in single precision, exponents as exact as it needs.

    Parameters
    ----------
    points : Points
        The samples.
    plan : MemoryPlan
        Whether it is kept.
    traffic : Traffic, default=None
        Where to count products; its own by default.
    """

    def __init__(
        self, points: Points, plan: MemoryPlan, traffic: Traffic | None = None
    ) -> None:
        self.points, self.plan = points, plan
        self.device, self.n = points.device, points.n
        self.traffic = Traffic(self.n) if traffic is None else traffic
        self._stored: Tensor | None = None
        if plan.stored:
            self._stored = self.device.empty(self.n, self.n, single=True)
            for top in range(0, self.n, plan.tile):
                some = slice(top, top + plan.tile)
                points.fill(
                    self._stored[some], points.left[some], points.right, plan.tile
                )

    def columns(self, rows: Tensor) -> Tensor:
        """Give some columns in double precision, as rows."""
        result = self.device.empty(rows.shape[0], self.n)
        height = max(1, self.plan.tile**2 // self.n)
        left = self.points.left[rows]
        for top in range(0, rows.shape[0], height):
            few = slice(top, top + height)
            exponent = left[few].double() @ self.points.right.double().T
            result[few] = exponent.clamp_(max=0.0).exp_()
        return result

    def product(self, vectors: Tensor, *, careful: bool = False) -> Tensor:
        """Multiply with columns in double precision; ``careful`` keeps more digits.

        Long sums are made of short ones, added in double precision. A careful product
        takes the vectors as a sum of two in single precision.
        """
        self.traffic.values += float(self.n) ** 2
        if self._stored is None:
            return _in_two(vectors, self._multiply_tiles, careful)
        return _in_two(vectors, self._multiply, careful)

    def _multiply(self, vectors: Tensor, width: int) -> Tensor:
        assert self._stored is not None  # or tiles would be multiplied
        self.traffic.bytes_moved += 4.0 * self.n**2
        result = self.device.zeros(*vectors.shape)
        # The matrix is its own mirror image, and whole rows of it are read faster.
        add_product(result, self._stored.T, vectors, width)
        return result

    def _multiply_tiles(self, vectors: Tensor, width: int) -> Tensor:
        """Compute half of the tiles, and use each for itself and for its mirror image."""
        result = self.device.zeros(*vectors.shape)
        points = self.points
        for here, there in self._pairs():
            tile = points.tile(points.left[here], points.right[there])
            self.traffic.bytes_moved += _BYTES_COMPUTED * tile.numel()
            add_product(result[here], tile, vectors[there], width)
            if here != there:
                add_product(result[there], tile.T, vectors[here], width)
        return result

    def _pairs(self) -> Iterator[tuple[slice, slice]]:
        side = self.plan.tile
        for top in range(0, self.n, side):
            for left in range(0, top + 1, side):
                yield (
                    slice(top, min(top + side, self.n)),
                    slice(left, min(left + side, self.n)),
                )


def multiply_part(
    points: Points, rows: Tensor, vectors: Tensor, side: int, traffic: Traffic
) -> Tensor:
    """Multiply some columns of a kernel carefully, in tiles that are not kept."""
    chosen = points.right[rows]
    traffic.values += float(points.n) * rows.shape[0]

    def multiply(some: Tensor, width: int) -> Tensor:
        result = points.device.zeros(points.n, some.shape[1])
        for start in range(0, rows.shape[0], side):
            part = slice(start, start + side)
            for top in range(0, points.n, side):
                here = slice(top, top + side)
                tile = points.tile(points.left[here], chosen[part])
                traffic.bytes_moved += _BYTES_COMPUTED * tile.numel()
                add_product(result[here], tile, some[part], width)
        return result

    return _in_two(vectors, multiply, careful=True)


def _in_two(vectors: Tensor, multiply: Any, careful: bool) -> Tensor:
    """Multiply columns in single precision, or what is left of them as well."""
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
    """Add a product, whose long sums are made of short ones."""
    if vectors.shape[1] == 1:  # libraries are faster with a plain vector
        result, vectors = result[:, 0], vectors[:, 0]
    for start in range(0, matrix.shape[1], width):
        some = slice(start, start + width)
        result += matrix[:, some] @ vectors[some]
