"""Results appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from probgap._core.errors import InvalidInputError

Writer = Callable[[Path], object]


def check_folder(
    folder: Path, ours: frozenset[str], *, force: bool, read: str = "-"
) -> None:
    """Refuse, before any work, a folder that could not or must not be written.

    Parameters
    ----------
    folder : Path
        Where results shall go.
    ours : frozenset of str
        Names of the files that a run writes: ``force`` replaces a folder only if it
        holds nothing else.
    force : bool
        Whether earlier results may be replaced.
    read : str, default="-"
        The table that the run reads, which it must not replace.
    """
    if folder.exists() and not folder.is_dir():
        msg = f"--out must name a folder. Got the file {folder}."
        raise InvalidInputError(msg)
    found = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if found and not force:
        msg = (
            f"--out must name a new or empty folder. Got {folder}, which holds "
            f"{_some(found)}; choose another, or replace earlier results with --force."
        )
        raise InvalidInputError(msg)
    if found - ours:
        msg = (
            "--force must only replace earlier results. Got a folder, "
            f"{folder}, that also holds {_some(found - ours)}; choose another --out."
        )
        raise InvalidInputError(msg)
    if any(_is_same(folder / name, read) for name in found):
        msg = (
            f"--force must not replace the table itself. Got {read}, in {folder}; move "
            "it, or choose another --out."
        )
        raise InvalidInputError(msg)
    if folder.is_symlink() and not folder.exists():
        msg = f"--out must name a folder. Got {folder}, a link to nothing."
        raise InvalidInputError(msg)
    # Found out now, not after minutes of work.
    _require_writable(_nearest_parent(folder))


def write_folder(folder: Path, writers: Mapping[str, Writer]) -> None:
    """Write all files beside the folder's place, then put them there at one stroke."""
    folder = folder.absolute()
    nearest = _nearest_parent(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = _make_beside(folder)
        try:
            partial.chmod(0o755)
            for name, write in writers.items():
                write(partial / name)
            _swap(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except BaseException:
        _remove_empty(folder.parent, nearest)
        raise


def check_file(path: Path, *, force: bool, read: Iterable[str | Path] = ()) -> None:
    """Refuse a place that could not or must not be written.

    Parameters
    ----------
    path : Path
        The file to write.
    force : bool
        Whether a file that is there may be replaced.
    read : iterable of str or Path
        Files that the command reads, which it must not replace.
    """
    if path.is_dir():
        msg = f"--out must name a file. Got the folder {path}."
        raise InvalidInputError(msg)
    if path.exists() and not force:
        msg = f"--out must name a new file. Got {path}; replace it with --force."
        raise InvalidInputError(msg)
    if path.exists() and any(_is_same(path, other) for other in read):
        msg = f"--out must name a file that is not read here. Got {path}."
        raise InvalidInputError(msg)
    parent = path.absolute().parent
    if not parent.is_dir():
        msg = f"--out must be in a folder that exists. Got {path}."
        raise InvalidInputError(msg)
    _require_writable(parent)


def _swap(partial: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which goes last."""
    if not folder.exists():
        partial.rename(folder)
        return
    old = _make_beside(folder)
    try:
        folder.rename(old / folder.name)
        try:
            partial.rename(folder)
        except BaseException:
            (old / folder.name).rename(folder)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _nearest_parent(folder: Path) -> Path:
    place = folder.absolute().parent
    while not place.exists():
        place = place.parent
    return place


def _require_writable(place: Path) -> None:
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        msg = f"--out must be in a folder that can be written to. Got {place}."
        raise InvalidInputError(msg)


def _make_beside(folder: Path) -> Path:
    prefix = f".{folder.name[:100]}."  # a name has a longest length
    return Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))


def _remove_empty(place: Path, last: Path) -> None:
    """Remove folders that were made for results, up to one that was there before."""
    with contextlib.suppress(OSError):
        while place != last:
            place.rmdir()
            place = place.parent


def _is_same(path: Path, other: str | Path) -> bool:
    return Path(other).exists() and path.samefile(other)


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
