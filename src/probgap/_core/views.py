"""What learners see of samples: their columns or, for wide tables, components."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils.extmath import randomized_svd

from probgap._core.defaults import Defaults
from probgap._core.types import Array, Matrix, Single, Vector
from probgap._core.validation import spread_rows

# Most values of dense samples from which components are computed: 200 MB.
_MOST_VALUES = 50_000_000
# Dense samples with this share of zeros are treated as sparse: counts or indicators.
_MOSTLY_ZERO = 0.75
# Trees use single precision, whose largest value is 3e38. A column whose range is below
# this share of its values is too narrow for differences of squares.
_LARGEST = 1e30
_NARROWEST = 1e-6
_FARTHEST = 1e15


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns, those with extreme values shifted and scaled to [-1, 1]."""

    centre: Vector
    scale: Vector

    @classmethod
    def fit(cls, samples: Array) -> Self | None:
        """Find columns that are too large, small or narrow; None if there are none."""
        low, high = samples.min(axis=0), samples.max(axis=0)
        half, most = high / 2.0 - low / 2.0, np.maximum(np.abs(low), np.abs(high))
        narrow = half < np.maximum(_NARROWEST * most, 1.0 / _LARGEST)
        odd = (most > _LARGEST) | (narrow & (half > 0.0))
        if not odd.any():
            return None
        scale = np.where(odd, np.where(half > 0.0, half, most), 1.0)
        return cls(np.where(odd, low / 2.0 + high / 2.0, 0.0), scale)

    def __call__(self, samples: Matrix) -> Array:
        with np.errstate(over="ignore"):
            return (_as_dense(samples) - self.centre) / self.scale


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Principal components of standardised dense columns."""

    scale: Vector
    offset: Vector
    basis: Single

    @classmethod
    def fit(cls, samples: Matrix, per_root: float, seed: int) -> Self:
        """Compute the components."""
        n_rows, n_columns = samples.shape
        some = spread_rows(n_rows, min(n_rows, max(2, _MOST_VALUES // n_columns)))
        block = np.clip(samples[some], -_LARGEST, _LARGEST)
        constant = block.max(axis=0) == block.min(axis=0)
        deviation = block.std(axis=0, dtype=np.float64)
        scale = np.where(constant | (deviation == 0.0), 1.0, deviation)
        mean = block.mean(axis=0, dtype=np.float64) / scale
        standard = _standard(block, scale) - mean.astype(np.float32)
        basis = _components(standard, per_root, seed)
        return cls(scale, mean @ basis, basis)

    def __call__(self, samples: Matrix) -> Array:
        standard = _standard(_as_dense(samples, np.float32), self.scale)
        return (standard @ self.basis).astype(np.float64) - self.offset


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Components of sparse columns, which are not centred, so that they stay sparse.

    If no value is negative, columns are treated as word counts and weighted by TF-IDF:
    ``log(1 + count)`` times the inverse document frequency, with rows scaled to length 1.
    Otherwise columns are divided by their largest absolute value.
    """

    counts: bool
    factor: Vector
    basis: Single

    @classmethod
    def fit(cls, samples: Matrix, per_root: float, seed: int) -> Self:
        """Compute the components of the weighted columns."""
        n_rows, n_columns = samples.shape
        counts = bool(samples.nnz == 0 or samples.data.min() >= 0.0)
        if counts:
            rows = np.bincount(samples.indices, samples.data > 0.0, n_columns)
            factor = 1.0 + np.log((1.0 + n_rows) / (1.0 + rows))
        else:
            most = np.asarray(abs(samples).max(axis=0).todense()).ravel()
            factor = 1.0 / np.where(most > 0.0, most, 1.0)
        weighted = _weighted(samples, factor, counts=counts)
        return cls(counts, factor, _components(weighted, per_root, seed))

    def __call__(self, samples: Matrix) -> Array:
        weighted = _weighted(csr_array(samples), self.factor, counts=self.counts)
        return np.asarray(weighted @ self.basis, dtype=np.float64)


View = Columns | Directions | Words


def apply_view(samples: Matrix, view: View | None) -> Array:
    """Return what learners see of samples; the plain columns if there is no view."""
    if isinstance(view, Directions | Words):
        return view(samples)
    columns = _as_dense(samples) if view is None else view(samples)
    return np.ascontiguousarray(np.clip(columns, -_LARGEST, _LARGEST))


def choose_view(samples: Matrix, seed: int, limits: Defaults) -> View | None:
    """Choose columns or, if there are too many of them, components."""
    if samples.shape[1] <= limits.most_columns:
        return Columns.fit(_as_dense(samples))
    if issparse(samples) or (samples == 0).mean() >= _MOSTLY_ZERO:
        return Words.fit(csr_array(samples), limits.components_per_root, seed)
    return Directions.fit(samples, limits.components_per_root, seed)


def _as_dense(samples: Matrix, dtype: Any = np.float64) -> NDArray[Any]:
    """Return samples as an array of floats, at least as precise as ``dtype``."""
    dense = samples.toarray() if issparse(samples) else np.asarray(samples)
    return dense.astype(np.promote_types(dense.dtype, dtype), copy=False)


def _standard(block: NDArray[Any], scale: Vector) -> Single:
    with np.errstate(over="ignore"):
        standard = block / scale
    return np.clip(standard, -_FARTHEST, _FARTHEST).astype(np.float32)


def _weighted(samples: Matrix, factor: Vector, *, counts: bool) -> Any:
    """Weight sparse columns, and scale rows of counts to length 1; single precision."""
    values = samples.astype(np.float64)
    if counts:
        values.data = np.log1p(np.maximum(values.data, 0.0))
    with np.errstate(over="ignore"):
        values.data = values.data * factor[values.indices]
    values.data = np.clip(values.data, -_FARTHEST, _FARTHEST)
    if counts:
        length = np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())
        values = diags_array(1.0 / np.where(length > 0.0, length, 1.0)) @ values
    return values.astype(np.float32)


def _components(samples: Any, per_root: float, seed: int) -> Single:
    """Return the leading right singular vectors as columns.

    Few rows cannot tell directions apart; with many components all distances between rows
    become alike.
    """
    usual = per_root * np.sqrt(samples.shape[0])
    n_components = int(np.clip(usual, 1, min(samples.shape)))
    _, _, rows = randomized_svd(samples, n_components, n_iter=2, random_state=seed)
    basis: Single = np.ascontiguousarray(rows.T, dtype=np.float32)
    return basis
