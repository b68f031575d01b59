"""``probgap doctor``: what is installed, what is missing, and whether it works."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from probgap import __version__
from probgap._core.errors import how_to_install
from probgap.cli import _options as given
from probgap.cli._terminal import BAD_INPUT, make_console, plain_errors, print_json

_CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "typer")
# Library, the extra that brings it, and what it is for.
_OPTIONAL = (
    ("pandas", "report", "tables"),
    ("matplotlib", "report", "figures and pages"),
    ("jinja2", "report", "pages"),
    ("skops", "io", "saving and loading models"),
    ("pyarrow", "tool", "Parquet files"),
    ("openpyxl", "excel", "Excel files"),
    ("starlette", "label", "questions in a browser, probgap label"),
    ("uvicorn", "label", "questions in a browser, probgap label"),
    ("dask", "dask", "fits on blocks, on a cluster"),
    ("torch", "gpu", "exact kernels on a GPU"),
)
_GOOD_ACCURACY = 0.9


def doctor(*, as_json: given.Json = False, debug: given.Debug = False) -> None:
    """Show what is installed and how to get what is missing, and run a self-test.

    The self-test takes seconds: a fit on synthetic data, kernel mean matching by two
    solvers, and a model saved and loaded. The exit code is 1 if a part of it fails.
    """
    with plain_errors(debug=debug):
        checks = [
            _try("fit on data with a known answer", _try_fit),
            _try("kernel mean matching by two solvers", _try_matching),
        ]
        if _version_of("skops") is not None:
            checks.append(_try("a model saved and loaded", _try_saving))
        found = {
            "probgap": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            "data": os.environ.get("PROBGAP_DATA"),
            "core": {name: _version_of(name) for name in _CORE},
            "optional": [
                {
                    "library": name,
                    "extra": extra,
                    "for": use,
                    "version": _version_of(name),
                }
                for name, extra, use in _OPTIONAL
            ],
            "self_test": checks,
            "passed": all(check["passed"] for check in checks),
        }
        if as_json:
            print_json(found)
        else:
            _show(found)
        if not found["passed"]:
            raise typer.Exit(BAD_INPUT)


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _try(name: str, part: Callable[[], tuple[bool, str]]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        passed, found = part()
    except Exception as error:  # noqa: BLE001 (a broken part is what is looked for)
        passed, found = False, f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    return {"name": name, "passed": passed, "found": found, "seconds": seconds}


def _fitted() -> tuple[Any, Any, Any]:
    from probgap import PGPUClassifier
    from probgap.datasets import hide_labels, make_square

    X, truth, posterior = make_square(400, random_state=0)
    s = hide_labels(X, truth, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1)
    return PGPUClassifier(random_state=0).fit(X, s), X, truth


def _try_fit() -> tuple[bool, str]:
    model, X, truth = _fitted()
    accuracy = float(model.score(X, truth))
    return accuracy >= _GOOD_ACCURACY, f"accuracy {accuracy:.1%} on true labels"


def _try_matching() -> tuple[bool, str]:
    import numpy as np

    from probgap.reweight import kernel_mean_matching

    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(200, 5)), rng.normal(0.3, 1.0, size=(200, 5))
    one, other = (
        kernel_mean_matching(source, target, upper=20.0, solver=name)
        for name in ("pivoting", "exact")
    )
    relative = abs(one.objective - other.objective) / abs(other.objective)
    passed = one.converged and other.converged and relative < 1e-4
    return passed, f"relative difference of objectives {relative:.0e}"


def _try_saving() -> tuple[bool, str]:
    from probgap.io import load, save

    model, X, _ = _fitted()
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.skops")
        save(model, path)
        same = bool((model.predict_proba(X) == load(path).predict_proba(X)).all())
    return same, "same predictions" if same else "predictions differ"


def _show(found: dict[str, Any]) -> None:
    from rich.text import Text

    # Commands to install a part are for copying, so lines are not wrapped.
    console = make_console()
    rest = f", Python {found['python']}, {found['cores']} cores"
    console.print(Text.assemble((f"probgap {__version__}", "bold"), rest))
    console.print(", ".join(f"{name} {at}" for name, at in found["core"].items()))
    console.print("\nOptional parts", style="dim")
    for part in found["optional"]:
        state, style, what = part["version"] or "missing", "", part["for"]
        if part["version"] is None:
            style, what = "yellow", f"{what}: {how_to_install(part['extra'])}"
        line = (f"{part['library']:<10}  ", (f"{state:<12}  ", style))
        console.print(Text.assemble(*line, (what, "dim")))
    console.print("\nSelf-test", style="dim")
    for check in found["self_test"]:
        state = ("passed", "green") if check["passed"] else ("FAILED", "bold red")
        what = f"  {check['name']}: {check['found']} ({check['seconds']:.1f} s)"
        console.print(Text.assemble(state, what))
