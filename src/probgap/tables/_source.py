"""The bytes of a table, from a path, standard input or a stream."""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from probgap._core.errors import InvalidInputError, ProbgapError, refuse
from probgap.tables._cells import pa, pq

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
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
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


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
    files = [file for file in files if _may_hold_rows(file)] or files
    if not files:
        refuse(f"The folder or pattern {source!r} has no CSV or Parquet files.")
    return files


def _is_text(file: Path) -> bool:
    hidden = file.name.startswith((".", "_"))
    return file.is_file() and file.name.lower().endswith(_TEXT) and not hidden


def _may_hold_rows(file: str) -> bool:
    try:
        with closing(OpenSource(file)) as source:
            if source.begins_with(PARQUET):
                return int(pq.read_metadata(file).num_rows) > 0
            return b"\n" in source.stream.read(_BUFFER).strip().replace(b"\r", b"\n")
    except (pa.ArrowException, OSError, InvalidInputError):
        return True  # reported when it is read


def join_digests(digests: Sequence[str]) -> str:
    """Return the SHA-256 of a file, or of those of several files in their order."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


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


class OpenSource:
    """The bytes of a source, unzipped if need be, as ``stream``.

    ``name`` is that of the file, ``n_bytes`` its size, None if it is not a file,
    ``counted`` the stream before it is unzipped, and ``notes`` tell how it is read, where
    there was a choice.
    """

    def __init__(self, source: Source) -> None:
        self.name = "standard input"
        self.n_bytes: int | None = None
        self.notes: tuple[str, ...] = ()
        self._path: Path | None = None
        self._opened = ExitStack()
        with self._opened as opened:  # closed on error
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
            self._opened = opened.pop_all()

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
        self.on_close(copy.close)
        shutil.copyfileobj(self.stream, copy)
        copy.seek(0)
        return copy

    def on_close(self, function: Callable[[], object]) -> None:
        """Call a function before the file is closed."""
        self._opened.callback(function)

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of the file."""
        while self.counted.read(_BUFFER):
            pass
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file and remove what was needed to read it."""
        self._opened.close()
