"""Bytes to text: byte order marks, UTF-8, UTF-16 and what is neither."""

from __future__ import annotations

import codecs

from probgap._core.errors import InvalidInputError
from probgap.tables._source import OpenSource

_MARKS = (
    (codecs.BOM_UTF8, "utf-8", None),
    (codecs.BOM_UTF32_LE, "utf-32-le", "read as UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "read as UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "read as UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "read as UTF-16"),
)
_LENIENT = "probgap.latin1"


class TextBytes:
    """The text of a source as UTF-8 bytes, whatever its encoding was.

    A mark at the beginning says UTF-8, UTF-16 or UTF-32. Without one it is UTF-8, and
    bytes that are not are read as latin-1 (in the variant that Windows writes), one
    at a time: what a byte means never depends on how far one has read.

    Attributes
    ----------
    note : str or None
        How the text was read, where that was not plain UTF-8.
    """

    closed = False

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        self._ready = b""
        self._ended = False
        self.note: str | None = None
        head = source.peek(4)
        encoding = "utf-8"
        for mark, name, note in _MARKS:
            if head.startswith(mark):
                source.read(len(mark))
                encoding, self.note = name, note
                break
        self._wide = encoding != "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")

    def replace(self, head: bytes) -> None:
        """Put UTF-8 bytes in the place of those that ``head`` gave."""
        self._ready = head

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none at the end."""
        while not self._ready and not self._ended:
            self._ready = self._next(max(size, 1))
        part, self._ready = self._ready[:size], self._ready[size:]
        return part

    def head(self, size: int) -> bytes:
        """Give the first ``size`` bytes, or all there are, without taking them."""
        while len(self._ready) < size and not self._ended:
            self._ready += self._next(size - len(self._ready))
        return self._ready

    @property
    def ended(self) -> bool:
        """Whether the source has no more bytes than those at hand."""
        return self._ended

    def _next(self, size: int) -> bytes:
        raw = self._source.read(size)
        self._ended = not raw
        text = self._decode(raw)
        if "\0" in text:
            msg = (
                f"{self._source.name} must be CSV, TSV or Parquet, maybe gzipped. Got "
                "bytes that are no text; save the table as CSV in UTF-8."
            )
            raise InvalidInputError(msg)
        return text.encode("utf-8")

    def _decode(self, raw: bytes) -> str:
        before = self._decoder.getstate()
        try:
            return self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            if self._wide:
                msg = (
                    f"{self._source.name} must be text in the encoding that its first "
                    f"bytes announce ({error.encoding}). Got bytes that are not; save "
                    "it as UTF-8."
                )
                raise InvalidInputError(msg) from error
        codecs.register_error(_LENIENT, _as_latin1)
        self.note = "read as latin-1 where it is not UTF-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")(_LENIENT)
        self._decoder.setstate(before)
        return self._decoder.decode(raw, final=self._ended)


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    try:
        return byte.decode("cp1252"), error.start + 1
    except UnicodeDecodeError:
        return byte.decode("latin-1"), error.start + 1
