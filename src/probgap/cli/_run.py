"""What a folder says about its fit, and its table, read again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap._core.errors import refuse

if TYPE_CHECKING:
    from probgap.tables._cells import Frame

# The parts of run.json that other commands read, and the types in them.
_NUMBER = int | float
_DRIVER: Any = {"column": str, "importance": _NUMBER, "spread": _NUMBER}
_SHAPES: dict[str, Any] = {
    "table": dict.fromkeys(("path", "sha256", "label", "positive"), str)
    | {"id": str | None},
    "drivers": {"scored_by": str, "score": _NUMBER, "columns": [_DRIVER]},
}


def read_run(folder: Path, part: str) -> Any:
    """Return a part of run.json, or refuse a file that fit did not write."""
    path = folder / "run.json"
    if not path.is_file():
        refuse(
            f"DIR must be a folder that probgap fit wrote. Got {folder}: no run.json in it."
        )
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        run = None
    match run:
        case {"format": int(number)} if number > 1:
            refuse(
                f"{path} has format {number}, and this version reads format 1; use a "
                "newer probgap."
            )
        case {"format": 1, "drivers": None} if part == "drivers":
            refuse(
                "There were too few labelled rows to say what drives the probabilities."
            )
        case {"format": 1, "table": {"files": _, **table}} if (
            part == "table" and "sha256" not in table
        ):
            refuse(
                "This requires a fit in memory; this one was made with --engine dask."
            )
        case {"format": 1} if _has_shape(run.get(part), _SHAPES[part]):
            pass
        case _:
            refuse(f"{path} is damaged or was altered; fit again.")
    return run[part]


def _has_shape(value: Any, shape: Any) -> bool:
    """Return whether plain data has the parts that a shape names."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            key in value and _has_shape(value[key], part) for key, part in shape.items()
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(v, shape[0]) for v in value)
    return isinstance(value, shape)


def read_same(described: dict[str, Any], source: str | None) -> Frame:
    """Read the table of a fit again, or refuse another one."""
    from probgap import tables

    source = source or described["path"]
    found = ""
    if source == "-":
        found = "none, and it came from standard input"
    else:
        files = [Path(file) for file in tables.find_tables(source)]
        lacking = [file for file in files if not file.is_file()]
        if lacking:
            found = f"{source!r}, which is not a file"
        elif tables.join_digests(list(map(_digest, files))) != described["sha256"]:
            found = f"a file with other contents: {source}"
    if found:
        refuse(
            f"--table must name the table that the model was fitted to. Got {found}."
        )
    return tables.read_table(source).frame


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
