"""Importing the package is cheap and leaves no trace."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import probgap

REQUIRED = ("numpy", "scipy", "sklearn", "joblib", "threadpoolctl")
OPTIONAL = (
    "pandas",
    "matplotlib",
    "jinja2",
    "torch",
    "typer",
    "dask",
    "cvxopt",
    "hypothesis",
)
PACKAGE = Path(probgap.__file__).parent
MODULES = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if not path.name.startswith("_")
    and (path.suffix == ".py" or (path / "__init__.py").is_file())
)
# These are of no use without the library they are made for.
NEED_A_LIBRARY = {"cli", "dask"}


def modules_after(folder, *statements):
    """Run statements in a process; return what is loaded after each of them."""
    names = REQUIRED + OPTIONAL
    shown = f"print(*[m for m in {names} if m in sys.modules])"
    script = "; ".join(["import sys", *(f"{each}; {shown}" for each in statements)])
    environment = {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    out = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    )
    assert out.stderr == ""
    return [set(line.split()) for line in out.stdout.splitlines()]


def test_import_loads_no_more_than_is_asked_for_and_writes_nothing(tmp_path):
    names = ", ".join(
        f"probgap.{name}" for name in MODULES if name not in NEED_A_LIBRARY
    )
    # Parts are loaded when asked for: no import of scikit-learn is paid for twice, and a
    # command line that only parses its arguments pays for none.
    name, theirs, classifier, all_names = modules_after(
        tmp_path,
        "import probgap",
        "import sklearn.svm",  # which itself looks for pandas
        "from probgap import PGPUClassifier",
        f"import {names}",
    )
    assert name == set()
    assert classifier >= set(REQUIRED)
    assert all_names <= theirs | set(REQUIRED)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_module_is_an_attribute_of_the_package(name, monkeypatch):
    module = import_module(f"probgap.{name}")
    monkeypatch.delattr(probgap, name)  # as it is before anything has imported it
    assert getattr(probgap, name) is module
    assert name in dir(probgap)


def test_what_is_no_room_is_no_attribute():
    for name in ("nowhere", "_nowhere", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(probgap, name)
