"""Data: drawn with their posterior, loaded from files, and labels hidden by a rate."""

from probgap.datasets._files import (
    BenchmarkData,
    DataFileError,
    TCDBData,
    load_benchmark,
    load_tcdb,
)
from probgap.datasets._labelling import (
    ConstantRate,
    InverseRate,
    LinearRate,
    hide_labels,
    paper_rates,
    platt_gap,
)
from probgap.datasets._synthetic import SyntheticData, make_square, make_triangles
from probgap.datasets._vectors import load_tcdb_vectors

__all__ = [
    "BenchmarkData",
    "ConstantRate",
    "DataFileError",
    "InverseRate",
    "LinearRate",
    "SyntheticData",
    "TCDBData",
    "hide_labels",
    "load_benchmark",
    "load_tcdb",
    "load_tcdb_vectors",
    "make_square",
    "make_triangles",
    "paper_rates",
    "platt_gap",
]
