"""The modules of the package, by the layers of the import contract in pyproject.toml."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def read_layers() -> list[list[str]]:
    """Return the modules of each layer, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (part["layers"] for part in contracts if part["type"] == "layers")
    return [
        [name.strip(" ()").removeprefix("probgap.") for name in layer.split("|")]
        for layer in layers
    ]


def describe() -> str:
    """Return a table of the modules, each with the first sentence of its docstring."""
    lines = ["| layer | module | what it is |", "|---|---|---|"]
    layers = read_layers()
    for number, names in enumerate(layers):
        for name in names:
            place = ROOT / "src" / "probgap" / name
            file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            sentence = text.partition("\n")[0].replace("``", "`").rstrip(".")
            lines.append(f"| {len(layers) - number} | `{name}` | {sentence} |")
    return "\n".join(lines) + "\n"


def setup(app: Any) -> dict[str, Any]:
    """Write the table when a build starts, for architecture.md to include."""
    table = Path(app.srcdir) / "layers.md"
    app.connect("builder-inited", lambda _: table.write_text(describe(), "utf-8"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
