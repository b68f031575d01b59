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
    "skops",
    "jinja2",
    "torch",
    "typer",
    "gensim",
    "dask",
    "piqp",
    "cvxopt",
    "hypothesis",
)
PACKAGE = Path(probgap.__file__).parent
ROOMS = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if not path.name.startswith("_")
    and (path.suffix == ".py" or (path / "__init__.py").is_file())
)
# These are of no use without the library they are made for.
NEED_A_LIBRARY = {"cli", "dask"}


def modules_after(statement, folder, names=OPTIONAL):
    script = (
        f"import sys; {statement}; print(*[m for m in {names} if m in sys.modules])"
    )
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
    return set(out.stdout.split())


def test_import_loads_nothing_optional_and_writes_nothing(tmp_path):
    rooms = ", ".join(f"probgap.{room}" for room in ROOMS if room not in NEED_A_LIBRARY)
    ours = modules_after(f"import probgap, {rooms}", tmp_path)
    # scikit-learn itself looks for pandas.
    assert ours <= modules_after("import sklearn.svm", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_name_alone_loads_nothing_at_all(tmp_path):
    # Parts are loaded when asked for: no import of scikit-learn is paid for twice, and a
    # command line that only parses its arguments pays for none.
    assert modules_after("import probgap", tmp_path, REQUIRED + OPTIONAL) == set()
    asked = "from probgap import PGPUClassifier"
    assert modules_after(asked, tmp_path, REQUIRED) == set(REQUIRED)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_room_is_an_attribute_of_the_package(room, monkeypatch):
    module = import_module(f"probgap.{room}")
    monkeypatch.delattr(probgap, room)  # as it is before anything has imported the room
    assert getattr(probgap, room) is module
    assert room in dir(probgap)


def test_what_is_no_room_is_no_attribute():
    for name in ("nowhere", "_nowhere", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(probgap, name)
