"""What to run: tables of experiments read from TOML, and the list of their jobs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probgap.exceptions import InvalidInputError
from research.paper.data import SIZES, Labelling, Sample
from research.paper.methods import METHODS

_SPECS = Path(__file__).parent / "specs"
_QUICK_SPLITS, _QUICK_ROWS = 2, 400
# About how much longer a method takes than one SVM.
_COST = {"PGPUcv": 60.0, "PGPU": 8.0, "Elkan": 8.0, "probgap": 12.0}


@dataclass(frozen=True, slots=True)
class Block:
    """Data sets, labellings and methods, in all combinations."""

    data: tuple[str, ...]
    labellings: tuple[Labelling, ...]
    methods: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table: random splits of each cell, the SVM that all methods share, and blocks.

    A variant of the paper's tables may take features as they are, or draw fewer points.
    """

    table: str
    title: str
    splits: int
    test_share: float
    svm: Mapping[str, Any]
    blocks: tuple[Block, ...]
    standardise: bool = True
    points: int | None = None


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
    standardise: bool = True
    points: int | None = None
    max_rows: int | None = None

    @property
    def key(self) -> str:
        """Name of the job, unique within a run."""
        return f"{self.table}/{self.data}/{self.labelling}/{self.method}/{self.split}"

    @property
    def settings(self) -> dict[str, Any]:
        """All that the numbers of the row depend on, beside its key."""
        svm, share = dict(self.svm), self.test_share
        shared = {"svm": svm, "test_share": share, "max_rows": self.max_rows}
        if not self.standardise:
            shared["standardise"] = False
        if self.points is not None:
            shared["points"] = self.points
        return {**self.parameters, **shared}

    @property
    def size(self) -> int:
        """Number of samples, training and test together."""
        most = SIZES[self.data]
        return min(most, self.points or most, self.max_rows or most)

    @property
    def sample(self) -> Sample:
        """What the split is drawn from: the same of all jobs that may share fits."""
        return Sample(self.data, self.labelling, self.size, self.standardise)

    @property
    def cost(self) -> float:
        """Relative duration, for progress and for the order of jobs."""
        return _COST.get(self.method, 1.0) * (self.size + (self.size / 500.0) ** 2)


def load_spec(path: Path) -> TableSpec:
    """Read a table from a TOML file; the folder ``specs`` has those of the paper."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        json.dumps(content)  # rows keep the parameters
    except (OSError, TypeError, ValueError) as error:
        msg = f"{path} must be a TOML file of values that JSON can hold. Got {error}."
        raise InvalidInputError(msg) from None
    keys = "table title splits test_share svm block"
    _check_keys(content, keys, str(path), optional=("standardise", "points"))
    blocks = tuple(_read_block(block, path) for block in content.pop("block"))
    return TableSpec(**content, blocks=blocks)


def _read_block(block: Any, path: Path) -> Block:
    _check_keys(block, "data rates methods", f"a block of {path}")
    for name in block["data"]:
        _check_one_of(name, SIZES, "data")
    for name in block["methods"]:
        _check_one_of(name, METHODS, "a method")
    labellings = tuple(Labelling(name, tuple(p)) for name, *p in block["rates"])
    return Block(tuple(block["data"]), labellings, block["methods"])


def paper_specs() -> list[TableSpec]:
    """Return the paper's eight tables, its figure, what it leaves out, and variants."""
    specs = [load_spec(path) for path in _SPECS.glob("*.toml")]
    return sorted(specs, key=lambda spec: spec.table)


def plan(
    specs: Iterable[TableSpec],
    *,
    tables: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    rows: Container[int] | None = None,
    splits: int | None = None,
    quick: bool = False,
) -> list[Job]:
    """List the jobs of some tables, without running any.

    ``tables`` and ``methods`` name some of these, ``rows`` the rows of each table, counted
    from 1, and ``splits`` the most splits; all by default. ``quick`` takes two splits of at
    most 400 samples: a check that everything works.
    """
    known = {spec.table: spec for spec in specs}
    most = splits or (_QUICK_SPLITS if quick else None)
    max_rows = _QUICK_ROWS if quick else None
    jobs: list[Job] = []
    for name in methods or ():
        _check_one_of(name, METHODS, "a method")
    for table in dict.fromkeys(known if tables is None else tables):
        _check_one_of(table, known, "a table")
        jobs += _jobs_of(known[table], rows, most, max_rows)
    jobs = [job for job in jobs if methods is None or job.method in methods]
    if not jobs:
        msg = f"rows must name some rows of the tables. Got {rows!r}."
        raise InvalidInputError(msg)
    return jobs


def _jobs_of(
    spec: TableSpec, rows: Container[int] | None, most: int | None, max_rows: int | None
) -> list[Job]:
    lines = [
        (data, labelling, block.methods)
        for block in spec.blocks
        for data in block.data
        for labelling in block.labellings
    ]
    return [
        Job(
            table=spec.table,
            data=data,
            labelling=labelling,
            method=method,
            parameters=parameters,
            svm=spec.svm,
            split=split,
            test_share=spec.test_share,
            standardise=spec.standardise,
            points=spec.points,
            max_rows=max_rows,
        )
        for number, (data, labelling, methods) in enumerate(lines, start=1)
        if rows is None or number in rows
        for split in range(min(spec.splits, most or spec.splits))
        for method, parameters in methods.items()
    ]


def pending(jobs: Iterable[Job], done: Iterable[Mapping[str, Any]]) -> list[Job]:
    """Return the jobs without a successful row made with the same settings."""
    known = {_identity(row) for row in done if row.get("status") == "ok"}
    return [job for job in jobs if _identity_of(job) not in known]


def rows_of(jobs: Iterable[Job], rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Return the rows of some jobs, made with the same settings, in their given order."""
    wanted = {_identity_of(job) for job in jobs}
    return [row for row in rows if _identity(row) in wanted]


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["key"], json.dumps(row.get("parameters"), sort_keys=True, default=str)


def _identity_of(job: Job) -> tuple[str, str]:
    return _identity({"key": job.key, "parameters": job.settings})


def _check_one_of(value: object, known: Collection[str], what: str) -> None:
    if value not in known:
        msg = f"{what} must be one of {list(known)}. Got {value!r}."
        raise InvalidInputError(msg)


def _check_keys(
    content: Any, keys: str, what: str, optional: Collection[str] = ()
) -> None:
    if set(content).difference(optional) != set(keys.split()):
        msg = (
            f"{what} must have the keys {sorted(keys.split())}. Got {sorted(content)}."
        )
        raise InvalidInputError(msg)
