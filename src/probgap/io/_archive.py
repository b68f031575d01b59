"""The file around a model: a zip of a header, a plan and arrays, with their digests.

Nothing is compressed, so a file never grows when it is read, and nothing depends on the
time: the same members make the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from probgap._core.errors import ModelFileError

FORMAT = 2
HEADER = "probgap.json"
SCHEMA = "schema.json"

_MEMBER = re.compile(r"[1-9][0-9]{0,17}\.(npy|npz|bin)")
_END_BYTES = 22  # of a zip without a comment
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def refuse(reason: str, cause: BaseException | None = None) -> NoReturn:
    """Refuse a file or a model."""
    raise ModelFileError(reason) from cause


def pack(members: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """Put members into a zip, and before them a header with their digests."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = json.dumps({"format": FORMAT, **about, "sha256": digests}, indent=1)
    return _zipped({HEADER: header.encode(), **members})


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header and all other members, each checked against its digest."""
    if not data:
        refuse("it is empty")
    if data[:1] == b"\x80" and data[1:2] <= b"\x05":
        refuse("it is a pickle, which could run anything when read")
    if data[:4] != b"PK\x03\x04":
        refuse("it is not a model file")
    if data[-_END_BYTES:][:4] != b"PK\x05\x06":
        refuse("its end is missing, or something was added: it was cut off or altered")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            _require_plain(listed, len(data))
            members = {entry.filename: archive.read(entry) for entry in listed}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        refuse(f"it is damaged ({error})", error)
    except (RuntimeError, OverflowError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        refuse(f"it is no plain zip ({error})", error)
    if HEADER not in members or SCHEMA not in members:
        refuse("it is a zip without a model of probgap in it")
    header = _read_header(members.pop(HEADER))
    if set(header["sha256"]) != set(members):
        refuse("it lists other parts than it has: it was altered")
    for name, content in members.items():
        if hashlib.sha256(content).hexdigest() != header["sha256"][name]:
            refuse(
                f"the part {name} does not have its SHA-256: it was damaged or altered"
            )
    return header, members


def _zipped(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def _require_plain(listed: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what ``pack`` never writes: odd names, compression, overlaps."""
    if len({entry.filename for entry in listed}) != len(listed):
        refuse("two of its parts have one name")
    for entry in listed:
        name = entry.filename
        if name not in (HEADER, SCHEMA) and not _MEMBER.fullmatch(name):
            refuse(f"it has a part by the name {name[:80]!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            refuse(f"its part {name} is compressed or encrypted")
    if min((entry.header_offset for entry in listed), default=1) != 0:
        refuse("something stands before its first part")
    if sum(entry.file_size for entry in listed) > size:
        refuse("its parts claim more room than the file has")


def _read_header(content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        refuse(f"its header is no JSON ({error})", error)
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is not int or number < 1:
        refuse("its header has no format number")
    if number > FORMAT:
        versions = header.get("versions")
        written = versions.get("probgap") if isinstance(versions, dict) else None
        refuse(
            f"it has format {number}, of probgap {str(written)[:40]}; this version reads "
            f"formats up to {FORMAT}. Upgrade probgap to read it"
        )
    for key in ("versions", "metadata", "sha256"):
        if not isinstance(header.get(key), dict):
            refuse(f"its header has no {key}")
    return header


def tidied(name: str, content: bytes) -> bytes:
    """Return an array of skops' without compression, and zeros between its fields."""
    if name.endswith(".npz"):  # the form of sparse matrices
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            return _zipped({inner: source.read(inner) for inner in source.namelist()})
    if not name.endswith(".npy"):
        return content
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    dtype = _READERS[version](stream)[2] if version in _READERS else np.dtype(float)
    if dtype.names is None:
        return content
    start = stream.tell()
    found = np.frombuffer(content, dtype, offset=start)
    clean = np.zeros(found.size, dtype)  # zeros_like would leave the room as it is
    for field in dtype.names:
        clean[field] = found[field]
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
                    refuse(f"its part {name} is compressed")
                for entry in entries:
                    _require_honest(f"{name}/{entry.filename}", inner.read(entry))
    except (ValueError, zipfile.BadZipFile, EOFError, RuntimeError, OSError) as error:
        if isinstance(error, ModelFileError):
            raise
        refuse(f"its part {name} is no array ({error})", error)


def _require_honest(name: str, content: bytes) -> None:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        refuse(f"its part {name} is an array of format {version}")
    shape, _, dtype = _READERS[version](stream)
    n_bytes = len(content) - stream.tell()
    claimed = math.prod(shape) * dtype.itemsize
    hollow = math.prod(shape) > 0 and claimed == 0
    if dtype.hasobject or hollow or claimed != n_bytes or min(shape, default=0) < 0:
        refuse(
            f"its part {name} claims an array of shape {shape} and type {dtype}, "
            f"{claimed} bytes, and has {n_bytes}"
        )
