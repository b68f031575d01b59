"""Write results, all of them or none, and check beforehand that they can be written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from probgap._core.errors import MissingLibraryError
from probgap.cli._terminal import refuse

# What fit writes.
FILES = ("report.html", "scores.csv", "label_next.csv", "model.skops", "run.json")


def check_libraries() -> None:
    """Raise, before a long run, if a library that the results need is missing."""
    for library in ("pandas", "jinja2", "matplotlib", "skops"):
        if find_spec(library) is None:
            raise MissingLibraryError(
                library=library, extra="tool", purpose="the commands"
            )


def check_folder(
    folder: Path, ours: Iterable[str], *, force: bool, read: str = "-"
) -> None:
    """Refuse, before any work, a folder that could not or must not be written.

    ``force`` replaces a folder only if it holds nothing but files of a run (``ours``),
    and not the table that the run reads (``read``).
    """
    if folder.exists() and not folder.is_dir():
        refuse(f"--out must name a folder. Got the file {folder}.")
    found = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if found and not force:
        refuse(
            f"--out must name a new or empty folder. Got {folder}, which holds "
            f"{_some(found)}; choose another, or replace earlier results with --force."
        )
    if foreign := found.difference(ours):
        refuse(
            f"--force replaces earlier results only, but {folder} also holds "
            f"{_some(foreign)}; choose another --out."
        )
    if any(_is_same(folder / name, read) for name in found):
        refuse(
            f"--force would replace the table itself, {read}; move it, or choose another "
            "--out."
        )
    if folder.is_symlink() and not folder.exists():
        refuse(f"--out must name a folder. Got {folder}, a link to nothing.")
    _require_writable(_nearest_parent(folder))


def check_file(path: Path, *, force: bool, read: Iterable[str | Path] = ()) -> None:
    """Refuse a file that could not or must not be written, or that is read here."""
    if path.is_dir():
        refuse(f"--out must name a file. Got the folder {path}.")
    if path.exists() and not force:
        refuse(f"--out must name a new file. Got {path}; replace it with --force.")
    if path.exists() and any(_is_same(path, other) for other in read):
        refuse(f"--out must not name an input file. Got {path}.")
    parent = path.absolute().parent
    if not parent.is_dir():
        refuse(f"--out must be in a folder that exists. Got {path}.")
    _require_writable(parent)


def write_folder(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> None:
    """Write all files into a folder nearby, then move it to its place."""
    folder = folder.absolute()
    prefix = f".{folder.name[:100]}."  # file systems limit the length of a name
    with TemporaryDirectory(
        dir=_nearest_parent(folder), prefix=prefix, ignore_cleanup_errors=True
    ) as nearby:
        new, old = Path(nearby, "new"), Path(nearby, "old")
        new.mkdir(0o755)
        for name, write in writers.items():
            write(new / name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        replaced = folder.exists()
        if replaced:
            folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            if replaced:
                old.rename(folder)
            raise


def _nearest_parent(folder: Path) -> Path:
    return next(place for place in folder.absolute().parents if place.exists())


def _require_writable(place: Path) -> None:
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        refuse(f"--out must be in a folder that can be written to. Got {place}.")


def _is_same(path: Path, other: str | Path) -> bool:
    return Path(other).exists() and path.samefile(other)


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
