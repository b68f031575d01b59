"""Write tables: CSV that a spreadsheet can open without harm, or Parquet in pieces."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from probgap._core.errors import refuse
from probgap.tables._cells import (
    NUMBER,
    Frame,
    Series,
    is_number_typed,
    pa,
    pc,
    pd,
    pq,
    to_cells,
)

Target: TypeAlias = str | os.PathLike[str] | Any

# How cells begin that a spreadsheet takes for a formula.
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(frame: Frame, path_or_stream: Target, *, header: bool = True) -> None:
    r"""Write a table as CSV: RFC 4180, UTF-8, without the index.

    Spreadsheets take a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula
    and run it. A cell of text, or a name of a column, that begins with one of these, a
    tab or a carriage return therefore gets an apostrophe in front, unless it is a plain
    number such as ``-1.5``. Numbers are written so that they read back as the same
    numbers; a missing cell is empty.
    """
    if isinstance(path_or_stream, str | os.PathLike):
        path = Path(path_or_stream)
        try:
            with path.open("w", encoding="utf-8", newline="") as stream:
                write_csv(frame, stream, header=header)
        except OSError as error:
            refuse(f"Cannot write {str(path)!r}: {error.strerror}.")
        return
    columns = [_harmless(frame.iloc[:, at]) for at in range(frame.shape[1])]
    safe = pd.DataFrame(dict(enumerate(columns)), index=frame.index)
    names = [
        f"'{name}" if str(name).startswith(_DANGEROUS) else str(name)
        for name in frame.columns
    ]
    safe.to_csv(
        path_or_stream,
        mode="w" if hasattr(path_or_stream, "encoding") else "wb",
        index=False,
        header=names if header else False,
        lineterminator="\r\n",
    )


def _harmless(column: Series) -> Series:
    if column.dtype.kind in "biuf":
        return column
    cells = to_cells(column)
    if is_number_typed(cells):
        return column
    risky = pc.fill_null(pc.match_substring_regex(cells, r"^[=+\-@\t\r]"), False)
    if pc.any(risky).as_py():
        risky = pc.and_not(risky, pc.match_substring_regex(cells, NUMBER))
        quoted = pc.replace_substring_regex(cells, "^", "'", max_replacements=1)
        cells = pc.if_else(risky, quoted, cells)
    return pd.Series(cells.to_pylist(), index=column.index, dtype=object)


@contextmanager
def append_parquet(
    stream: Any, metadata: Callable[[], dict[str, str]] = dict
) -> Iterator[Callable[[Frame], None]]:
    """Yield a function that writes frames to a Parquet file, one after the other.

    The first decides the types of the columns; anything but numbers becomes text. What
    ``metadata`` returns at the end is stored in the file.
    """
    writer: Any = None

    def write(frame: Frame) -> None:
        nonlocal writer
        rows = pa.table({str(name): _plain(frame[name]) for name in frame.columns})
        if writer is None:
            writer = pq.ParquetWriter(stream, rows.schema)
        try:
            writer.write_table(rows.cast(writer.schema))
        except pa.ArrowException as error:
            refuse(f"Later rows do not have the column types of the first: {error}.")

    try:
        yield write
    finally:
        if writer is not None:
            writer.add_key_value_metadata(metadata())
            writer.close()


def _plain(column: Series) -> Any:
    if column.dtype.kind in "biuf":
        return pa.array(column.to_numpy())
    return to_cells(column).cast(pa.string())
