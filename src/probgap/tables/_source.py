"""Where the bytes of a table come from: a path, standard input or a stream."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from probgap._core.errors import InvalidInputError

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
# Files that people take for tables, by how they begin.
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


class CountingBytes(io.RawIOBase):
    """A stream that counts what was read of it and, if asked, takes its SHA-256."""

    def __init__(self, stream: BinaryIO, *, hashed: bool) -> None:
        super().__init__()
        self._stream = stream
        self._hash = hashlib.sha256() if hashed else None
        self.bytes_read = 0

    def readable(self) -> bool:
        """Say that one can read from here."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the stream."""
        part = self._stream.read(len(buffer))
        if not isinstance(part, bytes):
            msg = (
                "source must be a path or a stream of bytes. Got a stream of "
                f"{type(part).__name__}; open it in binary mode."
            )
            raise InvalidInputError(msg)
        buffer[: len(part)] = part
        self.bytes_read += len(part)
        if self._hash is not None:
            self._hash.update(part)
        return len(part)

    def finish(self) -> str:
        """Read to the end and give the SHA-256 of all that came."""
        while self.read(1 << 20):
            pass
        return self._hash.hexdigest() if self._hash is not None else ""


class OpenSource:
    """The bytes of a source, unzipped if need be, with their beginning at hand.

    Attributes
    ----------
    name : str
        The file's name, or "standard input" or "stream".
    path : Path or None
        The file, where there is one.
    n_bytes : int or None
        Size of the file as it lies on disk, where that is known.
    counted : CountingBytes
        The raw bytes.
    unzipped : bool
        Whether the bytes were gzipped.
    """

    def __init__(self, source: Source, *, hashed: bool = False) -> None:
        self.path: Path | None = None
        self.n_bytes: int | None = None
        self._opened: BinaryIO | None = None
        raw = self._open(source)
        self.counted = CountingBytes(raw, hashed=hashed)
        self._buffered: Any = io.BufferedReader(self.counted, 1 << 18)
        self._pushed = b""
        self.unzipped = False
        try:
            self._unzip()
        except BaseException:
            self.close()
            raise

    def _unzip(self) -> None:
        while self.peek(2) == GZIP:
            if self.unzipped:
                msg = f"{self.name} must be gzipped at most once. Got gzip in gzip."
                raise InvalidInputError(msg)
            head, self._pushed = self._pushed, b""
            self._buffered = gzip.GzipFile(fileobj=_Joined(head, self._buffered))
            self.unzipped = True

    def _open(self, source: Source) -> BinaryIO:
        if isinstance(source, str) and source == "-":
            self.name = "standard input"
            if sys.stdin is None:
                msg = "standard input must be open. Got none; name a file instead of -."
                raise InvalidInputError(msg)
            return sys.stdin.buffer
        if isinstance(source, str | os.PathLike):
            return self._open_path(source)
        if not hasattr(source, "read"):
            msg = (
                "source must be a path, '-' or a binary stream. Got "
                f"{type(source).__name__}."
            )
            raise InvalidInputError(msg)
        self.name = Path(str(getattr(source, "name", "stream"))).name
        return source

    def _open_path(self, source: str | os.PathLike[str]) -> BinaryIO:
        path = Path(os.fspath(source))
        self.name = path.name
        try:
            self._opened = path.open("rb")
            self.n_bytes = path.stat().st_size if path.is_file() else None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            msg = f"The table must be a file that can be read. Got {str(path)!r}: "
            raise InvalidInputError(msg + f"{reason}.") from error
        self.path = path
        return self._opened

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes, unzipped."""
        if self._pushed:
            part, self._pushed = self._pushed[:size], self._pushed[size:]
            return part
        try:
            return self._buffered.read(size) or b""
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            msg = (
                f"{self.name} must be a whole gzip file. Got one that is cut off or "
                f"damaged ({str(error).rstrip('.')}); copy it again."
            )
            raise InvalidInputError(msg) from error
        except OSError as error:
            msg = f"{self.name} must be readable to its end. Got: {error}."
            raise InvalidInputError(msg) from error

    def peek(self, size: int) -> bytes:
        """Give the next ``size`` bytes, or all there are, without taking them."""
        parts = [self._pushed]
        have, self._pushed = len(self._pushed), b""
        while have < size and (part := self.read(size - have)):
            parts.append(part)
            have += len(part)
        self._pushed = b"".join(parts)
        return self._pushed[:size]

    def refuse_other_formats(self) -> None:
        """Raise if the bytes begin as something that is not a table."""
        head = self.peek(16)
        for magic, what in _OTHERS.items():
            if head.startswith(magic):
                msg = (
                    f"{self.name} must be CSV, TSV or Parquet, maybe gzipped. Got "
                    f"{what}; save the table as CSV or Parquet."
                )
                raise InvalidInputError(msg)

    def close(self) -> None:
        """Close the file, if this object opened it."""
        if self._opened is not None:
            self._opened.close()


class _Joined(io.RawIOBase):
    """Bytes that were read already, then the stream they came from."""

    def __init__(self, head: bytes, rest: Any) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Say that one can read from here."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the head, then with the rest."""
        part = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
