"""The plan of a model inside its file: a tree of nodes, each naming a type."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from probgap._core.errors import ModelFileError
from probgap.io._trust import is_trusted

# The layout of nodes that this module understands.
_PROTOCOL = 2

# How many features; how many classes, for each output; how many outputs.
_TREE_IS_MADE_OF = ["JsonNode", "NdArrayNode", "JsonNode"]
_TREE_HOLDS = {
    "max_depth": "JsonNode",
    "node_count": "JsonNode",
    "nodes": "NdArrayNode",
    "values": "NdArrayNode",
}

Node = dict[str, Any]


def renumber(schema: Node) -> dict[str, str]:
    """Give objects numbers from 1 in place of addresses, and files names to match.

    So the same model makes the same file, and no address leaves the process.
    """
    numbers: dict[int, int] = {}
    files: dict[str, str] = {}
    for node in _nodes(schema):
        number = numbers.setdefault(node["__id__"], len(numbers) + 1)
        node["__id__"] = number
        if "file" in node:
            suffix = node["file"].rpartition(".")[2]
            files[node["file"]] = f"{number}.{suffix}"
            node["file"] = files[node["file"]]
    return files


def require_sound(schema: Any, files: Collection[str]) -> None:
    """Refuse a plan that refers to itself, grows when built, or shares files.

    An object that occurs twice must look the same each time, and a file belongs to the
    object of its number. Then there is no more to build than there is to read.
    """
    found = schema.get("protocol") if isinstance(schema, dict) else None
    if found != _PROTOCOL:
        msg = f"it has protocol {found!r} of skops, where probgap reads {_PROTOCOL}"
        raise ModelFileError(msg)
    forms = _Forms()
    forms.of(schema)
    asked = {node["file"] for node in _nodes(schema) if "file" in node}
    if asked != set(files):
        odd = min(asked.symmetric_difference(files), key=str)
        msg = f"it has and uses different parts: {str(odd)[:80]!r} is one of them"
        raise ModelFileError(msg)
    if not all(map(_is_plain_tree, _nodes(schema))):
        msg = "it builds a tree from other things than numbers and arrays"
        raise ModelFileError(msg)


def find_untrusted(schema: Node, trusted: Collection[str]) -> list[str]:
    """List the names in a plan that neither probgap nor the caller trusts."""
    return sorted(
        {n for loader, n in _names(schema) if not is_trusted(loader, n)} - set(trusted)
    )


def find_names(schema: Node) -> list[str]:
    """List all names in a plan, for skops, which keeps a list of its own."""
    return sorted({name for _, name in _names(schema)})


def _names(schema: Node) -> Iterator[tuple[str, str]]:
    for node in _nodes(schema):
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        loader = node["__loader__"]
        if loader == "MethodNode":
            method = node.get("content", {}).get("func")
            yield loader, f"{name}.{method}"
        yield loader, name


def _nodes(part: Any) -> Iterator[Node]:
    """Give every node of a plan, the outer before the inner."""
    if isinstance(part, dict):
        if isinstance(part.get("__loader__"), str):
            yield part
        for inner in part.values():
            yield from _nodes(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _nodes(inner)


def _is_plain_tree(node: Node) -> bool:
    """Say whether compiled code is handed what it expects, if the node makes a tree."""
    if node["__loader__"] != "TreeNode":
        return True
    try:
        given = node["__reduce__"]["args"]
        state = node["content"]
        return (
            (given["__loader__"], state["__loader__"]) == ("TupleNode", "DictNode")
            and [part["__loader__"] for part in given["content"]] == _TREE_IS_MADE_OF
            and {key: part["__loader__"] for key, part in state["content"].items()}
            == _TREE_HOLDS
        )
    except (AttributeError, KeyError, TypeError):
        return False


class _Forms:
    """Tells whether parts of a plan look the same, but for numbers and files."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._by_number: dict[int, int] = {}

    def of(self, part: Any) -> int:
        """Give the form of a part; parts that look the same have the same."""
        key: Any
        if isinstance(part, dict):
            inner = (k for k in part if k not in ("__id__", "file"))
            key = (dict, *((k, self.of(part[k])) for k in inner))
        elif isinstance(part, list):
            key = (list, *(self.of(inner) for inner in part))
        else:
            key = (type(part), repr(part))
        form = self._known.setdefault(key, len(self._known))
        if isinstance(part, dict) and isinstance(part.get("__loader__"), str):
            self._check(part, form)
        return form

    def _check(self, node: Node, form: int) -> None:
        number, name = node.get("__id__"), node.get("file", "")
        if type(number) is not int or number < 1:
            msg = f"an object in it has the number {number!r}"
            raise ModelFileError(msg)
        if self._by_number.setdefault(number, form) != form:
            msg = f"its object number {number} occurs in two forms"
            raise ModelFileError(msg)
        if name and str(name).rpartition(".")[0] != str(number):
            msg = f"its object number {number} uses the part {str(name)[:80]!r}"
            raise ModelFileError(msg)
