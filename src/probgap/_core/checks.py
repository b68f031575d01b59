"""Checks of arrays that pass between the stages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from probgap._core.errors import InvalidInputError

# A gap is computed as 2 P - 1: rounding may carry it this far outside [-1, 1].
_ROUNDING = 1e-9


def check_unit_interval(
    values: ArrayLike, name: str, n_samples: int
) -> NDArray[np.float64]:
    """Return one probability for each sample, or say what is wrong with them."""
    checked = np.asarray(values, dtype=np.float64)
    if checked.shape != (n_samples,):
        msg = f"{name} must have one value for each of the {n_samples} samples. Got shape {checked.shape}."
        raise InvalidInputError(msg)
    if not ((checked >= 0.0) & (checked <= 1.0)).all():
        msg = f"{name} must lie in [0, 1]. Got {checked.min():.6g} to {checked.max():.6g}."
        raise InvalidInputError(msg)
    return checked


def check_gap(observed_gap: ArrayLike) -> NDArray[np.float64]:
    """Return the gap as a float array, or say what is wrong with it."""
    gap: NDArray[np.float64] = check_array(
        observed_gap, ensure_2d=False, dtype=np.float64, input_name="observed_gap"
    )
    if gap.ndim != 1:
        msg = f"observed_gap must be one-dimensional. Got shape {gap.shape}."
        raise InvalidInputError(msg)
    largest = float(np.abs(gap).max())
    if largest > 1.0 + _ROUNDING:
        msg = f"observed_gap must lie in [-1, 1]. Got a value of size {largest:.6g}."
        raise InvalidInputError(msg)
    return gap


def check_labelled(labelled: ArrayLike, n_samples: int) -> NDArray[np.bool_]:
    """Return the mask of labelled positives, of the given length."""
    mask = np.asarray(labelled)
    if mask.shape != (n_samples,):
        msg = (
            f"labelled must have one entry for each of the {n_samples} samples. "
            f"Got shape {mask.shape}."
        )
        raise InvalidInputError(msg)
    if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
        msg = f"labelled must hold booleans, or 0 and 1. Got {np.unique(mask)[:5].tolist()!r}."
        raise InvalidInputError(msg)
    return mask.astype(bool)
