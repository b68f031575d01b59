"""Data whose posterior is known, and labels hidden as the paper hides them."""

from probgap.datasets._labelling import (
    ConstantRate,
    InverseRate,
    LinearRate,
    hide_labels,
    paper_rates,
    platt_gap,
)
from probgap.datasets._synthetic import SyntheticData, make_square, make_triangles

__all__ = [
    "ConstantRate",
    "InverseRate",
    "LinearRate",
    "SyntheticData",
    "hide_labels",
    "make_square",
    "make_triangles",
    "paper_rates",
    "platt_gap",
]
