"""The arrays that solvers compute with: numpy's, or torch's on a GPU or the processor.

The only file that uses torch. Solvers call functions of ``xp`` that both have, and the few
methods here for those that differ.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

from probgap._core.errors import InvalidInputError, load_library, refuse

Tensor = Any  # an array of either; torch is not there when types are checked

# Share of a GPU's free memory for the kernel; factors and vectors take some of the rest.
_SHARE = 0.7


class Arrays:
    """numpy's arrays."""

    xp: Any = np
    # Kernel values that are evaluated at a time, and the tiles of a mean of them.
    in_cache, tile = 2**19, (256, 4096)
    # Bytes of kernel values to keep; more are evaluated for each product.
    memory = 2.0 * 2**30

    def put(self, array: NDArray[Any], *, single: bool = False) -> Tensor:
        """Copy a numpy array, in double precision unless told otherwise."""
        return np.asarray(array, dtype=np.float32 if single else np.float64)

    def get(self, array: Tensor) -> NDArray[Any]:
        return np.asarray(array)

    def zeros(self, *shape: int, like: Tensor = None) -> Tensor:
        """Return zeros, in double precision or in that of ``like``."""
        return np.zeros(shape, dtype=np.float64 if like is None else like.dtype)

    def in_type_of(self, array: Tensor, like: Tensor) -> Tensor:
        return array.astype(like.dtype, copy=False)

    def take_along(self, array: Tensor, order: Tensor) -> Tensor:
        """Take entries of each column."""
        return np.take_along_axis(array, order, axis=0)

    def cholesky(self, matrix: Tensor) -> Tensor | None:
        """Return the lower factor, or None if the matrix is not positive definite."""
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(matrix)
        return None

    def solve_lower(self, lower: Tensor, right: Tensor) -> Tensor:
        return solve_triangular(lower, right, lower=True, check_finite=False)

    def solve_each(self, lowers: list[Tensor], right: Tensor) -> Tensor:
        """Solve with the Cholesky factor of each problem: (rank, n_problems, k)."""
        each = enumerate(lowers)
        solved = [
            cho_solve((a, True), right[:, k], check_finite=False) for k, a in each
        ]
        return np.stack(solved, axis=1)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute as precisely as the solvers expect."""
        # At the limits of precision they stop by themselves.
        with np.errstate(all="ignore"):
            yield


@dataclass(frozen=True, slots=True)
class Device(Arrays):
    """torch's arrays on a device."""

    name: str
    xp: Any

    in_cache, tile = 2**27, (2**14, 2**14)

    @property
    def memory(self) -> float:  # type: ignore[override]
        if self.name == "cpu":
            return Arrays.memory
        free, _ = self.xp.cuda.mem_get_info(self.name)
        return _SHARE * float(free)

    def put(self, array: NDArray[Any], *, single: bool = False) -> Tensor:
        kind = np.float32 if single else np.float64
        source = np.array(array, dtype=kind, order="C")
        return self.xp.from_numpy(source).to(self.name)

    def get(self, array: Tensor) -> NDArray[Any]:
        return array.detach().cpu().numpy()

    def zeros(self, *shape: int, like: Tensor = None) -> Tensor:
        kind = self.xp.float64 if like is None else like.dtype
        return self.xp.zeros(shape, dtype=kind, device=self.name)

    def in_type_of(self, array: Tensor, like: Tensor) -> Tensor:
        return array.to(like.dtype)

    def take_along(self, array: Tensor, order: Tensor) -> Tensor:
        return array.gather(0, order)

    def cholesky(self, matrix: Tensor) -> Tensor | None:
        lower, fault = self.xp.linalg.cholesky_ex(matrix)
        return None if int(fault) else lower

    def solve_lower(self, lower: Tensor, right: Tensor) -> Tensor:
        return self.xp.linalg.solve_triangular(lower, right, upper=False)

    def solve_each(self, lowers: list[Tensor], right: Tensor) -> Tensor:
        solved = self.xp.cholesky_solve(right.permute(1, 0, 2), self.xp.stack(lowers))
        return solved.permute(1, 0, 2)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute without autograd, and with full single precision (no TF32)."""
        before = self.xp.get_float32_matmul_precision()
        self.xp.set_float32_matmul_precision("highest")
        try:
            with self.xp.inference_mode():
                yield
        except self.xp.cuda.OutOfMemoryError as error:
            msg = f"device must have more free memory for so many rows. Got {error}"
            raise InvalidInputError(msg) from error
        finally:
            self.xp.set_float32_matmul_precision(before)


def open_device(name: str | None) -> Arrays:
    """Return the arrays of a device by torch's name, or numpy's for None."""
    if name is None:
        return Arrays()
    kind, _, number = name.partition(":")
    if kind not in ("cuda", "cpu") or (number and not number.isdecimal()):
        refuse(f"device must be 'cuda', 'cuda:0', 'cpu' or None. Got {name!r}.")
    torch = load_library("torch", extra="gpu", purpose="device=" + repr(name))
    if kind == "cpu":
        return Device("cpu", torch)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        refuse(
            "device must be one that torch finds; choose device=None or 'cpu', or "
            f"install a torch with CUDA. Got {name!r}, with {count} CUDA device(s)."
        )
    return Device(f"cuda:{int(number or 0)}", torch)
