"""The bytes of a table, from a path, standard input or a stream."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from probgap.tables._base import refuse

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

_GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
# Formats that are not read, by their first bytes.
_OTHERS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
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

    ``n_bytes`` is the size of a file, None for anything else; ``counted`` the stream before
    it is unzipped; ``notes`` tell how it is read, where there was a choice.
    """

    def __init__(self, source: Source) -> None:
        self.n_bytes: int | None = None
        self.notes: list[str] = []
        self._path: Path | None = None
        self._opened = ExitStack()
        with ExitStack() as on_error:
            on_error.callback(self.close)
            stream = self._open(source)
            self._digest = hashlib.sha256()
            self.counted = _Blocks(stream, self.name, self._digest)
            self.stream = io.BufferedReader(self.counted, _BUFFER)
            self.unzipped = self.peek(2) == _GZIP
            if self.unzipped:
                self.note("gzipped")
                unzip = _Blocks(gzip.GzipFile(fileobj=self.stream), self.name)
                self.stream = io.BufferedReader(unzip, _BUFFER)
            self._refuse_other_formats()
            on_error.pop_all()

    def _open(self, source: Source) -> BinaryIO:
        if isinstance(source, str) and source == "-":
            self.name = "standard input"
            if sys.stdin is None:
                refuse("Standard input is closed; name a file, not -.")
            return sys.stdin.buffer
        if isinstance(source, str | os.PathLike):
            path = self._path = Path(os.fspath(source))
            self.name = path.name
            try:
                stream = self._opened.enter_context(path.open("rb"))
                self.n_bytes = path.stat().st_size if path.is_file() else None
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                refuse(f"Cannot read the table {str(path)!r}: {why}.")
            return stream
        if not hasattr(source, "read"):
            kind = type(source).__name__
            refuse(f"source must be a path, '-' or a binary stream. Got {kind}.")
        self.name = Path(str(getattr(source, "name", "stream"))).name
        return source

    def _refuse_other_formats(self) -> None:
        head = self.peek(16)
        if self.unzipped and head.startswith(_GZIP):
            refuse(f"{self.name} is gzipped twice; unzip it once.")
        for magic, what in _OTHERS.items():
            if head.startswith(magic):
                self.refuse_format(what)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def refuse_format(self, what: str) -> NoReturn:
        """Raise an error about a file that is no table."""
        refuse(
            f"{self.name} is {what}, not a CSV, TSV or Parquet file; save the table as "
            "CSV in UTF-8, or as Parquet."
        )

    def peek(self, size: int) -> bytes:
        """Return the first ``size`` bytes, a few at most, before any is read."""
        return self.stream.peek(size)[:size]

    def as_file(self) -> Any:
        """Return the path of a plain file, and of anything else a temporary copy."""
        if self.n_bytes is not None and not self.unzipped:
            return self._path
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - see close
        self._opened.callback(copy.close)
        shutil.copyfileobj(self.stream, copy)
        copy.seek(0)
        return copy

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of the bytes as they came."""
        while self.counted.read(_BUFFER):
            pass
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close what this object opened."""
        self._opened.close()
