"""What an estimate of the class prior returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """Share of positives among the unlabelled rows, as a method computed it."""

    share: float
    interval: tuple[float, float] | None = None
    converged: bool = True
    evidence: Mapping[str, float] = field(default_factory=dict)
