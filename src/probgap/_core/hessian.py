"""Kernels as quadratic forms: products by panels, and a factor of low rank.

A :class:`Hessian` multiplies the kernel with vectors, and inverts the sum of its factor and
a diagonal. The factor is the preconditioner of conjugate gradients or, where it is accurate
enough, stands for the kernel.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches

from probgap._core.arrays import Arrays, Tensor
from probgap._core.types import Mask, Matrix, Rows, Vector

# Exponents are differences; their terms must not exceed this, or single precision would
# leave fewer than six digits.
_LARGEST_FOR_SINGLE = 8.0
# Lengths of sums that lose hardly a digit in single precision, and that are fastest.
_SHORT, _LONG = 256, 4096
# Residual diagonals below this share of the diagonal are rounding, by precision.
_LEAST_REST = {False: 1e-13, True: 1e-5}
# Jitter for matrices that are definite up to rounding, tried in turn: in units of the
# smallest residual for a block of pivots, of the largest entry for other matrices.
_BLOCK_JITTER = (0.1, 10.0, 1000.0)
_JITTER = (0.0, 1e-9, 1e-7, 1e-5, 1e-3, 1.0)
_FIRST_BLOCK = 16
_SEED = 20180806
# Rows of the factor that are weighted at a time.
_CHUNK = 8192

Inverse = Callable[[Tensor], Tensor]  # of columns, (n, n_problems, k)


class Blocks:
    """The kernel between the rows of two samples, a block at a time.

    The exponent of an RBF kernel is one matrix product of centred samples, in double
    precision where single would lose too much.
    """

    def __init__(
        self,
        A: Matrix,
        B: Matrix,
        kernel: Any,
        params: Mapping[str, Any],
        arrays: Arrays,
        *,
        single: bool,
    ) -> None:
        self.A, self.B, self.kernel, self.params = A, B, kernel, params
        self.arrays, self.single = arrays, single
        self.like = arrays.put(np.empty(0), single=single)
        self._sides: tuple[Tensor, Tensor] | None = None
        if kernel == "rbf" and not issparse(A) and not issparse(B):
            centre, scale = B.mean(axis=0), np.sqrt(2.0 * float(params["gamma"]))
            rows = [scale * (X - centre) for X in (A, B)]
            norms = [-0.5 * np.einsum("ij,ij->i", X, X) for X in rows]
            few = min(norms[0].min(), norms[1].min()) >= -_LARGEST_FOR_SINGLE
            ones = [np.ones_like(norm) for norm in norms]
            left = np.column_stack([norms[0], ones[0], rows[0]])
            right = np.column_stack([ones[1], norms[1], rows[1]])
            put, single = arrays.put, single and bool(few)
            self._sides = put(left, single=single), put(right, single=single)

    def block(self, rows: Rows | slice, columns: Rows | slice) -> Tensor:
        """Evaluate some rows and columns."""
        arrays = self.arrays
        if self.kernel == "precomputed":
            return arrays.put(self.A[rows][:, columns], single=self.single)
        if self._sides is None:
            A, B = self.A[rows], self.B[columns]
            exact = pairwise_kernels(A, B, metric=self.kernel, **self.params)
            return arrays.put(exact, single=self.single)
        left, right = self._sides[0][rows], self._sides[1][columns].T
        result = arrays.zeros(left.shape[0], right.shape[1], like=self.like)
        # A few rows at a time, so that the exponents stay in the cache.
        height = 1 + arrays.in_cache // (1 + right.shape[1])
        for few in gen_batches(left.shape[0], height):
            result[few] = left[few] @ right
            arrays.xp.exp(result[few], out=result[few])
        return result

    @property
    def n_bytes(self) -> float:
        return (4.0 if self.single else 8.0) * self.A.shape[0] * self.B.shape[0]

    def square(self) -> Tensor:
        """Evaluate all, for a sample with itself.

        The lower triangle is mirrored: rounding must not make the matrix asymmetric, or
        conjugate gradients would stall.
        """
        n = self.A.shape[0]
        matrix = self.arrays.zeros(n, n, like=self.like)
        for rows in gen_batches(n, self.arrays.tile[0]):
            block = self.block(rows, slice(0, rows.stop))
            matrix[rows, : rows.stop] = block
            matrix[: rows.stop, rows] = block.T
        return matrix

    def mean(self) -> Vector:
        """Average each row over all columns."""
        n, m = self.A.shape[0], self.B.shape[0]
        total = np.zeros(n)
        for rows in gen_batches(n, self.arrays.tile[0]):
            for columns in gen_batches(m, self.arrays.tile[1]):
                block = self.block(rows, columns)
                total[rows] += self.arrays.get(block.sum(axis=1))
        return total / m


class GrowingFactor:
    """Randomly pivoted Cholesky in blocks: ``K = F @ F.T + R`` with R semidefinite.

    ``rest`` is the diagonal of R; ``exhausted`` tells that only rounding is left.
    """

    def __init__(self, blocks: Blocks, diagonal: Vector) -> None:
        self._blocks, self._arrays = blocks, blocks.arrays
        self._rng = np.random.default_rng(_SEED)
        self.rest = diagonal.copy()
        share = _LEAST_REST[blocks.single]
        self._least_rest = share * float(diagonal.max())
        self.factor = blocks.arrays.put(
            np.empty((diagonal.size, 0)), single=blocks.single
        )
        self.exhausted = bool(self.rest.max() <= self._least_rest)

    def grow(self, rank: int, enough: Callable[[Vector], bool]) -> None:
        """Add columns until there are ``rank``, or until ``rest`` is small enough."""
        n, used = self.factor.shape
        larger = self._arrays.zeros(n, max(rank, used), like=self.factor)
        larger[:, :used] = self.factor
        while used < rank and not self.exhausted and not enough(self.rest):
            # Small blocks waste fewer columns, large ones are faster per column.
            size = min(max(_FIRST_BLOCK, used // 4), rank - used)
            drawn = self._rng.choice(n, size=size, p=self.rest / self.rest.sum())
            block = self._columns(np.unique(drawn), larger[:, :used])
            self.exhausted = block is None or float(self.rest.max()) <= self._least_rest
            if block is not None:
                larger[:, used : used + block.shape[1]] = block
                used += block.shape[1]
        self.factor = larger[:, :used]

    def _columns(self, pivots: Rows, factor: Tensor) -> Tensor | None:
        """Return new columns of the factor, for some pivots; None if there are none."""
        arrays = self._arrays
        block = self._blocks.block(slice(None), pivots)
        block = block - factor @ factor[pivots].T
        square = arrays.get(block[pivots]).astype(np.float64)
        for share in _BLOCK_JITTER:
            jitter = share * self._least_rest * np.eye(pivots.size)
            lower = Arrays().cholesky(square + jitter)
            if lower is not None:
                triangle = arrays.in_type_of(arrays.put(lower), block)
                block = arrays.solve_lower(triangle, block.T).T
                self.rest -= arrays.get((block * block).sum(axis=1))
                np.maximum(self.rest, 0.0, out=self.rest)
                return block
        # The residual is rounding, or the kernel is not positive semidefinite.
        return None


class Hessian:
    """``scale * K``, and its approximation ``scale * (F @ F.T + diag(rest))``.

    Without blocks of the kernel, the approximation is used for all.
    """

    def __init__(
        self,
        arrays: Arrays,
        blocks: Blocks | None,
        factor: Tensor,
        rest: Vector,
        scale: float,
    ) -> None:
        self.arrays, self._blocks = arrays, blocks
        thin = factor.shape[1] == 0  # a kernel of nothing, or none
        self._factor = arrays.zeros(rest.size, 1, like=factor) if thin else factor
        self._n, self._scale, self._rest = rest.size, scale, arrays.put(rest[:, None])
        self._matrix: Tensor = None
        # Stored if memory allows, and otherwise evaluated for each product.
        if blocks is not None and blocks.n_bytes <= arrays.memory:
            self._matrix = blocks.square()

    @classmethod
    def exact(cls, blocks: Blocks, diagonal: Vector, rank: int, scale: float) -> Self:
        """Return the kernel with a factor of some rank as its preconditioner."""
        growing = GrowingFactor(blocks, diagonal)
        growing.grow(rank, lambda rest: not rest.any())
        least = _LEAST_REST[blocks.single] * float(diagonal.max())
        rest = np.full(diagonal.size, max(float(growing.rest.mean()), least))
        return cls(blocks.arrays, blocks, growing.factor, rest, scale)

    def product(self, vectors: Tensor, *, careful: bool = False) -> Tensor:
        """Multiply with columns, adding short sums in double precision if ``careful``."""
        if self._blocks is None:
            return self.thin_product(vectors)
        # Libraries are faster with a plain vector.
        flat = vectors[:, 0] if vectors.shape[1] == 1 else vectors
        flat = self.arrays.in_type_of(flat, self._blocks.like)
        result = self.arrays.zeros(*flat.shape)
        for rows in gen_batches(self._n, _SHORT if careful else _LONG):
            if self._matrix is not None:
                block = self._matrix[rows]
            else:
                block = self._blocks.block(rows, slice(None))
            result += block.T @ flat[rows]  # the matrix is symmetric
        return self._scale * result.reshape(vectors.shape)

    def thin_product(self, vectors: Tensor, **_: Any) -> Tensor:
        """Multiply the approximation with columns."""
        product = self._times(self._factor, self._times(self._factor.T, vectors))
        return self._scale * (product + self._rest * vectors)

    def _times(self, factor: Tensor, vectors: Tensor) -> Tensor:
        """Multiply in the precision of the factor."""
        product = factor @ self.arrays.in_type_of(vectors, factor)
        return self.arrays.in_type_of(product, vectors)

    def precondition(self, diagonal: Tensor, inside: Mask) -> Inverse:
        """Invert the approximation plus a diagonal, for each problem's variables."""
        arrays, scale, factor = self.arrays, self._scale, self._factor
        inverse = arrays.xp.where(inside, 1.0 / (self._rest + diagonal / scale), 0.0)
        lowers = [self._weighted_square(weight) for weight in inverse.T]

        def apply(residual: Tensor) -> Tensor:
            n, _, k = residual.shape
            plain = inverse[:, :, None] * residual
            inner = self._times(factor.T, plain.reshape(n, -1))
            inner = arrays.solve_each(lowers, inner.reshape(-1, len(lowers), k))
            spread = self._times(factor, inner.reshape(-1, len(lowers) * k))
            return (plain - inverse[:, :, None] * spread.reshape(plain.shape)) / scale

        return apply

    def _weighted_square(self, weight: Tensor) -> Tensor:
        """Factorise ``1 + F.T @ diag(weight) @ F``."""
        small = self.arrays.put(np.eye(self._factor.shape[1]))
        for rows in gen_batches(self._n, _CHUNK):
            root = self.arrays.xp.sqrt(weight[rows])[:, None]
            part = self._factor[rows] * self.arrays.in_type_of(root, self._factor)
            small += part.T @ part
        return factorise(self.arrays, small)


def factorise(arrays: Arrays, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of a matrix that is definite up to rounding."""
    size, eye = float(matrix.diagonal().max()), arrays.put(np.eye(len(matrix)))
    for share in _JITTER:
        lower = arrays.cholesky(matrix + share * size * eye)
        if lower is not None:
            return lower
    return arrays.put(np.diag(np.sqrt(np.abs(arrays.get(matrix)).sum(axis=1))))
