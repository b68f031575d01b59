"""Read tables: whole, or a chunk of rows at a time."""

import glob
import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self, TypeAlias

import numpy as np

from probgap._core.errors import InvalidInputError, ProbgapError, refuse
from probgap._core.types import Vector
from probgap.tables._cells import (
    EmptyTableError,
    Frame,
    check_columns,
    listed,
    pd,
    to_frame,
)
from probgap.tables._csv import CsvRows
from probgap.tables._excel import ExcelRows
from probgap.tables._parquet import ParquetRows

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
# Formats that are not read, by their first bytes.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook, or one with a password",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow (Feather) file",
    b"\x89PNG": "a picture",
}
_BUFFER = 1 << 18
_CHUNK_BYTES = 1 << 26
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was read, and what is known of its file.

    Attributes
    ----------
    frame : DataFrame
        The rows. Cells of a CSV file are text, as they stand in the file, and missing
        where they are empty; columns of a Parquet file are numbers, booleans or text.
    name : str
        Name of the file; of several, that of their folder or their pattern.
    path : str
        The path or pattern, absolute; "-" for standard input, "" for a stream.
    sha256 : str
        Of the file's bytes; of several files, of their digests one after the other.
    notes : tuple of str
        How the file was read, where there was a choice.
    files : tuple of str
        The files, where there are several.
    weight : ndarray or None
        How many rows each represents, where they were drawn from a larger table.
    """

    frame: Frame
    name: str
    path: str
    sha256: str
    notes: tuple[str, ...]
    files: tuple[str, ...] = ()
    weight: Vector | None = None


def read_table(source: Source) -> Table:
    r"""Read a whole table from CSV, TSV, Parquet or Excel, maybe gzipped.

    What the file is shows in its first bytes, not in its name. The delimiter is the
    one of comma, semicolon, tab and bar that cuts most lines into as many cells as the
    header; in a file named ``.tsv`` it is the tab. Of an Excel workbook (``.xlsx``, with
    the extra ``excel``) the first sheet is read. Of several files, the rows follow each
    other in the order of the files' names; all need the columns of the first. Text is
    UTF-8, or UTF-16 with a mark; other bytes are read as latin-1, with
    a note. Which columns hold numbers is decided by :func:`plan_columns`, so that it
    never depends on how a file is read. A file that is no table is refused with an
    ``InvalidInputError`` that says why.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file, a folder of Parquet or else of CSV and TSV files, or a pattern such as
        ``"data/*.csv"``; "-" is standard input.

    Returns
    -------
    Table
        The rows as a DataFrame, the file's name and SHA-256, and notes.

    Examples
    --------
    >>> import io
    >>> from probgap.tables import read_table
    >>> table = read_table(io.BytesIO(b"size;fraud\n3,5;yes\n2;\n"))
    >>> table.frame["size"].tolist()
    ['3.5', '2']
    >>> table.notes
    ('semicolon separated', 'decimal commas read as points')
    """
    files: list[Any] = [source]
    if isinstance(source, str | os.PathLike):
        files = list(find_tables(os.fspath(source)))
    frames: list[Frame] = []
    digests: list[str] = []
    notes: dict[str, None] = {}
    for file in files:
        columns = frames[0].columns if frames else None
        with TableReader(file, columns=columns) as reader:
            frames.append(to_frame(list(reader.batches()), start=0))
            digests.append(reader.finish())
            notes |= dict.fromkeys(reader.notes)
            if others := set(reader.columns).difference(frames[0].columns):
                more = listed(sorted(others))
                notes |= {f"left out of {reader.name}, not in all files: {more}": None}
    path = path_of(source)
    if len(files) == 1:
        return Table(frames[0], reader.name, path, digests[0], tuple(notes))
    frame = pd.concat(frames, ignore_index=True)
    name, every = Path(str(source)).name or str(source), tuple(map(str, files))
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()
    return Table(frame, name, path, digest, tuple(notes), every)


def path_of(source: Source) -> str:
    """Return where a table is, absolute; "-" is standard input, "" a stream."""
    if not isinstance(source, str | os.PathLike):
        return ""
    return "-" if source == "-" else str(Path(source).absolute())


def ids_of(frame: Frame, column: str | None) -> Any:
    """Return the user's names of the rows; None where no column holds them."""
    if column is None:
        return np.full(len(frame), None)
    return frame[column].astype("string").fillna("").to_numpy(dtype=object)


def find_tables(source: str) -> list[str]:
    """Return the files of a folder of Parquet or CSV files, of a pattern, or of one file.

    They are in the order of their names; of several, those that hold rows. Of a folder
    with Parquet files, these alone are taken.
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(str(file) for file in path.glob("*.parquet"))
        files = files or sorted(map(str, filter(_is_text, path.iterdir())))
    elif glob.has_magic(source) and not path.exists():
        found = glob.glob(source)  # noqa: PTH207 (a pattern may be absolute)
        files = sorted(file for file in found if Path(file).is_file())
    else:
        return [source]
    # Other tools write files without rows beside those that have some.
    files = [file for file in files if not _is_empty(file)] or files
    if not files:
        refuse(f"The folder or pattern {source!r} has no CSV or Parquet files.")
    return files


def _is_text(file: Path) -> bool:
    hidden = file.name.startswith((".", "_"))
    return file.is_file() and file.name.lower().endswith(_TEXT) and not hidden


def _is_empty(file: str) -> bool:
    try:
        TableReader(file).close()
    except EmptyTableError:
        return True
    except InvalidInputError:
        pass  # reported when it is read
    return False


class _Blocks(io.RawIOBase):
    """A stream that is read in full blocks, counts its bytes and updates a digest."""

    def __init__(self, stream: Any, name: str, digest: Any = None) -> None:
        super().__init__()
        self._stream, self._name, self._digest = stream, name, digest
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled = 0
        try:
            while part := self._stream.read(len(buffer) - filled):
                if not isinstance(part, bytes):
                    refuse(
                        "source must be a path or a stream of bytes. Got a stream of "
                        f"{type(part).__name__}; open it in binary mode."
                    )
                buffer[filled : filled + len(part)] = part
                filled += len(part)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            refuse(
                f"{self._name} is a truncated or damaged gzip file "
                f"({str(error).rstrip('.')}); copy it again."
            )
        except OSError as error:
            refuse(f"Cannot read {self._name} to its end: {error}.")
        self.bytes_read += filled
        if self._digest is not None:
            self._digest.update(buffer[:filled])
        return filled


class TableReader:
    """An open table: a context manager and an iterator of DataFrames, chunk by chunk.

    Memory is bounded by the chunk, whatever the size of the file: a chunk ends after
    ``chunk_rows`` rows or 64 MB of cells, whichever comes first, and a CSV file is read
    64 MB ahead at most. Cells are those of :func:`read_table`; rows are indexed from 0.

    ``name`` is that of the file, ``columns`` has the names of all its columns, ``n_bytes``
    its size, None if it is not a file, and ``notes`` tell how it is read, where there was
    a choice. ``stream`` has its bytes, unzipped if need be, and ``counted`` those of the
    file itself.
    """

    def __init__(
        self,
        source: Source,
        *,
        chunk_rows: int = 50_000,
        columns: Iterable[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> None:
        _ = pd.DataFrame  # a missing library is named before the file is opened
        self._chunk_rows, self._groups = chunk_rows, groups
        self.name = "standard input"
        self.n_bytes: int | None = None
        self.notes: tuple[str, ...] = ()
        self._path: Path | None = None
        self._opened = ExitStack()
        with self._opened as opened:  # closed on error
            self._open_stream(source)
            self._rows = self._open_rows()
            self.columns = self._rows.columns
            self.select(self.columns if columns is None else columns)
            self._opened = opened.pop_all()

    def _open_stream(self, source: Source) -> None:
        stream, self._digest = self._open(source), hashlib.sha256()
        self.counted = _Blocks(stream, self.name, self._digest)
        self.stream = io.BufferedReader(self.counted, _BUFFER)
        if self.begins_with(_GZIP):
            self.note("gzipped")
            self._path = None
            unzipped = _Blocks(gzip.GzipFile(fileobj=self.stream), self.name)
            self.stream = io.BufferedReader(unzipped, _BUFFER)
            if self.begins_with(_GZIP):
                refuse(f"{self.name} is gzipped twice; unzip it once.")
        for magic, what in _OTHERS.items():
            if self.begins_with(magic):
                self.refuse_format(what)

    def _open_rows(self) -> CsvRows | ExcelRows | ParquetRows:
        if self.begins_with(_PARQUET):
            return ParquetRows(self)
        return (ExcelRows if self.begins_with(_ZIP) else CsvRows)(self)

    def _open(self, source: Source) -> BinaryIO:
        if isinstance(source, str) and source == "-":
            if sys.stdin is None:
                refuse("Standard input is closed; name a file, not -.")
            return sys.stdin.buffer
        if isinstance(source, str | os.PathLike):
            path = Path(os.fspath(source))
            self.name = path.name
            try:
                stream = self._opened.enter_context(path.open("rb"))
                if path.is_file():
                    self._path, self.n_bytes = path, path.stat().st_size
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                refuse(f"Cannot read the table {str(path)!r}: {why}.")
            return stream
        if not hasattr(source, "read"):
            kind = type(source).__name__
            refuse(f"source must be a path, '-' or a binary stream. Got {kind}.")
        self.name = Path(str(getattr(source, "name", "stream"))).name
        return source

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes += (text,)

    def refuse_format(self, what: str) -> NoReturn:
        """Raise an error about a file that is no table."""
        refuse(
            f"{self.name} is {what}, not a CSV, TSV, Parquet or Excel file; save the "
            "table as CSV in UTF-8, or as Parquet."
        )

    @contextmanager
    def explaining(self, kind: str, *errors: type[Exception]) -> Iterator[None]:
        """Name the file and its kind where a library cannot read it."""
        try:
            yield
        except ProbgapError:
            raise
        except errors as error:
            what = " ".join(str(error).split()).rstrip(".")[:160]
            refuse(f"{self.name} is a {kind}: {what}.")

    def begins_with(self, magic: bytes) -> bool:
        """Return whether the first bytes are these, before any is read."""
        return self.stream.peek(len(magic)).startswith(magic)

    def as_file(self) -> Any:
        """Return the path of a plain file, and of anything else a temporary copy."""
        if self._path is not None:
            return self._path
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the source)
        self._opened.callback(copy.close)
        shutil.copyfileobj(self.stream, copy)
        copy.seek(0)
        return copy

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of the file."""
        while self.counted.read(_BUFFER):
            pass
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file and remove what was needed to read it."""
        self._opened.close()

    def select(self, columns: Iterable[str]) -> None:
        """Read these columns alone, in this order, from now on."""
        self._wanted = tuple(dict.fromkeys(columns))
        check_columns(self._wanted, self.columns, self.name)

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file were read so far."""
        return self.counted.bytes_read

    def groups(self, max_rows: int) -> list[list[int]] | None:
        """Return row groups that hold so many rows together; None if there are none."""
        if not isinstance(self._rows, ParquetRows):
            return None
        parts: list[list[int]] = []
        left = 0
        for group, size in enumerate(self._rows.group_sizes):
            if size > left:
                parts.append([])
                left = max_rows
            parts[-1].append(group)
            left -= size
        return parts

    def batches(self) -> Iterator[Any]:
        """Return the rows as Arrow batches, in the sizes in which they come."""
        rows: Any = self._rows
        some = () if self._groups is None else (self._groups,)
        return rows.batches(self._wanted, *some)

    def __iter__(self) -> Iterator[Frame]:
        start, waiting, rows, size = 0, [], 0, 0
        for batch in self.batches():
            at = 0
            while at < batch.num_rows:
                waiting.append(batch.slice(at, self._chunk_rows - rows))
                at += waiting[-1].num_rows
                rows += waiting[-1].num_rows
                size += waiting[-1].nbytes
                if rows >= self._chunk_rows or size >= _CHUNK_BYTES:
                    yield to_frame(waiting, start=start)
                    start, waiting, rows, size = start + rows, [], 0, 0
        if waiting:
            yield to_frame(waiting, start=start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
