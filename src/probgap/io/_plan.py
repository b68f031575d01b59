"""The plan of a model inside its file: a tree of nodes, each naming a type.

It is skops' schema with other names: types are named as in the table of parts, fields of
dataclasses by name, and nodes have no ids. What occurs twice is written twice, except for
arrays, so that a plan cannot refer to itself, or grow when it is built.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from probgap.io._archive import refuse
from probgap.io._parts import PARTS, STEPS, is_trusted, public_name

Node = dict[str, Any]

_PROTOCOL = 2  # the layout of nodes that this module understands
_POOL_SIZES = [str(size) for size in range(4, 33)]  # numpy has 4 unless told otherwise
# Our classes and functions, by the loader and the name that a file has for them.
_OURS: dict[tuple[str, str], Any] = {
    **{("ObjectNode", name): kind for name, kind in PARTS.items()},
    **{("FunctionNode", name): step for name, step in STEPS.items()},
}
_NAMES = {
    (loader, thing.__module__, thing.__name__): name
    for (loader, name), thing in _OURS.items()
}


def nodes_of(part: Any) -> Iterator[Node]:
    """Return every node of a plan, the outer before the inner."""
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part
            waiting.extend(reversed(part.values()))
        elif isinstance(part, list):
            waiting.extend(reversed(part))


def names_in(schema: Node) -> Iterator[tuple[str, str]]:
    """Return the loader and the name of each node of a plan."""
    for node in nodes_of(schema):
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if node["__loader__"] == "MethodNode":
            yield "MethodNode", f"{name}.{node.get('content', {}).get('func')}"
        yield node["__loader__"], name


def find_untrusted(schema: Node, by_caller: Collection[str]) -> list[str]:
    """Return the names in a plan that neither probgap nor the caller trusts."""
    names = {name for loader, name in names_in(schema) if not is_trusted(loader, name)}
    return sorted(names.difference(by_caller))


def translate(schema: Node) -> None:
    """Turn a schema of skops into a plan of a file, except for the names of arrays."""
    for node in nodes_of(schema):
        node.pop("__id__", None)
        loader, module, kind = (
            str(node.get(key)) for key in ("__loader__", "__module__", "__class__")
        )
        name = _NAMES.get((loader, module, kind))
        if name is None:
            node["__module__"] = public_name(loader, module, kind).rpartition(".")[0]
            continue
        node["__module__"], node["__class__"] = "probgap", name
        if node.get("content", {}).get("__loader__") == "ListNode":
            values = node.pop("content")["content"]
            keys = (field.name for field in fields(_OURS[loader, name]))
            node["fields"] = dict(zip(keys, values, strict=False))


def rename_arrays(schema: Node) -> dict[str, str]:
    """Name arrays from 1 in place of random names, and return old and new ones."""
    files: dict[str, str] = {}
    for node in nodes_of(schema):
        if "file" in node:
            suffix = node["file"].rpartition(".")[2]
            node["file"] = files.setdefault(node["file"], f"{len(files) + 1}.{suffix}")
    return files


def require_sound(schema: Any, files: Collection[str]) -> None:
    """Refuse a plan of another layout, or whose arrays are not those of the file."""
    found = schema.get("protocol") if isinstance(schema, dict) else None
    if found != _PROTOCOL:
        refuse(f"it has protocol {found!r} of skops, where probgap reads {_PROTOCOL}")
    asked = set()
    for node in nodes_of(schema):
        if "__id__" in node:
            refuse(f"an object in it has the number {node['__id__']!r}")
        # numpy's work grows with the square of the pool of a seed.
        content = node.get("content")
        pool = content.get("pool_size") if isinstance(content, dict) else None
        if isinstance(pool, dict) and str(pool.get("content")) not in _POOL_SIZES:
            refuse("a random generator in it has a pool of another size than numpy's")
        if "file" in node:
            asked.add(node["file"])
            if len(list(nodes_of(node))) > 1:
                refuse(f"its part {str(node['file'])[:80]!r} is not an array")
    if asked != set(files):
        odd = min(asked.symmetric_difference(files), key=str)
        refuse(f"it has and uses different parts: {str(odd)[:80]!r} is one of them")


def resolve(schema: Node) -> None:
    """Turn a plan of a file, whose names are trusted, into a schema of skops."""
    numbers: dict[object, int] = {}
    for node in nodes_of(schema):
        # One for each node, but the same for the same array.
        shared = node.get("file", f"node {len(numbers)}")
        node["__id__"] = numbers.setdefault(shared, len(numbers) + 1)
        name = node["__class__"]
        if node["__module__"] == "probgap" and (node["__loader__"], name) in _OURS:
            thing = _OURS[node["__loader__"], name]
            node["__module__"], node["__class__"] = thing.__module__, thing.__name__
            if is_dataclass(thing):
                values = _values(name, thing, node.pop("fields", {}))
                node["content"] = make_node("ListNode", "list", values)


def _values(name: str, kind: Any, stored: Any) -> list[Node]:
    """Return the fields of a dataclass in their order, with defaults for new ones."""
    values = []
    for field in fields(kind):
        if field.name in stored:
            values.append(stored[field.name])
        elif isinstance(field.default, str | int | float | None):
            values.append(make_node("JsonNode", "str", json.dumps(field.default)))
        else:
            refuse(f"its {name} lacks {field.name}")
    return values


def make_node(loader: str, name: str, content: Any) -> Node:
    """Return a node for a builtin type."""
    made = {"__loader__": loader, "__module__": "builtins", "__class__": name}
    return {**made, "content": content}
