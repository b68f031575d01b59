"""What every benchmark has in common: options, cells, a file of rows, tables, and clocks.

A benchmark that tries methods on many cells gives three things: its cells, which are
dictionaries of what a cell is called by; ``measure(cell, methods)``, which returns rows; and
a summary of the table of all rows::

    import harness

    options = harness.parse(harness.parser(__doc__, out="toy"))
    cells = harness.grid(data=("a", "b"), seed=range(options.seeds))
    rows = harness.run_cells(cells, measure, options, ["ours"])
    harness.show(harness.summarise(rows, "method", accuracy="accuracy"))

Each row has what its cell is called by, what was measured, and commit, version and machine.
Rows are written as they come, one JSON object a line. What --resume finds in the file is not
measured again, so that a run may be stopped at any time.

Benchmarks of speed take ``best_of``, ``alone`` and ``run_command``.
"""

import argparse
import contextlib
import gzip
import itertools
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
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


# --- options


def parser(doc, out=None, seeds=1):
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


def parse(made):
    """Return the options; rows of --quick go to a folder of their own if not told where."""
    options = made.parse_args()
    if options.quick and "out" in options and options.out == made.get_default("out"):
        options.out = Path(tempfile.mkdtemp(prefix="probgap-"), options.out.name)
    return options


# --- cells and their rows


def grid(**axes):
    """Return a cell for each combination of values; those of the last axis change first."""
    return [
        dict(zip(axes, values, strict=True))
        for values in itertools.product(*axes.values())
    ]


@cache
def about():
    """Return commit, version and machine, as they stand in every row."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return {
        "commit": found.stdout.strip(),
        "version": probgap.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


def read_rows(path):
    """Return the rows of a file, compressed or not, and none where there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().splitlines()]


def run_cells(cells, measure, options, methods=(None,)):
    """Measure what the file of rows lacks, and return all rows of cells and methods.

    A row belongs to the cell, and to the method, whose names it has.
    """
    if options.out.exists() and not (options.resume or options.only_summary):
        sys.exit(
            f"{options.out} exists. Name another file (--out), measure what it lacks "
            "(--resume) or summarise it (--only-summary)."
        )
    names, rows = [*cells[0], "method"], read_rows(options.out)

    def key(row, **method):
        return tuple((row | method).get(name) for name in names)

    if not options.only_summary:
        known = {key(row) for row in rows}
        lacking = [
            (cell, [m for m in methods if key(cell, method=m) not in known])
            for cell in cells
        ]
        rows += _measure_all([pair for pair in lacking if pair[1]], measure, options)
    wanted = {key(cell, method=m) for cell in cells for m in methods}
    return pd.DataFrame([row for row in rows if key(row) in wanted])


def _measure_all(pairs, measure, options):
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


def _measure_cell(measure, cell, methods):
    return [{**cell, **row, **about()} for row in measure(cell, methods)]


# --- tables


def lines(found, name):
    """Return a table: a line for each key of ``found``, in a column of this name."""
    return pd.DataFrame.from_dict(found, orient="index").rename_axis(name)


def wide(rows, value, by):
    """Return a table with a line for each cell and a column for each method."""
    found = rows.pivot(index=list(by), columns="method", values=value)
    return found[rows["method"].unique()]


def summarise(rows, by, /, total="", **columns):
    """Return a table: a line for each value of ``by``, in the order of the rows.

    A column is the mean of a number, or what a function makes of the rows of a group. A
    last line, of the name ``total``, is about all rows.
    """
    groups = [*rows.groupby(by, sort=False), *([(total, rows)] if total else [])]
    found = {
        value: {
            name: _mean(group, how) if isinstance(how, str) else how(group)
            for name, how in columns.items()
        }
        for value, group in groups
    }
    return lines(found, by)


def _mean(rows, name):
    return float(rows[name].astype(float).mean()) if name in rows else np.nan


def markdown(table, digits=2, /, **formats):
    """Return a table in Markdown; ``formats`` are those of columns with others."""
    if table.index.name or table.index.nlevels > 1:
        table = table.reset_index()
    forms = [formats.get(str(name), f".{digits}f") for name in table.columns]
    rows = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    rows += [list(map(_text, row, forms)) for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _text(value, form):
    if not isinstance(value, float | np.floating):
        return str(value)
    return "" if np.isnan(value) else format(value, form)


def show(table, digits=2, title="", /, **formats):
    """Print a table in Markdown, with a title above it; nothing of one without lines."""
    if table.empty:
        return
    print(f"\n{title}\n" if title else "")
    print(markdown(table, digits, **formats), flush=True)


def compare(first, second):
    """Return the mean difference of two numbers on the same cells, and Wilcoxon's p."""
    difference = (first - second).dropna().to_numpy()
    if np.count_nonzero(difference) < FEWEST_TO_TEST:
        return np.nan, np.nan
    return float(difference.mean()), float(wilcoxon(difference).pvalue)


# --- clocks


@contextlib.contextmanager
def quietly():
    """Print no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cpu_seconds(function, *arguments):
    """Return the CPU seconds that a call took, and what it returned."""
    started = time.process_time()
    result = function(*arguments)
    return time.process_time() - started, result


def best_of(tasks, rounds):
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


def alone(function, *arguments):
    """Call a function in a process of its own: the result, and that process's peak in GB."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_with_peak, function, *arguments).result()


def _with_peak(function, *arguments):
    result = function(*arguments)
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Ran(NamedTuple):
    """What a command took, how it ended and what it said on standard error."""

    status: int
    wall: float
    cpu: float
    peak: float  # GB
    error: str


def run_command(*words, folder=None, must=False):
    """Run a command, and wait for it; one that ``must`` end well ends the program if not."""
    command = [str(word) for word in words]
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=said, cwd=folder
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        error = said.read()
    if must and process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}\n{error}")
    cpu = used.ru_utime + used.ru_stime
    return Ran(process.returncode, wall, cpu, used.ru_maxrss / 2**20, error)
