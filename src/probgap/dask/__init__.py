"""Fits on dask arrays and dataframes, for tables larger than memory."""

from probgap.dask._classifier import PGPUClassifier
from probgap.dask.parquet import read_parquet

__all__ = ["PGPUClassifier", "read_parquet"]
