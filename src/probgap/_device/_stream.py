"""Decisions of a machine for any number of samples, a tile of the kernel at a time."""

from __future__ import annotations

import numpy as np

from probgap._core.types import Vector
from probgap._device._torch import Device

# Numbers in a tile, and the share of free memory that tiles may take.
_TILE = 2**26
_SHARE = 0.25
_BYTES_PER_VALUE = 24.0


def stream_decisions(
    device: Device,
    samples: Vector,
    vectors: Vector,
    coef: Vector,
    gamma: float,
    *,
    budget: float | None = None,
) -> Vector:
    """Sum kernel values with support vectors, in double precision.

    Parameters
    ----------
    device : Device
        Where to.
    samples : ndarray of shape (m, n_features)
        What to decide on.
    vectors, coef : ndarray of shape (n_support, n_features) and (n_support,)
        Support vectors and their weights.
    gamma : float
        Width of the kernel.
    budget : float, default=None
        Bytes to plan with, by default what the device has.
    """
    budget = device.budget() if budget is None else budget
    values = int(min(_TILE, max(1.0, _SHARE * budget / _BYTES_PER_VALUE)))
    width = min(vectors.shape[0], values)
    height = max(1, values // width)
    centre = vectors.mean(axis=0)
    scale = np.sqrt(2.0 * gamma)
    decision = np.zeros(samples.shape[0])
    with device.computing():
        for top in range(0, samples.shape[0], height):
            some = slice(top, top + height)
            left = device.put(scale * (samples[some] - centre))
            of_left = 0.5 * (left * left).sum(dim=1, keepdim=True)
            total = device.zeros(left.shape[0])
            for start in range(0, vectors.shape[0], width):
                part = slice(start, start + width)
                right = device.put(scale * (vectors[part] - centre))
                exponent = left @ right.T
                exponent -= of_left
                exponent -= 0.5 * (right * right).sum(dim=1)
                total += exponent.clamp_(max=0.0).exp_() @ device.put(coef[part])
            decision[some] = device.get(total)
    return decision
