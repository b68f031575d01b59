"""Results as plain Python, for pages and for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def as_plain(value: Any) -> Any:
    """Turn numpy into Python, dataclasses into dicts, and what is not finite into None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, np.generic):
        return as_plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
