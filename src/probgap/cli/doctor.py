"""``probgap doctor``: what is installed, what is missing, and whether it works."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
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
    ("jinja2", "report", "reports"),
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

    The self-test is a fit on synthetic data, and takes seconds. The exit code is 1 if it
    fails.
    """
    with plain_errors(debug=debug):
        passed, said = _test_itself()
        found = {
            "probgap": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
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
            "self_test": said,
            "passed": passed,
        }
        print_json(found) if as_json else _print_findings(found)
        if not passed:
            raise typer.Exit(BAD_INPUT)


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _test_itself() -> tuple[bool, str]:
    try:
        from probgap import PGPUClassifier
        from probgap.datasets import hide_labels, make_square

        X, y, posterior = make_square(400, random_state=0)
        labels = hide_labels(
            X, y, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1
        )
        model = PGPUClassifier(random_state=0).fit(X, labels)
        accuracy = float(model.score(X, y))
    except Exception as error:  # noqa: BLE001 (a broken part is what is looked for)
        return False, f"{type(error).__name__}: {error}"
    return accuracy >= _GOOD_ACCURACY, f"accuracy {accuracy:.1%} on true labels"


def _print_findings(found: dict[str, Any]) -> None:
    # Commands to install a part are for copying, so lines are not wrapped.
    console = make_console()
    console.print(
        f"probgap {__version__}, Python {found['python']}, {found['cores']} cores"
    )
    console.print(", ".join(f"{name} {at}" for name, at in found["core"].items()))
    console.print("\nOptional parts", style="dim")
    for part in found["optional"]:
        state, what = part["version"], part["for"]
        if state is None:
            state, what = "missing", f"{what}: {how_to_install(part['extra'])}"
        console.print(f"{part['library']:<10}  {state:<12}  {what}")
    state = "passed" if found["passed"] else "FAILED"
    console.print(f"\nSelf-test {state}: {found['self_test']}")
