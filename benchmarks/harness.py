"""What every benchmark has in common: options, cells, a file of rows, tables, and clocks.

A benchmark that tries methods on many cells gives three things: its cells, which are
dictionaries of what a cell is called by; ``measure(cell, methods)``, which returns rows; and
a summary of the table of all rows::

    import harness

    options = harness.parse(harness.parser(__doc__, out="toy"))
    rows = harness.run_cells([{"data": "a", "seed": 0}], measure, options, ["ours"])
    harness.show(harness.summarise(rows, "method", accuracy="accuracy"))

Each row has what its cell is called by, what was measured, and commit, version and machine.
Rows are written as they come, one JSON object a line. What --resume finds in the file is not
measured again, so that a run may be stopped at any time.

Benchmarks of speed take ``best_of``, ``alone`` and ``run_command``.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

import probgap

ROOT = Path(__file__).parents[1]
PROBGAP = (sys.executable, "-m", "probgap")
FEWEST_TO_TEST = 6  # pairs that differ; Wilcoxon's test says nothing of fewer

Cell = Mapping[str, Any]
Measure = Callable[[Cell, Sequence[str]], Iterable[dict[str, Any]]]


# --- options


def parser(doc: str, out: str | None = None, seeds: int = 1) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks have.

    With ``out``, the name of the file of rows, those of cells and their rows as well.
    """
    made = argparse.ArgumentParser(description=doc.partition("\n")[0])
    made.add_argument("--quick", action="store_true", help="a try, in half a minute")
    if out is not None:
        path = Path("build", f"{out}.jsonl")
        made.add_argument("--out", type=Path, default=path, help="file of rows")
        made.add_argument("--resume", action="store_true", help="measure what it lacks")
        made.add_argument(
            "--only-summary", action="store_true", help="of the rows in the file"
        )
        made.add_argument("--jobs", type=int, default=1, help="processes")
        made.add_argument("--seeds", type=int, default=seeds, help="draws of each cell")
    return made


def parse(made: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options; rows of --quick go to a folder of their own if not told where."""
    options = made.parse_args()
    if options.quick and "out" in options and options.out == made.get_default("out"):
        options.out = Path(tempfile.mkdtemp(prefix="probgap-"), options.out.name)
    return options


def _check_out(options: argparse.Namespace) -> None:
    """End the program where rows of another run would be mixed with new ones."""
    if options.out.exists() and not (options.resume or options.only_summary):
        sys.exit(
            f"{options.out} exists. Name another file (--out), measure what it lacks "
            "(--resume) or summarise it (--only-summary)."
        )


# --- cells and their rows


@cache
def about() -> dict[str, str]:
    """Return commit, version and machine, as they stand in every row."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return {
        "commit": found.stdout.strip(),
        "version": probgap.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, compressed or not, and none where there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().splitlines()]


def run_cells(
    cells: Iterable[Cell],
    measure: Measure,
    options: argparse.Namespace,
    methods: Sequence[str | None] = (None,),
) -> pd.DataFrame:
    """Measure what the file of rows lacks, and return all rows of cells and methods.

    A cell may have several rows of a method, or of none. They are known by what the cell
    is called by and by the method.
    """
    _check_out(options)
    cells = [dict(cell) for cell in cells]
    names, rows = list(cells[0]), read_rows(options.out)
    if not options.only_summary:
        known = {_key(row, names, row.get("method")) for row in rows}
        lacking = [
            (c, [m for m in methods if _key(c, names, m) not in known]) for c in cells
        ]
        rows += _measure_all([pair for pair in lacking if pair[1]], measure, options)
    wanted = {_key(cell, names, m) for cell in cells for m in methods}
    return pd.DataFrame(
        [row for row in rows if _key(row, names, row.get("method")) in wanted]
    )


def _key(row: Cell, names: Iterable[str], method: str | None) -> tuple[Hashable, ...]:
    return (*(row.get(name) for name in names), method)


def _measure_all(
    pairs: Sequence[tuple[Cell, list[str]]],
    measure: Measure,
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Measure pairs of a cell and methods, and append their rows to the file."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    work = parallel(delayed(_measure_cell)(measure, *pair) for pair in pairs)
    rows = []
    with options.out.open("a") as file:
        for done, new in enumerate(work, 1):
            rows += new
            file.writelines(json.dumps(row) + "\n" for row in new)
            file.flush()
            print(f"\r{done} of {len(pairs)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rows


def _measure_cell(
    measure: Measure, cell: Cell, methods: list[str]
) -> list[dict[str, Any]]:
    return [{**cell, **row, **about()} for row in measure(cell, methods)]


# --- tables


def summarise(
    rows: pd.DataFrame,
    by: str | list[str],
    /,
    total: str = "",
    **columns: str | Callable[[pd.DataFrame], Any],
) -> pd.DataFrame:
    """Return a table: a line for each value of ``by``, in the order of the rows.

    A column is the mean of a number, or what a function makes of the rows of a group. A
    last line, of the name ``total``, is about all rows.
    """
    groups = [*rows.groupby(by, sort=False), *([(total, rows)] if total else [])]
    lines = {}
    for name, group in groups:
        lines[name] = {
            column: _mean(group, how) if isinstance(how, str) else how(group)
            for column, how in columns.items()
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis(by)


def _mean(rows: pd.DataFrame, name: str) -> float:
    return float(rows[name].astype(float).mean()) if name in rows else np.nan


def markdown(table: pd.DataFrame, digits: int = 2, /, **formats: str) -> str:
    """Return a table in Markdown; ``formats`` are those of columns with others."""
    table = (
        table.reset_index() if table.index.nlevels > 1 or table.index.name else table
    )
    lines = [[str(name) for name in table.columns], ["---"] * table.shape[1]]
    for values in table.itertuples(index=False):
        pairs = zip(table.columns, values, strict=True)
        lines.append([_text(v, formats.get(name, f".{digits}f")) for name, v in pairs])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(value: Any, form: str) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    return "" if np.isnan(value) else format(value, form)


def show(
    table: pd.DataFrame, digits: int = 2, title: str = "", /, **formats: str
) -> None:
    """Print a table in Markdown, with a title above it; nothing of one without lines."""
    if table.empty:
        return
    print(f"\n{title}\n" if title else "")
    print(markdown(table, digits, **formats), flush=True)


def compare(first: pd.Series, second: pd.Series) -> tuple[float, float]:
    """Return the mean difference of two numbers on the same cells, and Wilcoxon's p."""
    difference = (first - second).dropna().to_numpy()
    if np.count_nonzero(difference) < FEWEST_TO_TEST:
        return np.nan, np.nan
    return float(difference.mean()), float(wilcoxon(difference).pvalue)


# --- clocks


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Print no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the CPU seconds that a call took, and what it returned."""
    started = time.process_time()
    result = function(*arguments)
    return time.process_time() - started, result


def best_of(
    tasks: Mapping[str, Callable[[], Any]], rounds: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the fewest CPU seconds of each task, and what it returned.

    Tasks take turns, so that a busy machine slows all of them.
    """
    seconds, results = dict.fromkeys(tasks, np.inf), {}
    with quietly():
        for _ in range(rounds):
            for name, task in tasks.items():
                spent, results[name] = cpu_seconds(task)
                seconds[name] = min(seconds[name], spent)
    return seconds, results


def alone(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Call a function in a process of its own: the result, and that process's peak in GB."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_with_peak, function, *arguments).result()


def _with_peak(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    result = function(*arguments)
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@dataclass(frozen=True)
class Ran:
    """What a command took, how it ended and what it said on standard error."""

    status: int
    wall: float
    cpu: float
    peak: float  # GB
    error: str


def run_command(*words: Any, folder: Path | None = None) -> Ran:
    """Run a command, and wait for it."""
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=folder,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
        return Ran(process.returncode, wall, cpu, peak, said.read())


def must_run(*words: Any, folder: Path | None = None) -> Ran:
    """Run a command, and end the program if it fails."""
    ran = run_command(*words, folder=folder)
    if ran.status != 0:
        sys.exit(
            f"{' '.join(map(str, words))} ended with status {ran.status}\n{ran.error}"
        )
    return ran
