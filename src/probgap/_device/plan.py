"""Decide before memory is allocated whether the kernel is stored or recomputed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from probgap._core.errors import InvalidInputError

_SINGLE, _DOUBLE = 4.0, 8.0
# Landmarks of the preconditioner: per square root of the number of rows, at most as a share
# of the rows, and the fewest to which they are cut if memory is short.
_PER_ROOT = 8.0
_SHARE_OF_ROWS = 1 / 4
_FEWEST = 32
# Arrays of shape (n_rows, n_problems) that the solver needs at once.
_ARRAYS = 40
# Rows of the factor that are scaled at a time, and values in a tile of the kernel.
FACTOR_ROWS = 2**15
_TILE = 2**26
_SMALLEST_TILE = 2**18
# Exponents may be computed in double precision first.
_BYTES_IN_TILE = _SINGLE + 2 * _DOUBLE


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory that a problem takes, out of ``budget`` bytes.

    The kernel would take ``kernel_bytes``. It is ``stored``, or computed for each product
    in tiles of ``tile`` rows and columns. All else takes ``other_bytes``, most of it the
    ``rank`` landmarks of the preconditioner.
    """

    n_rows: int
    stored: bool
    rank: int
    tile: int
    kernel_bytes: float
    other_bytes: float
    budget: float

    def __str__(self) -> str:
        where = "kept" if self.stored else "computed in tiles for each product"
        return (
            f"kernel of {self.n_rows:,} rows, {_gib(self.kernel_bytes)} in single "
            f"precision, {where}; {self.rank:,} landmarks and the rest take "
            f"{_gib(self.other_bytes)}; {_gib(self.budget)} are free"
        )


def plan_memory(
    n_rows: int, n_features: int, n_problems: int, budget: float
) -> MemoryPlan:
    """Choose the tiles and the preconditioner that fit, and whether to store the kernel."""
    kernel = _SINGLE * n_rows**2
    rank = max(1, min(int(_PER_ROOT * math.sqrt(n_rows)), int(_SHARE_OF_ROWS * n_rows)))
    tile = _TILE
    while True:
        side = min(n_rows, math.isqrt(tile))
        samples = 4 * n_rows * (n_features + 2)
        # The columns of the landmarks exist while the factor is computed.
        factor = rank * (3 * n_rows + 2 * min(n_rows, FACTOR_ROWS))
        small = rank**2 * (n_problems + 4)
        vectors = _ARRAYS * n_rows * n_problems
        other = _DOUBLE * (samples + factor + small + vectors)
        other += _BYTES_IN_TILE * side**2
        if other <= budget:
            stored = other + kernel <= budget
            return MemoryPlan(n_rows, stored, rank, side, kernel, other, budget)
        if tile > _SMALLEST_TILE:
            tile //= 4
        elif rank > _FEWEST:
            rank //= 2
        else:
            msg = (
                f"device must have {_gib(other)} of free memory for {n_rows:,} rows. "
                f"Got {_gib(budget)}."
            )
            raise InvalidInputError(msg)


def tile_values(budget: float) -> int:
    """Return the number of kernel values in a tile that takes a quarter of the budget."""
    return max(1, int(min(_TILE, budget / (4.0 * _BYTES_IN_TILE))))


def _gib(size: float) -> str:
    return f"{size / 2**30:,.2f} GiB"
