"""The file around a model: a plain zip of few kinds of members, with their digests."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

from probgap._core.errors import ModelFileError

FORMAT = 1
HEADER = "probgap.json"
SCHEMA = "schema.json"

_MEMBER = re.compile(r"[1-9][0-9]{0,17}\.(npy|npz|bin)")
_END_BYTES = 22  # of a zip without a comment
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(members: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """Put members into a zip, and beside them what is known about them.

    Nothing is compressed, so a file never grows when it is read, and nothing depends on
    the time: the same members make the same bytes.
    """
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = json.dumps({"format": FORMAT, **about, "sha256": digests}, indent=1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {HEADER: header.encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return buffer.getvalue()


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Give the header and all other members, each checked against its digest."""
    header, members = _open(data)
    digests = header["sha256"]
    if set(digests) != set(members):
        msg = "it lists other parts than it has: it was altered"
        raise ModelFileError(msg)
    for name, content in members.items():
        if hashlib.sha256(content).hexdigest() != digests[name]:
            msg = (
                f"the part {name} does not have its SHA-256: it was damaged or altered"
            )
            raise ModelFileError(msg)
    return header, members


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    _require_magic(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            _require_plain(listed, len(data))
            members = {entry.filename: archive.read(entry) for entry in listed}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        msg = f"it is damaged ({error})"
        raise ModelFileError(msg) from error
    except (RuntimeError, ValueError, OverflowError) as error:
        msg = f"it is no plain zip ({error})"
        raise ModelFileError(msg) from error
    if HEADER not in members or SCHEMA not in members:
        msg = "it is a zip without a model of probgap in it"
        raise ModelFileError(msg)
    return _read_header(members.pop(HEADER)), members


def _require_magic(data: bytes) -> None:
    if data[:4] != b"PK\x03\x04":
        what = "it is not a model file"
        if not data:
            what = "it is empty"
        elif data[:1] == b"\x80" and data[1:2] <= b"\x05":
            what = "it is a pickle, which could run anything when read"
        raise ModelFileError(what)
    if data[-_END_BYTES:][:4] != b"PK\x05\x06":
        msg = "its end is missing, or something was added: it was cut off or altered"
        raise ModelFileError(msg)


def _require_plain(listed: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what ``pack`` never writes: odd names, compression, overlaps."""
    names = [entry.filename for entry in listed]
    if len(set(names)) != len(names):
        msg = "two of its parts have one name"
        raise ModelFileError(msg)
    for entry in listed:
        if entry.filename not in (HEADER, SCHEMA) and not _MEMBER.fullmatch(
            entry.filename
        ):
            msg = f"it has a part by the name {entry.filename[:80]!r}"
            raise ModelFileError(msg)
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            msg = f"its part {entry.filename} is compressed or encrypted"
            raise ModelFileError(msg)
    if min((entry.header_offset for entry in listed), default=1) != 0:
        msg = "something stands before its first part"
        raise ModelFileError(msg)
    if sum(entry.file_size for entry in listed) > size:
        msg = "its parts claim more room than the file has"
        raise ModelFileError(msg)


def _read_header(content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        msg = f"its header is no JSON ({error})"
        raise ModelFileError(msg) from error
    number = header.get("format") if isinstance(header, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        msg = "its header has no format number"
        raise ModelFileError(msg)
    if number > FORMAT:
        msg = (
            f"it has format {number}, of probgap {_version(header, 'probgap')}; this "
            f"version reads format {FORMAT}. Upgrade probgap to read it"
        )
        raise ModelFileError(msg)
    for key in ("versions", "metadata", "sha256"):
        if not isinstance(header.get(key), dict):
            msg = f"its header has no {key}"
            raise ModelFileError(msg)
    return header


def _version(header: Mapping[str, Any], name: str) -> str:
    versions = header.get("versions")
    return str(versions.get(name) if isinstance(versions, dict) else None)[:40]
