"""``probgap doctor``: what is installed, what is missing, and whether it works."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer

from probgap import __version__
from probgap.cli import _options as given
from probgap.cli._errors import BAD_INPUT, plain_errors

_CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "typer")
# Library, the extra that brings it, and what it is for.
_OPTIONAL = (
    ("pandas", "report", "tables"),
    ("matplotlib", "report", "figures and pages"),
    ("jinja2", "report", "pages"),
    ("skops", "io", "saving and loading models"),
    ("pyarrow", "tool", "Parquet files"),
    ("gensim", "text", "Doc2Vec, in the paper's Table 8"),
    ("pooch", "data", "downloads of the paper's data"),
    ("dask", "dask", "fits on blocks, on a cluster"),
    ("xgboost", "xgboost", "its trees on a cluster"),
    ("torch", "gpu", "exact kernels on a GPU"),
)
_GOOD_ACCURACY = 0.9


@dataclass(frozen=True)
class Check:
    """One part of the self-test: whether it passed, and what it found."""

    name: str
    passed: bool
    found: str
    seconds: float


def doctor(*, as_json: given.Json = False, debug: given.Debug = False) -> None:
    """Say what is installed and how to get what is not, and test that it works.

    The self-test takes seconds: a fit on made-up data with a known answer, matching by
    two solvers, and a model saved and loaded. Exit code 1 if a part of it fails.
    """
    with plain_errors(debug=debug):
        core = {name: _version(name) for name in _CORE}
        optional = [
            {"library": name, "version": _version(name), "extra": extra, "for": purpose}
            for name, extra, purpose in _OPTIONAL
        ]
        checks = self_test()
        passed = all(check.passed for check in checks)
        if as_json:
            found = {
                "probgap": __version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "cores": os.cpu_count(),
                "data": os.environ.get("PROBGAP_DATA"),
                "core": core,
                "optional": optional,
                "self_test": [asdict(check) for check in checks],
                "passed": passed,
            }
            typer.echo(json.dumps(found, ensure_ascii=False))
        else:
            _show(core, optional, checks)
    if not passed:
        raise typer.Exit(BAD_INPUT)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def self_test() -> list[Check]:
    """Try the main parts; one that fails does not keep the next from being tried."""
    parts = [
        ("fit on data with a known answer", _try_fit),
        ("kernel mean matching by two solvers", _try_matching),
    ]
    if _version("skops") is not None:
        parts.append(("a model saved and loaded", _try_saving))
    checks = []
    for name, part in parts:
        started = time.perf_counter()
        try:
            passed, found = part()
        except Exception as error:  # noqa: BLE001 (a broken part is what is looked for)
            passed, found = False, f"{type(error).__name__}: {error}"
        checks.append(Check(name, passed, found, time.perf_counter() - started))
    return checks


def _fitted() -> tuple[Any, Any, Any]:
    from probgap import PGPUClassifier
    from probgap.datasets import hide_labels, make_square

    samples, truth, posterior = make_square(400, random_state=0)
    observed = hide_labels(
        samples, truth, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1
    )
    return PGPUClassifier(random_state=0).fit(samples, observed), samples, truth


def _try_fit() -> tuple[bool, str]:
    model, samples, truth = _fitted()
    accuracy = float(model.score(samples, truth))
    return accuracy >= _GOOD_ACCURACY, f"accuracy {accuracy:.1%} on true labels"


def _try_matching() -> tuple[bool, str]:
    import numpy as np

    from probgap.reweight import kernel_mean_matching

    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(200, 5)), rng.normal(0.3, 1.0, size=(200, 5))
    results = [
        kernel_mean_matching(source, target, upper=20.0, solver=name)
        for name in ("pivoting", "exact")
    ]
    apart = abs(results[0].objective - results[1].objective)
    relative = apart / abs(results[1].objective)
    converged = all(result.converged for result in results)
    return converged and relative < 1e-4, f"objectives differ by {relative:.0e} of one"


def _try_saving() -> tuple[bool, str]:
    import tempfile
    from pathlib import Path

    import numpy as np

    from probgap.io import load, save

    model, samples, _ = _fitted()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save(model, path)
        loaded = load(path)
    same = np.array_equal(model.predict_proba(samples), loaded.predict_proba(samples))
    return same, "same predictions" if same else "other predictions than before"


def _show(
    core: dict[str, str | None], optional: list[dict[str, Any]], checks: list[Check]
) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(
        f"[bold]probgap {__version__}[/bold], Python {platform.python_version()}, "
        f"{os.cpu_count()} cores"
    )
    console.print(", ".join(f"{name} {found}" for name, found in core.items()))
    console.print("\nOptional parts", style="dim")
    states = [
        part["version"] or f"missing: pip install 'probgap[{part['extra']}]'"
        for part in optional
    ]
    name_width = max(len(part["library"]) for part in optional)
    state_width = max(map(len, states))
    for part, state in zip(optional, states, strict=True):
        line = Text(f"{part['library']:<{name_width}}  ")
        line.append(
            f"{state:<{state_width}}  ", "yellow" if part["version"] is None else ""
        )
        # How to get a part is to be copied: better a long line than a broken one.
        console.print(line.append(part["for"], "dim"), soft_wrap=True)
    console.print("\nSelf-test", style="dim")
    for check in checks:
        word = (
            "[green]passed[/green]" if check.passed else "[bold red]FAILED[/bold red]"
        )
        console.print(f"{word}  {check.name}: ", end="")
        console.print(f"{check.found} ({check.seconds:.1f} s)", markup=False)
