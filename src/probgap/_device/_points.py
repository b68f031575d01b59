"""Samples on a device, laid out so that one product gives exponents of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from probgap._device._torch import Device, Tensor

# Exponents are differences of numbers as large as this at most, or single precision
# would not leave six digits of them.
_LARGEST_FOR_SINGLE = 8.0


@dataclass(frozen=True, slots=True)
class Points:
    """Scaled samples with their norm and a one: ``exp(left @ right.T)`` is the kernel.

    Attributes
    ----------
    device : Device
        Where they are.
    left, right : Tensor of shape (n, n_features + 2)
        Both sides of the product, in single precision where that is exact enough.
    centre : ndarray of shape (n_features,)
        What samples are measured from, so that norms are small.
    scale : float
        What they are multiplied with.
    single : bool
        Whether exponents are made in single precision.
    """

    device: Device
    left: Tensor
    right: Tensor
    centre: NDArray[np.float64]
    scale: float
    single: bool

    @classmethod
    def of(
        cls,
        device: Device,
        samples: NDArray[np.float64],
        gamma: float,
        others: NDArray[np.float64] | None = None,
    ) -> Points:
        """Send samples; ``others`` are some that they will be compared with."""
        centre = samples.mean(axis=0)
        scale = float(np.sqrt(2.0 * gamma))
        farthest = max(
            float(((scale * (some - centre)) ** 2).sum(axis=1).max())
            for some in (samples, others)
            if some is not None
        )
        single = 0.5 * farthest <= _LARGEST_FOR_SINGLE
        left, right = _both_sides(device, samples, centre, scale, single)
        return cls(device, left, right, centre, scale, single)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.left.shape[0])

    def only(self, rows: Tensor) -> Points:
        """Keep some samples."""
        return replace(self, left=self.left[rows], right=self.right[rows])

    def fill(self, room: Tensor, left: Tensor, right: Tensor, width: int) -> None:
        """Write kernel values in single precision, so many columns at a time."""
        if self.single:
            self.device.xp.mm(left, right.T, out=room)
            room.clamp_(max=0.0).exp_()
            return
        for start in range(0, right.shape[0], width):
            some = slice(start, start + width)
            exponent = left @ right[some].T
            room[:, some] = exponent.clamp_(max=0.0).exp_()

    def tile(self, left: Tensor, right: Tensor) -> Tensor:
        """Give kernel values in single precision."""
        room = self.device.empty(left.shape[0], right.shape[0], single=True)
        self.fill(room, left, right, right.shape[0])
        return room

    def mean_with(self, others: NDArray[np.float64], side: int) -> Tensor:
        """Average the kernel of each sample with other samples, by square tiles."""
        total = self.device.zeros(self.n)
        for start in range(0, others.shape[0], side):
            some_others = others[start : start + side]
            _, right = _both_sides(
                self.device, some_others, self.centre, self.scale, self.single
            )
            for top in range(0, self.n, side):
                some = slice(top, top + side)
                total[some] += self.tile(self.left[some], right).sum(
                    dim=1, dtype=self.device.xp.float64
                )
        return total / others.shape[0]


def _both_sides(
    device: Device,
    samples: NDArray[np.float64],
    centre: NDArray[np.float64],
    scale: float,
    single: bool,
) -> tuple[Tensor, Tensor]:
    rows = scale * (samples - centre)
    norm = -0.5 * np.einsum("ij,ij->i", rows, rows)
    ones = np.ones(rows.shape[0])
    left, right = (
        np.column_stack([*pair, rows]) for pair in ((norm, ones), (ones, norm))
    )
    return device.put(left, single=single), device.put(right, single=single)
