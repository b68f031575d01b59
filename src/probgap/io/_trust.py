"""Which classes and functions a model file may name."""

from dataclasses import is_dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.random import BitGenerator, SeedSequence
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix
from sklearn.base import BaseEstimator

from probgap.io._codec import CALL, NEW, VALUE

# What a file may call with arguments of its own: these make a value and do nothing else.
_MAKERS = {
    "builtins.frozenset",
    "builtins.set",
    "builtins.slice",
    "numpy.random._pickle.__bit_generator_ctor",
    "numpy.random._pickle.__generator_ctor",
    "numpy.random._pickle.__randomstate_ctor",
    "numpy.random.bit_generator.__pyx_unpickle_SeedSequence",
    "sklearn._loss._loss.CyHalfBinomialLoss",
    "sklearn.tree._tree.Tree",
}
# What is imported to judge a name: these packages, without their scripts and tests.
_PACKAGES = {"builtins", "numpy", "probgap", "scipy", "sklearn"}
_LEFT_OUT = {"__main__", "cli", "conftest", "datasets", "f2py", "testing", "tests"}
_KINDS = (BaseEstimator, csc_array, csc_matrix, csr_array, csr_matrix)
_TYPES = (bool, int, float, str, np.generic, BitGenerator, SeedSequence)
# Where scikit-learn has classes that its estimators hold and that are none themselves.
_HELPERS = (
    "sklearn._loss.",
    "sklearn.calibration.",
    "sklearn.compose._column_transformer.",
    "sklearn.ensemble._hist_gradient_boosting.",
    "sklearn.model_selection._split.",
    "sklearn.utils._bunch.",
)


def find(module: str, name: str) -> Any:
    """Return a class or function by its module and name."""
    return attrgetter(name)(import_module(module))


def is_trusted(role: str, module: str, name: str) -> bool:
    """Return whether a file may name this class or function, for this role.

    Objects may be made of estimators, of dataclasses and of what scikit-learn's estimators
    hold. Values may be types of numbers, functions of numpy and scipy for single numbers,
    and functions that a module of ours lists as ``IN_MODEL_FILES``.
    """
    package, *inner = module.split(".")
    if role == CALL:
        return f"{module}.{name}" in _MAKERS
    if package not in _PACKAGES or _LEFT_OUT.intersection(inner):
        return False
    try:
        thing = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return False
    if isinstance(thing, type):
        is_part = is_dataclass(thing) or f"{thing.__module__}.".startswith(_HELPERS)
        kinds = _TYPES if role == VALUE else _KINDS
        return issubclass(thing, kinds) or (role == NEW and is_part)
    listed = getattr(import_module(module), "IN_MODEL_FILES", ())
    return role == VALUE and (isinstance(thing, np.ufunc) or name in listed)
