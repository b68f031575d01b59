"""The bytes of a table, from a path, standard input or a stream, and their text."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from probgap.tables._base import refuse

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

_GZIP = b"\x1f\x8b"
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
# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_BUFFER = 1 << 18
_LENIENT = "probgap.latin1"


class _Counted(io.RawIOBase):
    """A stream that is read in full blocks, counted and, if asked, hashed."""

    def __init__(self, stream: Any, *, hashed: bool = False) -> None:
        super().__init__()
        self._stream = stream
        self._hash = hashlib.sha256() if hashed else None
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled = 0
        while part := self._stream.read(len(buffer) - filled):
            if not isinstance(part, bytes):
                refuse(
                    "source must be a path or a stream of bytes. Got a stream of "
                    f"{type(part).__name__}; open it in binary mode."
                )
            buffer[filled : filled + len(part)] = part
            filled += len(part)
            if self._hash is not None:
                self._hash.update(part)
        self.bytes_read += filled
        return filled

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of all that came, if asked for."""
        while self.read(_BUFFER):
            pass
        return self._hash.hexdigest() if self._hash is not None else ""


class OpenSource:
    """The bytes of a source, unzipped if need be.

    ``path`` and ``n_bytes`` are known of files alone; ``counted`` are the bytes as they
    come, ``unzipped`` says that they were gzipped.
    """

    def __init__(self, source: Source, *, hashed: bool = False) -> None:
        self.path: Path | None = None
        self.n_bytes: int | None = None
        self._opened: BinaryIO | None = None
        self.counted = _Counted(self._open(source), hashed=hashed)
        self._stream = io.BufferedReader(self.counted, _BUFFER)
        try:
            self.unzipped = self.peek(2) == _GZIP
            if self.unzipped:
                unzip = _Counted(gzip.GzipFile(fileobj=self._stream))
                self._stream = io.BufferedReader(unzip, _BUFFER)
            self._refuse_other_formats()
        except BaseException:
            self.close()
            raise

    def _open(self, source: Source) -> BinaryIO:
        if isinstance(source, str) and source == "-":
            self.name = "standard input"
            if sys.stdin is None:
                refuse("standard input must be open. Got none; name a file, not -.")
            return sys.stdin.buffer
        if isinstance(source, str | os.PathLike):
            path = self.path = Path(os.fspath(source))
            self.name = path.name
            try:
                self._opened = path.open("rb")
                self.n_bytes = path.stat().st_size if path.is_file() else None
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                rule = "The table must be a file that can be read."
                refuse(f"{rule} Got {str(path)!r}: {why}.")
            return self._opened
        if not hasattr(source, "read"):
            kind = type(source).__name__
            refuse(f"source must be a path, '-' or a binary stream. Got {kind}.")
        self.name = Path(str(getattr(source, "name", "stream"))).name
        return source

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        with self._explained():
            return self._stream.read(size)

    def peek(self, size: int) -> bytes:
        """Return the first ``size`` bytes, a few at most, before any is read."""
        with self._explained():
            return self._stream.peek(size)[:size]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            refuse(
                f"{self.name} must be a whole gzip file. Got one that is cut off or "
                f"damaged ({str(error).rstrip('.')}); copy it again."
            )
        except OSError as error:
            refuse(f"{self.name} must be readable to its end. Got: {error}.")

    def _refuse_other_formats(self) -> None:
        head = self.peek(16)
        if self.unzipped and head.startswith(_GZIP):
            refuse(f"{self.name} must be gzipped at most once. Got gzip in gzip.")
        for magic, what in _OTHERS.items():
            if head.startswith(magic):
                refuse(
                    f"{self.name} must be CSV, TSV or Parquet, maybe gzipped. Got "
                    f"{what}; save the table as CSV or Parquet."
                )

    def close(self) -> None:
        """Close the file, if this object opened it."""
        if self._opened is not None:
            self._opened.close()


class TextBytes:
    """The text of a source as UTF-8 bytes, whatever its encoding was.

    A mark at the beginning says UTF-8, UTF-16 or UTF-32. Without one it is UTF-8, and
    bytes that are not are read as latin-1 (in the variant that Windows writes), one
    at a time: what a byte means never depends on how far one has read. ``note`` says how
    the text was read, where that was not plain UTF-8.
    """

    closed = False

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        self._ready = b""
        self.ended = False
        head = source.peek(4)
        mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
        source.read(len(mark))
        encoding = _MARKS.get(mark, "utf-8")
        self._wide = encoding != "utf-8"
        self.note = f"read as {encoding[:6].upper()}" if self._wide else ""
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")

    def read_text(self, size: int) -> str:
        """Return the text of up to ``size`` bytes; ``ended`` tells when there are none."""
        raw = self._source.read(size)
        self.ended = not raw
        text = self._decode(raw)
        if "\0" in text:
            refuse(
                f"{self._source.name} must be CSV, TSV or Parquet, maybe gzipped. Got "
                "bytes that are no text; save the table as CSV in UTF-8."
            )
        return text

    def unread(self, text: str) -> None:
        """Put text back, in front of what comes next."""
        self._ready = text.encode("utf-8")

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        while not self._ready and not self.ended:
            self._ready = self.read_text(max(size, 1)).encode("utf-8")
        part, self._ready = self._ready[:size], self._ready[size:]
        return part

    def _decode(self, raw: bytes) -> str:
        before = self._decoder.getstate()
        try:
            return self._decoder.decode(raw, final=self.ended)
        except UnicodeDecodeError as error:
            if self._wide:
                refuse(
                    f"{self._source.name} must be text in the encoding that its first "
                    f"bytes announce ({error.encoding}). Got bytes that are not; save "
                    "it as UTF-8."
                )
        codecs.register_error(_LENIENT, _as_latin1)
        self.note = "read as latin-1 where it is not UTF-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")(_LENIENT)
        self._decoder.setstate(before)
        return self._decoder.decode(raw, final=self.ended)


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    # Windows leaves five bytes without a meaning.
    text = byte.decode("cp1252", "ignore") or byte.decode("latin-1")
    return text, error.start + 1
