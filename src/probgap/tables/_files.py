"""Tables in several files: a folder, or a pattern of names."""

from __future__ import annotations

import glob
from pathlib import Path

from probgap._core.errors import InvalidInputError


def find_tables(source: str) -> list[str]:
    """Find the files of a table.

    Parameters
    ----------
    source : str
        A folder, whose Parquet files are meant; a pattern such as
        ``"data/*.parquet"``; or anything else, which is taken for one file.

    Returns
    -------
    list of str
        The files, in the order of their names.

    Raises
    ------
    InvalidInputError
        If a folder or a pattern names no file.

    Examples
    --------
    >>> from probgap.tables import find_tables
    >>> find_tables("cases.csv")
    ['cases.csv']
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(str(file) for file in path.glob("*.parquet"))
    elif glob.has_magic(source) and not path.exists():
        found = glob.glob(source)  # noqa: PTH207 (a pattern may be absolute)
        files = sorted(file for file in found if Path(file).is_file())
    else:
        return [source]
    if not files:
        msg = f"The table must be a file, or a folder or pattern that names Parquet files. Got {source!r}, which names none."
        raise InvalidInputError(msg)
    return files
