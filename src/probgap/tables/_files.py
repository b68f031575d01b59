"""Tables in several files: a folder, or a pattern of names."""

from __future__ import annotations

import glob
from pathlib import Path

from probgap._core.errors import InvalidInputError
from probgap.tables._optional import load


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
        The files, in the order of their names; of several, those that hold rows.

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
    # Other tools write files without rows beside those that have some.
    files = [file for file in files if _may_hold_rows(file)] or files
    if not files:
        msg = f"The table must be a file, or a folder or pattern that names Parquet files. Got {source!r}, which names none."
        raise InvalidInputError(msg)
    return files


def _may_hold_rows(file: str) -> bool:
    pa, pq = load("pyarrow"), load("pyarrow.parquet")
    try:
        return int(pq.read_metadata(file).num_rows) > 0
    except (pa.ArrowException, OSError):
        return True  # what it is will be seen when it is read
