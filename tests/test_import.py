"""Importing the package is cheap and leaves no trace."""

import os
import subprocess
import sys

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
ROOMS = (
    "gap",
    "boundary",
    "relabel",
    "reweight",
    "pgpu",
    "baselines",
    "datasets",
    "metrics",
    "inspection",
    "active",
    "diagnostics",
    "results",
    "experiments",
    "report",
    "io",
    "plotting",
)


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
    rooms = ", ".join(f"probgap.{room}" for room in ROOMS)
    # Parts are loaded when asked for: no import of scikit-learn is paid for twice, and a
    # command line that only parses its arguments pays for none.
    name, classifier, all_rooms = modules_after(
        tmp_path,
        "import probgap",
        "from probgap import PGPUClassifier",
        f"import {rooms}",
    )
    assert name == set()
    assert classifier >= set(REQUIRED)
    # scikit-learn itself looks for pandas.
    (theirs,) = modules_after(tmp_path, "import sklearn.svm")
    assert all_rooms <= theirs | set(REQUIRED)
    assert list(tmp_path.iterdir()) == []
