"""Run jobs: fit the methods, and return a row for each job."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn import metrics

import probgap
from probgap._core.runtime import one_thread
from research.paper.data import Problem, Sample, draw_split, seed_for
from research.paper.methods import CLEAN, FIGURE, Fits, make_method
from research.paper.plan import Job
from research.paper.rows import Row

_HERE = Path(__file__).parent
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "gensim")
_SCORES = ("accuracy", "balanced_accuracy", "f1", "auc", "seconds")
_DIGITS = 4


def run(
    jobs: Sequence[Job], *, n_jobs: int | None = None, command: str | None = None
) -> Iterator[Row]:
    """Run jobs, several splits at once, and yield rows as they are ready.

    The jobs of a split run in one process, on one thread, and share fits that several
    methods need. joblib chooses the backend: within
    ``joblib.parallel_config(backend="dask")`` they run on a cluster. The numbers depend
    neither on that nor on the order. Each row holds the ``command`` line and the commit.
    """
    made_by = {"commit": _commit(), "command": command}
    splits: dict[tuple[Sample, int], list[Job]] = defaultdict(list)
    for job in jobs:
        splits[job.sample, job.split].append(job)
    # The longest first, so that no long one runs alone at the end.
    ordered = sorted(splits.values(), key=lambda split: -sum(job.cost for job in split))
    if n_jobs is not None:
        n_jobs = min(n_jobs, max(1, len(ordered)))
    work = joblib.Parallel(
        n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
    )
    for rows in work(
        joblib.delayed(_run_split)(split, os.getpid()) for split in ordered
    ):
        yield from (row | made_by for row in rows)


def _commit() -> str | None:
    """Return what git calls the commit of this file, with changes marked; None without git."""
    words = ["git", "describe", "--always", "--dirty"]
    try:
        said = subprocess.run(
            words, cwd=_HERE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()


# Names of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Let this process keep memory that it frees, where the C library is glibc.

    Large arrays otherwise return to the system at once, which clears the pages of the
    next one: up to a tenth of the time of a search over 5,000 rows.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_MMAP_MAX, 0)
        set_option(_M_TRIM_THRESHOLD, 2**31 - 1)


def _run_split(jobs: Sequence[Job], parent: int) -> list[Row]:
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches every process; the parent stops the others, without tracebacks.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        keep_freed_memory()  # every fold needs as much again
    fits = Fits()
    with one_thread():
        return [_run_job(job, fits) for job in jobs]


def _run_job(job: Job, fits: Fits) -> Row:
    numbers, error = {}, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = _measure(job, fits)
        except Exception as problem:  # noqa: BLE001 (one job must not stop the others)
            error = f"{type(problem).__name__}: {problem}"
    alpha, beta = (*job.labelling.parameters, None, None)[:2]
    return {
        "key": job.key,
        "table": job.table,
        "data": job.data,
        "labelling": str(job.labelling),
        "rate": job.labelling.rate,
        "alpha": alpha,
        "beta": beta,
        "method": job.method,
        "parameters": job.settings,
        "seed": job.split,
        **{name: numbers.get(name) for name in _SCORES},
        "status": "ok" if error is None else "error",
        "error": error,
        "details": numbers.get("details", {}),
        "warnings": sorted({_first_sentence(w) for w in caught}),
        "versions": _versions(),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "cpus": os.cpu_count(),
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "profile": "full" if job.max_rows is None else "quick",
    }


def _measure(job: Job, fits: Fits) -> Row:
    train, test = draw_split(job.sample, job.split, job.test_share)
    seed = seed_for("method", job.data, job.labelling, job.split)
    model = make_method(job.method, job.parameters, job.svm, seed, fits)
    observed = train.y if job.method == CLEAN else train.s
    truth = test.y.astype(np.int8)
    started = time.perf_counter()
    model.fit(train.X, observed.astype(np.int8))
    # predict uses its sign: one pass over the kernel serves both.
    decision = model.decision_function(test.X)
    predicted = (decision > 0.0).astype(np.int8)
    balanced = metrics.balanced_accuracy_score(truth, predicted)
    row: Row = {
        "accuracy": float(metrics.accuracy_score(truth, predicted)),
        "balanced_accuracy": float(balanced),
        "f1": float(metrics.f1_score(truth, predicted, zero_division=0.0)),
        "auc": float(metrics.roc_auc_score(truth, decision)),
    }
    row["seconds"] = round(time.perf_counter() - started, 4)
    details: Row = {
        "n_train": int(observed.size),
        "n_labelled": int(train.s.sum()),
        "n_positive": int(train.y.sum()),
    }
    if hasattr(model, "boundary_"):
        details["boundary"] = float(model.boundary_.value)
        details["true_boundary"] = job.labelling.true_boundary
    if job.method == FIGURE:
        details["panels"] = _panels(model.relabelling_, train)
    return row | {"details": details}


def _panels(relabelling: Any, train: Problem) -> Row:
    """Return the points of Figure 1 with true, observed and new labels."""
    labels = np.where(relabelling.decided, relabelling.labels, -1)
    x1, x2 = train.X.T.round(_DIGITS).tolist()
    panels = {"true": train.y, "observed": train.s, "relabelled": labels}
    found = {name: values.astype(int).tolist() for name, values in panels.items()}
    return {"x1": x1, "x2": x2} | found


def _first_sentence(caught: warnings.WarningMessage) -> str:
    text = str(caught.message).split(". ", maxsplit=1)[0]
    return f"{caught.category.__name__}: {text}"


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "probgap": probgap.__version__}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
