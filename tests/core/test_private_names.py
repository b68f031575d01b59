"""One file of the package depends on private names of scikit-learn."""

import ast
from pathlib import Path

import probgap

PACKAGE = Path(probgap.__file__).parent


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_private_names_of_scikit_learn_are_imported_in_one_file():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for name in imported_names(path)
        if name.startswith("sklearn.") and "._" in name
    }
    assert found == {"_core/_sklearn.py"}
