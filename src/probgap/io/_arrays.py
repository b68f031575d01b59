"""Arrays inside a model file: as large as they say, and not compressed."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np

from probgap._core.errors import ModelFileError

_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def store_plainly(content: bytes) -> bytes:
    """Write an npz, the form of sparse matrices, without compression."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target,
    ):
        for name in source.namelist():
            target.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), source.read(name)
            )
    return buffer.getvalue()


def clear_padding(content: bytes) -> bytes:
    """Write an npy with zeros between its fields, where memory holds anything."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        return content
    dtype = _READERS[version](stream)[2]
    if dtype.names is None:
        return content
    start = stream.tell()
    found = np.frombuffer(content, dtype, offset=start)
    clean = np.zeros(found.size, dtype)  # zeros_like would leave the room as it is
    for name in dtype.names:
        clean[name] = found[name]
    return content[:start] + clean.tobytes()


def require_honest_arrays(name: str, content: bytes) -> None:
    """Refuse an array whose header claims other than what follows it."""
    try:
        if name.endswith(".npy"):
            _require_honest(name, content)
        elif name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                entries = inner.infolist()
                plain = all(e.compress_type == zipfile.ZIP_STORED for e in entries)
                if not plain or sum(e.file_size for e in entries) > len(content):
                    msg = f"its part {name} is compressed"
                    raise ModelFileError(msg)
                for entry in entries:
                    _require_honest(f"{name}/{entry.filename}", inner.read(entry))
    except (ValueError, zipfile.BadZipFile, EOFError, RuntimeError, OSError) as error:
        if isinstance(error, ModelFileError):
            raise
        msg = f"its part {name} is no array ({error})"
        raise ModelFileError(msg) from error


def _require_honest(name: str, content: bytes) -> None:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        msg = f"its part {name} is an array of format {version}"
        raise ModelFileError(msg)
    shape, _, dtype = _READERS[version](stream)
    held = len(content) - stream.tell()
    claimed = math.prod(shape) * dtype.itemsize
    hollow = math.prod(shape) > 0 and claimed == 0
    if dtype.hasobject or hollow or claimed != held or min(shape, default=0) < 0:
        msg = (
            f"its part {name} claims an array of shape {shape} and type {dtype}, "
            f"{claimed} bytes, and has {held}"
        )
        raise ModelFileError(msg)
