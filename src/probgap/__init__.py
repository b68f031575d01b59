"""Classifiers from positive and unlabelled data, when labels are biased.

Some positives are labelled, the easy ones first; nothing is labelled negative.
"""

from __future__ import annotations

from importlib import import_module

# As typing has it, without the time to load that.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
    from probgap.reporting import report

__all__ = ["PGPUClassifier", "PGPUClassifierCV", "__version__", "report"]

__version__ = "0.3.0.dev0"


def _modules() -> list[str]:
    from pkgutil import iter_modules  # noqa: PLC0415 (slow)

    names = (module.name for module in iter_modules(__path__))
    return [name for name in names if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    # Loaded when first asked for, so that the command line starts without scikit-learn.
    if name in __all__:
        module = "reporting" if name == "report" else "pgpu"
        return getattr(import_module(f"probgap.{module}"), name)
    if name in _modules():
        return import_module(f"probgap.{name}")
    msg = f"module 'probgap' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted([*__all__, *_modules()])
