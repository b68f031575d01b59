"""Importing the package is cheap and leaves no trace."""

import os
import subprocess
import sys

OPTIONAL = (
    "pandas",
    "matplotlib",
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
    "results",
    "experiments",
    "report",
)


def optional_modules_after(statement, folder):
    script = (
        f"import sys; {statement}; print(*[m for m in {OPTIONAL} if m in sys.modules])"
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
    rooms = ", ".join(f"probgap.{room}" for room in ROOMS)
    ours = optional_modules_after(f"import probgap, {rooms}", tmp_path)
    # scikit-learn itself looks for pandas.
    assert ours <= optional_modules_after("import sklearn.svm", tmp_path)
    assert list(tmp_path.iterdir()) == []
