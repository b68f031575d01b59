"""A model as JSON and a block of bytes, and back.

An object is taken apart as pickle does it, by its ``__reduce_ex__``. But a class or a
function is written as its number in a table of names, so that the table alone says all
that a file can name, before anything is built.
"""

import copyreg
import math
from ast import literal_eval
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from probgap._core.errors import ModelFileError
from probgap.io._sound import require_sound, require_sound_call

# A name is for an object, made without its constructor, or for a call, or for itself.
ROLES = NEW, CALL, VALUE = "new", "call", "value"

_PLAIN = (type(None), bool, int, float, str)
_REDUCED = ("state", "items", "pairs")


class Encoder:
    """Take a model apart: :meth:`encode` returns JSON, and notes what that refers to."""

    def __init__(self) -> None:
        self.names: dict[str, dict[tuple[str, str], int]] = {role: {} for role in ROLES}
        self.dtypes: dict[str, int] = {}
        self.block = bytearray()
        # Arrays by their identity. They are kept, so that none is used a second time.
        self._arrays: dict[int, tuple[Any, list[Any]]] = {}
        self._own = {
            list: self._list,
            tuple: lambda items: {"tuple": self._list(items)},
            dict: lambda items: {"dict": self._list(map(list, items.items()))},
            bytes: lambda data: {"bytes": self._array(np.frombuffer(data, np.uint8))},
            np.ndarray: self._any_array,
            np.memmap: self._any_array,
        }

    def encode(self, thing: Any) -> Any:
        """Return a part of a model as JSON."""
        if type(thing) in _PLAIN:
            return thing
        if type(thing) in self._own:
            return self._own[type(thing)](thing)
        if isinstance(thing, np.generic):
            return {"scalar": self._array(np.asarray(thing))}
        if isinstance(thing, np.dtype):
            return {"dtype": self._array(np.empty(0, thing))}
        return self._object(thing)

    def _list(self, items: Iterable[Any]) -> list[Any]:
        return [self.encode(item) for item in items]

    def _any_array(self, array: Any) -> Any:
        if array.dtype == object:
            return {"objects": self._list(array.ravel()), "shape": array.shape}
        return {"array": self._array(array)}

    def _array(self, array: Any) -> list[Any]:
        """Add the bytes of an array to the block; return type, shape, order and place."""
        if id(array) not in self._arrays:
            order = "F" if array.flags.fnc else "C"
            described = repr(np.lib.format.dtype_to_descr(array.dtype))
            number = self.dtypes.setdefault(described, len(self.dtypes))
            place = [number, array.shape, order, len(self.block)]
            self._arrays[id(array)] = array, place
            self.block += _clean(array).tobytes(order)
        return self._arrays[id(array)][1]

    def _object(self, thing: Any) -> Any:
        if isinstance(thing, type | FunctionType | BuiltinFunctionType | np.ufunc):
            return {VALUE: self._name(VALUE, thing)}
        if _is_record(thing):
            state = {f.name: self.encode(getattr(thing, f.name)) for f in fields(thing)}
            return {NEW: self._name(NEW, type(thing)), "fields": state}
        maker, args, *more = thing.__reduce_ex__(4)
        role = NEW if maker is copyreg.__newobj__ else CALL  # type: ignore[attr-defined]
        maker, *args = args if role == NEW else (maker, *args)
        node = {role: self._name(role, maker), "args": self._list(args)}
        for part, content in zip(_REDUCED, more, strict=False):
            if content is not None:
                node[part] = self.encode(content if part == "state" else list(content))
        return node

    def _name(self, role: str, thing: Any) -> int:
        module = getattr(thing, "__module__", None)
        if isinstance(thing, np.ufunc):
            module = "numpy" if hasattr(np, thing.__name__) else "scipy.special"
        # Compiled losses do not know their package in older versions of scikit-learn.
        module = "sklearn._loss._loss" if module == "_loss" else str(module)
        place = module, getattr(thing, "__qualname__", thing.__name__)
        return self.names[role].setdefault(place, len(self.names[role]))


def _is_record(thing: Any) -> bool:
    """Return whether fields are all there is: not so in fitted estimators."""
    return is_dataclass(thing) and not hasattr(thing, "get_params")


def _clean(array: Any) -> Any:
    """Return an array, of records without what memory holds between their fields."""
    names = array.dtype.names or ()
    clean = np.zeros(array.shape, array.dtype) if names else array
    for name in names:
        clean[name] = array[name]
    return clean


class Decoder:
    """Put a model together: :meth:`decode` returns what JSON stands for."""

    def __init__(self, found: dict[str, Any], dtypes: list[str], block: bytes) -> None:
        self._found, self._block = found, block
        self._dtypes = [np.lib.format.descr_to_dtype(literal_eval(d)) for d in dtypes]
        self._arrays: dict[str, Any] = {}
        self._own = {
            "tuple": lambda node: tuple(self.decode(node["tuple"])),
            "dict": lambda node: dict(self.decode(node["dict"])),
            "bytes": lambda node: self._array(node["bytes"]).tobytes(),
            "array": lambda node: self._array(node["array"]),
            "scalar": lambda node: self._array(node["scalar"])[()],
            "objects": lambda node: np.fromiter(
                self.decode(node["objects"]), object
            ).reshape(node["shape"]),
            "dtype": lambda node: self._array(node["dtype"]).dtype,
            VALUE: lambda node: self._found[VALUE][node[VALUE]],
            NEW: self._new,
            CALL: self._call,
        }

    def decode(self, node: Any) -> Any:
        """Return the part of a model that a node of JSON stands for."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if isinstance(node, dict):
            return self._own[next(iter(node))](node)
        return node

    def _array(self, place: list[Any]) -> Any:
        """Return the array at a place, with memory of its own."""
        key = repr(place)
        if key not in self._arrays:
            number, shape, order, start = place
            dtype, size = self._dtypes[number], math.prod(shape)
            flat: Any = np.frombuffer(self._block, dtype, size, start) if size else []
            self._arrays[key] = np.array(flat, dtype).reshape(shape, order=order)
        return self._arrays[key]

    def _new(self, node: Any) -> Any:
        kind = self._found[NEW][node[NEW]]
        thing = kind.__new__(kind, *self.decode(node.get("args", [])))
        if _is_record(kind):
            stored = node["fields"]
            if stored.keys() != {field.name for field in fields(kind)}:
                msg = f"its {type(thing).__name__} has other fields in this version"
                raise ModelFileError(msg)
            for name, item in stored.items():
                object.__setattr__(thing, name, self.decode(item))
        return self._restored(thing, node)

    def _call(self, node: Any) -> Any:
        maker, args = self._found[CALL][node[CALL]], self.decode(node["args"])
        require_sound_call(maker, args)
        return self._restored(maker(*args), node)

    def _restored(self, thing: Any, node: Any) -> Any:
        """Restore what an object has beyond the arguments that made it, as pickle does."""
        state, items, pairs = (self.decode(node.get(part)) for part in _REDUCED)
        if state is not None and hasattr(thing, "__setstate__"):
            thing.__setstate__(state)
        elif state is not None:
            thing.__dict__.update(state)
        thing.extend(items) if items else None
        thing.update(pairs) if pairs else None
        require_sound(thing)
        return thing
