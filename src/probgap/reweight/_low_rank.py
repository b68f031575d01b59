"""A kernel matrix by a few of its columns, where these say all there is to say."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from probgap._core.types import Array

_SEED = 20180806


def factorise(kernel: Array, max_rank: int, left: float) -> Array | None:
    """Find F with ``kernel`` equal to ``F @ F.T`` up to rounding, if F may be thin.

    Randomly pivoted Cholesky in blocks: columns are drawn by what the factor so far
    leaves of the diagonal, with a fixed seed.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        A positive semidefinite matrix.
    max_rank : int
        The most columns that F may have.
    left : float
        What F may leave, at most, of any entry of the diagonal.

    Returns
    -------
    ndarray of shape (n, rank) or None
        The factor, or None where ``max_rank`` columns leave more.
    """
    n = kernel.shape[0]
    rest = np.maximum(np.diagonal(kernel), 0.0)
    factor = np.zeros((n, max_rank))
    rank = 0
    rng = np.random.default_rng(_SEED)
    while rest.max() > left:
        # Small blocks waste few columns, large ones run at the speed of the machine.
        size = max(8, rank // 4)
        pivots = np.unique(rng.choice(n, size=size, p=rest / rest.sum()))
        if rank + pivots.size > max_rank:
            return None
        block = kernel[:, pivots] - factor[:, :rank] @ factor[pivots, :rank].T
        square = block[pivots]
        # The square is definite only up to the rounding of what was taken off it.
        square[np.diag_indices_from(square)] += 1e-3 * left
        try:
            lower = np.linalg.cholesky(square)
        except np.linalg.LinAlgError:
            return None
        columns = solve_triangular(lower, block.T, lower=True, check_finite=False).T
        factor[:, rank : rank + pivots.size] = columns
        rank += pivots.size
        rest -= np.einsum("ij,ij->i", columns, columns)
        rest[pivots] = 0.0
        np.maximum(rest, 0.0, out=rest)
    return np.ascontiguousarray(factor[:, :rank])
