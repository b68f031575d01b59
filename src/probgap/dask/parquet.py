"""Parquet files as a dask dataframe whose blocks know where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from probgap._core.errors import InvalidInputError, load_library
from probgap.dask.blocks import SOURCE
from probgap.tables import RowGroups, find_tables, list_row_groups, read_row_groups


def read_parquet(
    paths: str | Sequence[str], *, columns: Sequence[str] | None = None
) -> Any:
    """Open Parquet files as a dask dataframe.

    It reads as ``dask.dataframe.read_parquet`` does, with dates as text. But small row
    groups are put together, up to 250,000 rows (large ones are not split), and blocks
    know which rows of which file they are: so a fit can name the one with a bad value.

    Parameters
    ----------
    paths : str or sequence of str
        Files, folders, or patterns such as ``"data/*.parquet"``, for every worker to
        read.
    columns : sequence of str, default=None
        Columns to read; all by default.

    Returns
    -------
    dask dataframe
        The rows of all files, in the order of their names.

    Examples
    --------
    >>> from probgap.dask import read_parquet
    >>> frame = read_parquet("data/*.parquet", columns=["x0", "flagged"])  # doctest: +SKIP
    """
    pieces, names = find_pieces(paths, columns)
    dd = load_library("dask.dataframe", extra="dask", purpose="Parquet in blocks")
    meta = read_piece(pieces[0], names).iloc[:0]
    # What is selected from it later is all that is read: dask hands it on as columns.
    return dd.from_map(read_piece, pieces, columns=names, meta=meta)


def find_pieces(
    paths: str | Sequence[str], columns: Sequence[str] | None
) -> tuple[list[RowGroups], tuple[str, ...]]:
    """List the pieces of all files, and the columns that are wanted of each."""
    given = [paths] if isinstance(paths, str) else list(paths)
    pieces: list[RowGroups] = []
    names = () if columns is None else tuple(columns)
    for file in (file for path in given for file in find_tables(path, text=False)):
        found, of_file = list_row_groups(file)
        names = names or of_file
        missing = [name for name in names if name not in of_file]
        if missing:
            msg = f"{file} has no column {missing[0]!r}; all files must have it."
            raise InvalidInputError(msg)
        pieces += found
    return pieces, names


def read_piece(piece: RowGroups, columns: Sequence[str]) -> Any:
    """Read a piece, and let it know where it comes from."""
    return mark_source(read_row_groups(piece, list(columns)), piece)


def mark_source(frame: Any, piece: RowGroups) -> Any:
    """Let a block know where it comes from."""
    frame.attrs[SOURCE] = (piece.file, piece.first)
    return frame


def map_pieces(
    function: Callable[..., Any], pieces: list[RowGroups], *arguments: Any
) -> Any:
    """Return a dask dataframe of what a function makes of each piece."""
    dd = load_library("dask.dataframe", extra="dask", purpose="Parquet in blocks")
    meta = function(pieces[0], *arguments).iloc[:0]
    return dd.from_map(function, pieces, args=arguments, meta=meta)
