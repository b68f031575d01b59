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
    rooms = ", ".join(f"probgap.{room}" for room in ROOMS)
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
