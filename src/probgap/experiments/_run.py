"""Run jobs, and give a row for each: numbers, or the error that stood in their way."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    roc_auc_score,
)
from threadpoolctl import threadpool_limits

from probgap.experiments._figure import picture
from probgap.experiments._methods import CLEAN, make_method
from probgap.experiments._plan import FIGURE, Job
from probgap.experiments._problem import Split, draw_split, seed_for
from probgap.experiments._shared import Memory

Row = dict[str, Any]

_LIBRARIES = ("probgap", "numpy", "scipy", "scikit-learn", "joblib", "gensim")


def run(
    jobs: Sequence[Job], *, n_jobs: int | None = None, share: bool = True
) -> Iterator[Row]:
    """Run jobs, several splits at once, and give rows as they are ready.

    The jobs of one split run together, in one process, on one thread. Which backend runs
    them is joblib's to say: inside ``joblib.parallel_config(backend="dask")`` they spread
    over a cluster. The numbers in a row depend neither on that nor on the order.

    Parameters
    ----------
    jobs : sequence of Job
        What to run; see :func:`plan`.
    n_jobs : int, default=None
        Number of splits to work on at once.
    share : bool, default=True
        Whether methods of one split share what they all need. It changes no number.

    Yields
    ------
    dict
        One row for each job, in the order in which they end.

    Examples
    --------
    >>> from probgap.experiments import paper_specs, plan, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:1]
    >>> [row["status"] for row in run(jobs)]
    ['ok']
    """
    # The longest first, so that the last ones to end are short.
    ordered = sorted(jobs, key=lambda job: job.cell)
    cells = [list(group) for _, group in groupby(ordered, key=lambda job: job.cell)]
    cells.sort(key=lambda cell: -sum(job.cost for job in cell))
    if n_jobs is not None:
        n_jobs = min(n_jobs, max(1, len(cells)))
    if n_jobs is not None:
        n_jobs = min(n_jobs, max(1, len(cells)))
    work = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
    )
    for rows in work(delayed(run_cell)(cell, share=share) for cell in cells):
        yield from rows


def run_cell(cell: Sequence[Job], *, share: bool) -> list[Row]:
    """Run the jobs of one split."""
    memory = Memory() if share else None
    with threadpool_limits(1):
        return [_run_job(job, memory) for job in cell]


def _run_job(job: Job, memory: Memory | None) -> Row:
    numbers: Row = {}
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = _measure(job, memory)
        except Exception as problem:  # noqa: BLE001 (one job must not stop the others)
            error = f"{type(problem).__name__}: {problem}"
    parameters = job.labelling.parameters
    return {
        "key": job.key,
        "table": job.table,
        "data": job.data,
        "labelling": str(job.labelling),
        "rate": job.labelling.rate,
        "alpha": parameters[0] if parameters else None,
        "beta": parameters[1] if len(parameters) > 1 else None,
        "method": job.method,
        "parameters": job.settings,
        "seed": job.split,
        "accuracy": numbers.get("accuracy"),
        "balanced_accuracy": numbers.get("balanced_accuracy"),
        "f1": numbers.get("f1"),
        "auc": numbers.get("auc"),
        "seconds": numbers.get("seconds"),
        "status": "ok" if error is None else "error",
        "error": error,
        "details": numbers.get("details", {}),
        "warnings": sorted({_first_sentence(w) for w in caught}),
        "versions": _versions(),
        "machine": _machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "profile": "full" if job.max_rows is None else "quick",
    }


def _measure(job: Job, memory: Memory | None) -> Row:
    split = draw_split(job.data, job.labelling, job.split, job.test_share, job.max_rows)
    seed = seed_for("method", job.data, job.labelling, job.split)
    name = "PGPU" if job.method == FIGURE else job.method
    model = make_method(name, job.parameters, job.svm, seed, memory)
    observed = split.y_train if job.method == CLEAN else split.s_train
    started = time.perf_counter()
    model.fit(split.X_train, observed.astype(np.int8))
    row = _score(model, split)
    row["seconds"] = round(time.perf_counter() - started, 4)
    row["details"] = {
        "n_train": int(observed.size),
        "n_labelled": int(split.s_train.sum()),
        "n_positive": int(split.y_train.sum()),
        **_boundary(model, job),
    }
    if job.method == FIGURE:
        row["details"] |= picture(model, split)
    return row


def _score(model: Any, split: Split) -> Row:
    truth = split.y_test.astype(np.int8)
    # What predict goes by, too: so one pass over the kernel serves both.
    decision = model.decision_function(split.X_test)
    predicted = (decision > 0.0).astype(np.int8)
    return {
        "accuracy": float(accuracy_score(truth, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, predicted)),
        "f1": float(f1_score(truth, predicted, zero_division=0.0)),
        "auc": float(roc_auc_score(truth, decision)),
    }


def _boundary(model: Any, job: Job) -> Row:
    if not hasattr(model, "boundary_"):
        return {}
    return {
        "boundary": float(model.boundary_.value),
        "true_boundary": job.labelling.true_boundary,
    }


def _first_sentence(caught: warnings.WarningMessage) -> str:
    text = str(caught.message).split(". ", maxsplit=1)[0]
    return f"{caught.category.__name__}: {text}"


@lru_cache(maxsize=1)
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


@lru_cache(maxsize=1)
def _machine() -> Mapping[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cpus": os.cpu_count(),
    }
