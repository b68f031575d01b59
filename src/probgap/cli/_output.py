"""Write results, all of them or none, and check beforehand that they can be written."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from probgap._core.errors import MissingLibraryError, refuse
from probgap.cli._terminal import first_few

# What fit writes.
FILES = ("report.html", "scores.csv", "label_next.csv", "model.probgap", "run.json")


def check_libraries(
    *names: str, extra: str = "tool", purpose: str = "the commands"
) -> None:
    """Raise, before a long run, if a library that it needs is missing."""
    for name in names or ("pandas", "jinja2"):
        if find_spec(name) is None:
            raise MissingLibraryError(library=name, extra=extra, purpose=purpose)


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
            f"{first_few(sorted(found), 3)}; choose another, or replace earlier results with --force."
        )
    if foreign := found.difference(ours):
        refuse(
            f"--force replaces earlier results only, but {folder} also holds "
            f"{first_few(sorted(foreign), 3)}; choose another --out."
        )
    if any(_is_same(folder / name, read) for name in found):
        refuse(
            f"--force would replace the table itself, {read}; move it, or choose another "
            "--out."
        )
    if folder.is_symlink() and not folder.exists():
        refuse(f"--out must name a folder. Got {folder}, a link to nothing.")
    _require_writable(_nearest_parent(folder.resolve()))


@contextmanager
def claim_folder(folder: Path) -> Iterator[None]:
    """Refuse a folder that another run on this machine is about to write to.

    A temporary file is locked for the time being. The system frees it if the run dies,
    so that a file that stays behind refuses nothing.
    """
    folder = folder.resolve()
    key = sha256(os.fsencode(folder)).hexdigest()[:16]
    path = Path(gettempdir(), f"probgap-{key}.lock")
    with ExitStack() as held:
        try:
            file = held.enter_context(path.open("a"))
        except OSError:
            pass  # the folder is looked at again before it is written
        else:
            if not lock_file(file):
                refuse(
                    f"Another run of probgap is about to write to {folder}; wait for it "
                    "to end, or choose another --out."
                )
            held.callback(path.unlink, missing_ok=True)
        yield


def lock_file(file: IO[Any]) -> bool:
    """Lock a file as long as it is open; return whether no other process holds it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # no locks here
    return True


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
    """Write all files into a folder nearby, then move it to its place.

    If that is a link to a folder, to the place where it points.
    """
    folder = folder.resolve()
    prefix = f".{folder.name[:100]}."  # file systems limit the length of a name
    with TemporaryDirectory(
        dir=_nearest_parent(folder), prefix=prefix, ignore_cleanup_errors=True
    ) as nearby:
        new, old = Path(nearby, "new"), Path(nearby, "old")
        new.mkdir(0o755)
        for name, write in writers.items():
            write(new / name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise


def _nearest_parent(folder: Path) -> Path:
    return next(place for place in folder.absolute().parents if place.exists())


def _require_writable(place: Path) -> None:
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        refuse(f"--out must be in a folder that can be written to. Got {place}.")


def _is_same(path: Path, other: str | Path) -> bool:
    from probgap.tables import find_tables

    files = (Path(file) for file in find_tables(str(other)))
    return any(file.exists() and path.samefile(file) for file in files)
