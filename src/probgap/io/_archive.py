"""The zip around a model: a header with digests, a plan, and arrays.

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
    return write_zip({HEADER: header.encode(), **members})


def write_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a zip without compression or times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def read_zip(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip, if it claims no more than it holds."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if len({entry.filename for entry in entries}) != len(entries):
            refuse("two of its parts have the same name")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                refuse(f"its part {entry.filename} is compressed or encrypted")
        if min((entry.header_offset for entry in entries), default=1) != 0:
            refuse("it has data before its first part")
        if sum(entry.file_size for entry in entries) > len(data):
            refuse("its parts claim to be larger than the file")
        return {entry.filename: archive.read(entry) for entry in entries}


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header and all other members, each checked against its digest."""
    if not data:
        refuse("it is empty")
    if data[:1] == b"\x80" and data[1:2] <= b"\x05":
        refuse("it is a pickle, which can run any code when it is loaded")
    if data[:4] != b"PK\x03\x04":
        refuse("it is not a model file")
    if data[-_END_BYTES:][:4] != b"PK\x05\x06":
        refuse("its end is missing, or something was added: it is truncated or altered")
    members = read_zip(data)
    for name in members:
        if name not in (HEADER, SCHEMA) and not _MEMBER.fullmatch(name):
            refuse(f"it has an unknown part {name[:80]!r}")
    if HEADER not in members or SCHEMA not in members:
        refuse("it is a zip without a model of probgap in it")
    header = json.loads(members.pop(HEADER))
    _require_sound(header)
    if set(header["sha256"]) != set(members):
        refuse("it lists other parts than it has: it was altered")
    for name, content in members.items():
        if hashlib.sha256(content).hexdigest() != header["sha256"][name]:
            refuse(f"the SHA-256 of its part {name} differs: it was damaged or altered")
    return header, members


def _require_sound(header: Any) -> None:
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is not int or number < 1:
        refuse("its header has no format number")
    for key in ("versions", "metadata", "sha256"):
        if not isinstance(header.get(key), dict):
            refuse(f"its header has no {key}")
    if number > FORMAT:
        written = str(header["versions"].get("probgap"))[:40]
        refuse(
            f"it has format {number}, of probgap {written}; this version reads formats "
            f"up to {FORMAT}. Upgrade probgap to read it"
        )


def normalise_array(name: str, content: bytes) -> bytes:
    """Return an array that skops wrote without compression, with zeros as padding."""
    if name.endswith(".npz"):  # the form of sparse matrices
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            return write_zip({inner: source.read(inner) for inner in source.namelist()})
    if not name.endswith(".npy"):
        return content
    start, shape, dtype = _read_array_header(name, content)
    if dtype.names is None:
        return content
    found = np.frombuffer(content, dtype, offset=start)
    clean = np.zeros(math.prod(shape), dtype)
    for field in dtype.names:
        clean[field] = found[field]
    return content[:start] + clean.tobytes()


def check_array_size(name: str, content: bytes) -> None:
    """Refuse an array whose header claims another size than its data have."""
    arrays = {name: content} if name.endswith(".npy") else {}
    if name.endswith(".npz"):
        arrays = {f"{name}/{part}": data for part, data in read_zip(content).items()}
    for part, data in arrays.items():
        start, shape, dtype = _read_array_header(part, data)
        n_bytes = len(data) - start
        claimed = math.prod(shape) * dtype.itemsize
        hollow = math.prod(shape) > 0 and claimed == 0
        if dtype.hasobject or hollow or claimed != n_bytes or min(shape, default=0) < 0:
            refuse(
                f"its part {part} claims an array of shape {shape} and type {dtype}, "
                f"{claimed} bytes, but has {n_bytes}"
            )


def _read_array_header(
    name: str, content: bytes
) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
    """Return where the values of an array begin, its shape and its type."""
    stream = io.BytesIO(content)
    try:
        shape, _, dtype = _READERS[np.lib.format.read_magic(stream)](stream)
    except (KeyError, ValueError) as error:
        refuse(f"its part {name} is not an array that probgap reads ({error})", error)
    return stream.tell(), shape, dtype
