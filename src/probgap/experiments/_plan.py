"""From tables to jobs: what a run will do, before it does any of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probgap._core.errors import InvalidInputError
from probgap.experiments._methods import check_method
from probgap.experiments._problem import DATA, size_of
from probgap.experiments._spec import Labelling, TableSpec

FIGURE = "figure"  # the pseudo-method that keeps the points of a picture
_QUICK_SPLITS = 2
_QUICK_ROWS = 400
# About how much longer a method takes than one support vector machine.
_COST = {"PGPUcv": 60.0, "PGPU": 8.0, "Elkan": 8.0, "probgap": 12.0}


@dataclass(frozen=True, slots=True)
class Job:
    """One method on one split of one data set under one labelling: one result row."""

    table: str
    data: str
    labelling: Labelling
    method: str
    parameters: Mapping[str, Any]
    svm: Mapping[str, Any]
    split: int
    test_share: float
    max_rows: int | None = None

    @property
    def key(self) -> str:
        """Name of the job, unique within a run."""
        return "/".join(
            [self.table, self.data, str(self.labelling), self.method, str(self.split)]
        )

    @property
    def cell(self) -> tuple[str, str, str, int]:
        """What jobs have in common that share a split."""
        return (self.table, self.data, str(self.labelling), self.split)

    @property
    def settings(self) -> dict[str, Any]:
        """All that the numbers of the row depend on, beside its key."""
        return {
            **self.parameters,
            "svm": dict(self.svm),
            "test_share": self.test_share,
            "max_rows": self.max_rows,
        }

    @property
    def cost(self) -> float:
        """About how long it takes, in no unit: for progress and for the order of jobs."""
        size = size_of(self.data, self.max_rows)
        return _COST.get(self.method, 1.0) * (size + (size / 500.0) ** 2)


def plan(
    specs: Iterable[TableSpec],
    *,
    tables: Collection[str] | None = None,
    rows: Container[int] | None = None,
    quick: bool = False,
) -> list[Job]:
    """List the jobs of some tables, without running any.

    Parameters
    ----------
    specs : iterable of TableSpec
        The tables.
    tables : collection of str, default=None
        Which of them; ``None`` for all.
    rows : container of int, default=None
        Which rows of each table, counted from 1; ``None`` for all.
    quick : bool, default=False
        Two splits of at most 400 samples: to see that all works, not to compare.

    Returns
    -------
    list of Job
        The jobs, table by table.

    Examples
    --------
    >>> from probgap.experiments import paper_specs, plan
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)
    >>> len(jobs), jobs[0].key
    (18, '1/triangles/inverse(0.1, 0.5)/SVM/0')
    """
    known = {spec.table: spec for spec in specs}
    chosen = list(known) if tables is None else list(tables)
    for table in chosen:
        if table not in known:
            msg = f"a table must be one of {sorted(known)}. Got {table!r}."
            raise InvalidInputError(msg)
    jobs = [
        job
        for table in dict.fromkeys(chosen)
        for job in _jobs_of(known[table], rows=rows, quick=quick)
    ]
    if not jobs:
        msg = f"rows must name some rows of the tables. Got {rows}."
        raise InvalidInputError(msg)
    return jobs


def pending(jobs: Iterable[Job], done: Sequence[Mapping[str, Any]]) -> list[Job]:
    """Leave out the jobs that have a row without an error, made with equal settings.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs of a run.
    done : sequence of mapping
        Rows that are there already.

    Returns
    -------
    list of Job
        What is still to do, jobs that failed among it.

    Examples
    --------
    >>> from probgap.experiments import paper_specs, pending, plan, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:2]
    >>> [job.method for job in pending(jobs, list(run(jobs[:1])))]
    ['Elkan']
    """
    finished = [row for row in done if row.get("status") == "ok"]
    known = {_identity(row["key"], row.get("parameters")) for row in finished}
    return [job for job in jobs if _identity(job.key, job.settings) not in known]


def rows_of(jobs: Iterable[Job], rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Pick the rows of some jobs, made with equal settings, out of those of many runs.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs.
    rows : iterable of dict
        Rows of these and perhaps other jobs, or of other settings of these.

    Returns
    -------
    list of dict
        The rows of the jobs, in the order they were given.

    Examples
    --------
    >>> from probgap.experiments import paper_specs, plan, rows_of, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:2]
    >>> len(rows_of(jobs[:1], run(jobs)))
    1
    """
    wanted = {_identity(job.key, job.settings) for job in jobs}
    return [
        row for row in rows if _identity(row["key"], row.get("parameters")) in wanted
    ]


def _identity(key: str, settings: Any) -> tuple[str, str]:
    return key, json.dumps(settings, sort_keys=True, default=str)


def _jobs_of(spec: TableSpec, *, rows: Container[int] | None, quick: bool) -> list[Job]:
    jobs = []
    number = 0
    for block in spec.blocks:
        for method in block.methods:
            if method != FIGURE:
                check_method(method)
        for data in block.data:
            if data not in DATA:
                msg = f"data must be one of {DATA}. Got {data!r}."
                raise InvalidInputError(msg)
            for labelling in block.labellings:
                number += 1
                if rows is not None and number not in rows:
                    continue
                jobs += [
                    Job(
                        table=spec.table,
                        data=data,
                        labelling=labelling,
                        method=method,
                        parameters=parameters,
                        svm=spec.svm,
                        split=split,
                        test_share=spec.test_share,
                        max_rows=_QUICK_ROWS if quick else None,
                    )
                    for split in range(
                        min(spec.splits, _QUICK_SPLITS) if quick else spec.splits
                    )
                    for method, parameters in block.methods.items()
                ]
    return jobs
