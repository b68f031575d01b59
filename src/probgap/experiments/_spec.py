"""What a table of experiments is: data, labellings, methods and splits, read from TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from probgap._core.errors import InvalidInputError
from probgap.datasets import ConstantRate, InverseRate, LinearRate

REAL = "real"  # the labels that came with the data
_RATES = {"inverse": InverseRate, "linear": LinearRate, "constant": ConstantRate}
_TABLE_KEYS = {"table", "title", "splits", "test_share", "svm", "block"}
_BLOCK_KEYS = {"data", "rates", "methods"}


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which positives are left unlabelled: a mislabelled rate, or labels as they came."""

    rate: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the rate by making it."""
        if self.rate == REAL and not self.parameters:
            return
        try:
            self.function()
        except (KeyError, TypeError):
            msg = (
                f"a rate must be [{REAL!r}], or one of {sorted(_RATES)} with its "
                f"parameters. Got {[self.rate, *self.parameters]}."
            )
            raise InvalidInputError(msg) from None

    def __str__(self) -> str:
        """Spell it as in the tables: inverse(0.1, 0.5)."""
        numbers = ", ".join(f"{value:g}" for value in self.parameters)
        return f"{self.rate}({numbers})" if numbers else self.rate

    def function(self) -> InverseRate | LinearRate | ConstantRate:
        """Give the mislabelled rate as a function of the gap."""
        return _RATES[self.rate](*self.parameters)

    @property
    def true_boundary(self) -> float | None:
        """The observed gap where the true gap is 0; unknown for real labels."""
        if self.rate == REAL:
            return None
        return -float(self.function()(np.zeros(1))[0])


@dataclass(frozen=True, slots=True)
class Block:
    """Data sets, labellings and methods, each with each."""

    data: tuple[str, ...]
    labellings: tuple[Labelling, ...]
    methods: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table of experiments.

    Attributes
    ----------
    table, title : str
        Its number, and what it is about.
    splits : int
        Number of random splits, and so of runs, for each cell.
    test_share : float
        Share of the samples in the test part of a split.
    svm : mapping
        Parameters of the support vector machine that all methods of the paper share.
    blocks : tuple of Block
        What is run.
    """

    table: str
    title: str
    splits: int
    test_share: float
    svm: Mapping[str, Any]
    blocks: tuple[Block, ...]


def load_spec(path: str | Path | Traversable) -> TableSpec:
    """Read a table from a TOML file.

    Parameters
    ----------
    path : str or path
        The file; ``probgap/experiments/specs`` has those of the paper as examples.

    Returns
    -------
    TableSpec
        The table.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from probgap.experiments import load_spec
    >>> spec = load_spec(files("probgap.experiments") / "specs" / "table_7.toml")
    >>> spec.title, spec.splits
    ('UCI benchmarks, inverse mislabelled rate', 10)
    """
    if isinstance(path, str):
        path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path} must be a TOML file. Got {error}."
        raise InvalidInputError(msg) from None
    except OSError as error:
        msg = f"{path} must be a file that can be read. Got {error.strerror}."
        raise InvalidInputError(msg) from None
    _require_keys(content, _TABLE_KEYS, f"{path}")
    _require(content["svm"], dict, "svm", "a table of parameters")
    _require_plain(content["svm"], "svm")
    _require(content["block"], list, "block", "a list of tables: [[block]]")
    splits, test_share = content["splits"], content["test_share"]
    if not isinstance(splits, int) or splits < 1:
        msg = f"splits must be an integer of at least 1. Got {splits!r}."
        raise InvalidInputError(msg)
    if not isinstance(test_share, float) or not 0.0 < test_share < 1.0:
        msg = f"test_share must lie between 0 and 1. Got {test_share!r}."
        raise InvalidInputError(msg)
    return TableSpec(
        table=str(content["table"]),
        title=str(content["title"]),
        splits=splits,
        test_share=test_share,
        svm=content["svm"],
        blocks=tuple(_read_block(block, path) for block in content["block"]),
    )


def paper_specs() -> list[TableSpec]:
    """Give the eight tables of the paper, its figure, and the boundaries it speaks of.

    Returns
    -------
    list of TableSpec
        In the order of the paper.

    Examples
    --------
    >>> from probgap.experiments import paper_specs
    >>> [spec.table for spec in paper_specs()]
    ['1', '2', '3', '4', '5', '6', '7', '8', 'boundaries', 'figure1']
    """
    folder = resources.files("probgap.experiments") / "specs"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    specs = [load_spec(file) for file in files if file.name.endswith(".toml")]
    return sorted(specs, key=lambda spec: spec.table)


def _read_block(block: Mapping[str, Any], path: Path | Traversable) -> Block:
    _require(block, dict, "a block", "a table")
    _require_keys(block, _BLOCK_KEYS, f"a block of {path}")
    _require(block["data"], list, "data", "a list of names")
    _require(block["rates"], list, "rates", "a list of rates")
    _require(block["methods"], dict, "methods", "a table: [block.methods]")
    for name, parameters in block["methods"].items():
        _require(parameters, dict, name, "a table of parameters, such as {}")
        _require_plain(parameters, name)
    return Block(
        data=tuple(block["data"]),
        labellings=tuple(_read_labelling(rate) for rate in block["rates"]),
        methods=block["methods"],
    )


def _read_labelling(rate: Sequence[Any]) -> Labelling:
    if not isinstance(rate, list) or not rate or not isinstance(rate[0], str):
        msg = f"a rate must be a list of a name and numbers. Got {rate!r}."
        raise InvalidInputError(msg)
    name, *parameters = rate
    if not all(isinstance(value, int | float) for value in parameters):
        msg = f"a rate must be a list of a name and numbers. Got {rate!r}."
        raise InvalidInputError(msg)
    return Labelling(name, tuple(float(value) for value in parameters))


def _require_plain(parameters: Mapping[str, Any], what: str) -> None:
    try:
        json.dumps(parameters)
    except TypeError:
        msg = f"{what} must hold what JSON can say. Got {parameters!r}."
        raise InvalidInputError(msg) from None


def _require(value: Any, kind: type, what: str, rule: str) -> None:
    if not isinstance(value, kind) or (not value and kind is list):
        msg = f"{what} must be {rule}. Got {value!r}."
        raise InvalidInputError(msg)


def _require_keys(content: Mapping[str, Any], keys: set[str], what: str) -> None:
    if content.keys() != keys:
        msg = f"{what} must have the keys {sorted(keys)}. Got {sorted(content)}."
        raise InvalidInputError(msg)
