"""What to run: tables of experiments read from TOML, and the list of their jobs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from probgap._core.errors import InvalidInputError
from probgap.reproduction._run import DATA_SIZES, METHODS, Labelling

_QUICK_SPLITS, _QUICK_ROWS = 2, 400
# About how much longer a method takes than one SVM.
_COST = {"PGPUcv": 60.0, "PGPU": 8.0, "Elkan": 8.0, "probgap": 12.0}
_A_TABLE = "be a table, such as {}"


@dataclass(frozen=True, slots=True)
class Block:
    """Data sets, labellings and methods, in all combinations."""

    data: tuple[str, ...]
    labellings: tuple[Labelling, ...]
    methods: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table of experiments.

    Attributes
    ----------
    table, title : str
        Its number and its subject.
    splits : int
        Number of random splits, and so of runs, for each cell.
    test_share : float
        Share of the samples in the test part of a split.
    svm : mapping
        Parameters of the SVM that all methods of the paper share.
    blocks : tuple of Block
        What is run.
    """

    table: str
    title: str
    splits: int
    test_share: float
    svm: Mapping[str, Any]
    blocks: tuple[Block, ...]


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
        return f"{self.table}/{self.data}/{self.labelling}/{self.method}/{self.split}"

    @property
    def settings(self) -> dict[str, Any]:
        """All that the numbers of the row depend on, beside its key."""
        svm, share = dict(self.svm), self.test_share
        shared = {"svm": svm, "test_share": share, "max_rows": self.max_rows}
        return {**self.parameters, **shared}

    @property
    def cost(self) -> float:
        """Relative duration, for progress and for the order of jobs."""
        size = min(DATA_SIZES[self.data], self.max_rows or DATA_SIZES[self.data])
        return _COST.get(self.method, 1.0) * (size + (size / 500.0) ** 2)


def load_spec(path: str | Path | Traversable) -> TableSpec:
    """Read a table from a TOML file.

    Parameters
    ----------
    path : str or path
        The file; ``probgap/reproduction/specs`` has those of the paper as examples.

    Returns
    -------
    TableSpec
        The table.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from probgap.reproduction import load_spec
    >>> spec = load_spec(files("probgap.reproduction") / "specs" / "table_7.toml")
    >>> spec.title, spec.splits
    ('UCI benchmarks, inverse mislabelled rate', 10)
    """
    path = Path(path) if isinstance(path, str) else path
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        json.dumps(content)  # rows keep the parameters
    except (OSError, TypeError, ValueError) as error:
        msg = f"{path} must be a TOML file of values that JSON can hold. Got {error}."
        raise InvalidInputError(msg) from None
    _require_keys(content, "table title splits test_share svm block", f"{path}")
    splits, share, svm = content["splits"], content["test_share"], content["svm"]
    whole = isinstance(splits, int) and splits >= 1
    _require(whole, "splits", "be an integer of at least 1", splits)
    inside = isinstance(share, float) and 0.0 < share < 1.0
    _require(inside, "test_share", "lie between 0 and 1", share)
    _require(isinstance(svm, dict), "svm", _A_TABLE, svm)
    _require_list(content["block"], "block", "tables: [[block]]")
    blocks = tuple(_read_block(block, path) for block in content["block"])
    table, title = str(content["table"]), str(content["title"])
    return TableSpec(table, title, splits, share, svm, blocks)


def paper_specs() -> list[TableSpec]:
    """Return the eight tables of the paper, its figure, and the boundaries it mentions.

    Returns
    -------
    list of TableSpec
        In the order of the paper.

    Examples
    --------
    >>> from probgap.reproduction import paper_specs
    >>> [spec.table for spec in paper_specs()]
    ['1', '2', '3', '4', '5', '6', '7', '8', 'boundaries', 'figure1']
    """
    folder = files("probgap.reproduction") / "specs"
    specs = [load_spec(f) for f in folder.iterdir() if f.name.endswith(".toml")]
    return sorted(specs, key=lambda spec: spec.table)


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
        Two splits of at most 400 samples: a check that everything works.

    Returns
    -------
    list of Job
        The jobs, table by table.

    Examples
    --------
    >>> from probgap.reproduction import paper_specs, plan
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)
    >>> len(jobs), jobs[0].key
    (18, '1/triangles/inverse(0.1, 0.5)/SVM/0')
    """
    known = {spec.table: spec for spec in specs}
    chosen = dict.fromkeys(known if tables is None else tables)
    jobs = []
    for table in chosen:
        _require_one_of(table, known, "a table")
        jobs += _jobs_of(known[table], rows, quick=quick)
    _require(jobs, "rows", "name some rows of the tables", rows)
    return jobs


def pending(jobs: Iterable[Job], done: Sequence[Mapping[str, Any]]) -> list[Job]:
    """Return the jobs without a successful row made with the same settings.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs of a run.
    done : sequence of mapping
        Rows that exist already.

    Returns
    -------
    list of Job
        What is left to run, failed jobs included.

    Examples
    --------
    >>> from probgap.reproduction import paper_specs, pending, plan, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:2]
    >>> [job.method for job in pending(jobs, list(run(jobs[:1])))]
    ['Elkan']
    """
    known = {_identity(row) for row in done if row.get("status") == "ok"}
    return [job for job in jobs if _identity_of(job) not in known]


def rows_of(jobs: Iterable[Job], rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Return the rows of some jobs, made with the same settings, out of many rows.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs.
    rows : iterable of dict
        Rows of these and other jobs, or of these with other settings.

    Returns
    -------
    list of dict
        The rows of the jobs, in their given order.

    Examples
    --------
    >>> from probgap.reproduction import paper_specs, plan, rows_of, run
    >>> jobs = plan(paper_specs(), tables=["1"], rows=[1], quick=True)[:2]
    >>> len(rows_of(jobs[:1], run(jobs)))
    1
    """
    wanted = {_identity_of(job) for job in jobs}
    return [row for row in rows if _identity(row) in wanted]


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["key"], json.dumps(row.get("parameters"), sort_keys=True, default=str)


def _identity_of(job: Job) -> tuple[str, str]:
    return _identity({"key": job.key, "parameters": job.settings})


def _jobs_of(spec: TableSpec, rows: Container[int] | None, *, quick: bool) -> list[Job]:
    splits = min(spec.splits, _QUICK_SPLITS) if quick else spec.splits
    shared: dict[str, Any] = {"svm": spec.svm, "test_share": spec.test_share}
    shared["max_rows"] = _QUICK_ROWS if quick else None
    lines = [
        (data, labelling, block.methods)
        for block in spec.blocks
        for data in block.data
        for labelling in block.labellings
    ]
    return [
        Job(spec.table, data, labelling, method, parameters, split=split, **shared)
        for number, (data, labelling, methods) in enumerate(lines, start=1)
        if rows is None or number in rows
        for split in range(splits)
        for method, parameters in methods.items()
    ]


def _read_block(block: Any, path: Path | Traversable) -> Block:
    _require_keys(block, "data rates methods", f"a block of {path}")
    data, rates, methods = block["data"], block["rates"], block["methods"]
    _require_list(data, "data", "names")
    _require_list(rates, "rates", "rates")
    _require(isinstance(methods, dict), "methods", _A_TABLE, methods)
    for name in data:
        _require_one_of(name, DATA_SIZES, "data")
    for name, parameters in methods.items():
        _require_one_of(name, METHODS, "a method")
        _require(isinstance(parameters, dict), name, _A_TABLE, parameters)
    return Block(tuple(data), tuple(_read_labelling(rate) for rate in rates), methods)


def _read_labelling(rate: Any) -> Labelling:
    match rate:
        case [str(name), *numbers] if all(isinstance(n, int | float) for n in numbers):
            return Labelling(name, tuple(float(number) for number in numbers))
    msg = f"a rate must be a list of a name and numbers. Got {rate!r}."
    raise InvalidInputError(msg)


def _require(valid: object, what: str, rule: str, value: object) -> None:
    if not valid:
        msg = f"{what} must {rule}. Got {value!r}."
        raise InvalidInputError(msg)


def _require_one_of(value: object, known: Iterable[str], what: str) -> None:
    names = list(known)
    _require(value in names, what, f"be one of {names}", value)


def _require_list(value: object, what: str, items: str) -> None:
    _require(isinstance(value, list) and value, what, f"be a list of {items}", value)


def _require_keys(content: Any, keys: str, what: str) -> None:
    valid = isinstance(content, dict) and content.keys() == set(keys.split())
    _require(valid, what, f"have the keys {sorted(keys.split())}", content)
