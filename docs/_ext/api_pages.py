"""Write the pages of the API: one for each room, one for each public name.

Rooms come from ``api_rooms`` in conf.py, names from each room's ``__all__``.
"""

from __future__ import annotations

import inspect
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

_LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`)")
_TRAILING = re.compile(r"\b([a-zA-Z]\w*)_(?=[\s,.;)]|$)")


def write_pages(app: Any) -> None:
    """Write all pages anew, before Sphinx looks for sources."""
    folder = Path(app.srcdir) / "api"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "generated").mkdir(parents=True)
    rooms = app.config.api_rooms
    entries = "\n".join(f"   {name}" for name, _ in rooms)
    lines = "\n".join(f":doc:`{name}`\n   {title}\n" for name, title in rooms)
    (folder / "index.rst").write_text(
        f"{_heading('API')}\nEvery public name, by room. The examples are run by the test "
        f"suite.\n\n{lines}\n.. toctree::\n   :hidden:\n\n{entries}\n"
    )
    seen: dict[int, str] = {}
    for name, title in rooms:
        _write_room(folder, name, title, seen)


def _heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _write_room(folder: Path, name: str, title: str, seen: dict[int, str]) -> None:
    """Write the page of a room, and those of the names that no room before it has."""
    module = import_module(name)
    public = [thing for thing in module.__all__ if not thing.startswith("_")]
    elsewhere = [
        seen[id(getattr(module, x))] for x in public if _known(module, x, seen)
    ]
    things = [thing for thing in public if not _known(module, thing, seen)]
    table = "\n".join(f"   {entry}" for entry in [*things, *elsewhere])
    pages = "\n".join(f"   {thing} <generated/{name}.{thing}>" for thing in things)
    (folder / f"{name}.rst").write_text(
        f"{_heading(name)}\n{title}\n\n.. automodule:: {name}\n   :no-members:\n\n"
        f".. autosummary::\n   :nosignatures:\n\n{table}\n\n"
        f".. toctree::\n   :hidden:\n\n{pages}\n"
    )
    for thing in things:
        seen[id(getattr(module, thing))] = f"{name}.{thing}"
        _write_thing(folder / "generated", name, thing, getattr(module, thing))


def _known(module: Any, name: str, seen: dict[int, str]) -> bool:
    return id(getattr(module, name)) in seen


def _write_thing(folder: Path, room: str, name: str, thing: Any) -> None:
    full = f"{room}.{name}"
    if inspect.isclass(thing):
        methods = "".join(
            f".. automethod:: {full}.{method}\n\n" for method in own_methods(thing)
        )
        body = f".. autoclass:: {full}\n   :no-members:\n\n{methods}"
    elif callable(thing):
        body = f".. autofunction:: {full}\n\n"
    else:
        body = f".. autodata:: {full}\n\n"
    gallery = (
        f".. minigallery:: {full}\n   :add-heading: Pictures\n   :heading-level: -\n"
    )
    text = f"{_heading(full)}\n.. currentmodule:: {room}\n\n{body}{gallery}"
    (folder / f"{full}.rst").write_text(text)


def own_methods(thing: type) -> list[str]:
    """Name the public methods that probgap wrote; scikit-learn's are described there."""
    members = inspect.getmembers(thing, callable)
    return [
        name
        for name, method in members
        if not name.startswith("_")
        and str(getattr(method, "__module__", "")).startswith("probgap")
        and inspect.getdoc(method)
    ]


def escape_names(
    _app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Keep a fitted attribute, such as ``classes_``, from being read as a link."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = _LITERAL.split(line)
            parts[::2] = [_TRAILING.sub(r"\1\_", part) for part in parts[::2]]
            lines[place] = "".join(parts)


def setup(app: Any) -> dict[str, Any]:
    """Write the pages when a build starts."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_config_value("api_rooms", (), "env")
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("autodoc-process-docstring", escape_names, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
