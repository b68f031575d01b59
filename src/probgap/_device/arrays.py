"""The only file that uses torch: a device, and its arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, load_library
from probgap._core.runtime import free_memory

Tensor = Any  # torch.Tensor; torch is not there when types are checked

# Share of the free memory to plan with; libraries take some of the rest.
_SHARE = 0.9
# The same for main memory, which other processes use, too.
_SHARE_OF_HOST = 0.5


class Arrays:
    """numpy arrays; code uses only functions of ``xp`` that numpy and torch share."""

    xp: Any = np

    def put(self, array: NDArray[Any]) -> Any:
        return np.asarray(array, dtype=np.float64)

    def get(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)

    def true_rows(self, mask: Any) -> Any:
        return np.flatnonzero(mask)

    def take_along(self, array: Any, order: Any) -> Any:
        """Take entries of each column."""
        return np.take_along_axis(array, order, axis=0)


@dataclass(frozen=True, slots=True)
class Device(Arrays):
    """A torch device: its name, and torch as ``xp``."""

    name: str
    xp: Any

    @property
    def is_cpu(self) -> bool:
        return self.name == "cpu"

    def true_rows(self, mask: Tensor) -> Tensor:
        return mask.nonzero()[:, 0]

    def take_along(self, array: Tensor, order: Tensor) -> Tensor:
        return array.gather(0, order)

    def put(self, array: NDArray[Any], *, single: bool = False) -> Tensor:
        """Copy an array to the device, in double precision unless told otherwise."""
        kind = np.float32 if single else np.float64
        source = np.array(array, dtype=kind, order="C")
        return self.xp.from_numpy(source).to(self.name)

    def put_rows(self, rows: NDArray[np.intp]) -> Tensor:
        return self.xp.from_numpy(np.array(rows, dtype=np.int64)).to(self.name)

    def empty(self, *shape: int, single: bool = False) -> Tensor:
        kind = self.xp.float32 if single else self.xp.float64
        return self.xp.empty(shape, dtype=kind, device=self.name)

    def zeros(self, *shape: int) -> Tensor:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.name)

    def get(self, tensor: Tensor) -> NDArray[Any]:
        array: NDArray[Any] = tensor.detach().cpu().numpy()
        return array

    def budget(self) -> float:
        """Return the bytes of memory to plan with."""
        if self.is_cpu:
            return _SHARE_OF_HOST * (free_memory() or 4.0 * 2**30)
        self.xp.cuda.empty_cache()
        free, _ = self.xp.cuda.mem_get_info(self.name)
        return _SHARE * float(free)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute without autograd, and with full single precision (no TF32)."""
        before = self.xp.get_float32_matmul_precision()
        if before != "highest":
            self.xp.set_float32_matmul_precision("highest")
        try:
            with self.xp.inference_mode():
                yield
        finally:
            if before != "highest":
                self.xp.set_float32_matmul_precision(before)


def open_device(name: str) -> Device:
    """Return the device with torch's name, or raise an error that says what is missing."""
    kind, _, number = name.partition(":")
    if kind not in ("cuda", "cpu") or (number and not number.isdecimal()):
        msg = f"device must be 'cuda', 'cuda:0' and the like, 'cpu' or None. Got {name!r}."
        raise InvalidInputError(msg)
    torch = load_library("torch", extra="gpu", purpose="device=" + repr(name))
    if kind == "cpu":
        return Device("cpu", torch)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        msg = (
            "device must be one that torch finds; choose device=None or 'cpu', or "
            f"install a torch with CUDA. Got {name!r}, with {count} CUDA device(s)."
        )
        raise InvalidInputError(msg)
    return Device(f"cuda:{int(number or 0)}", torch)
