"""The arguments and options that several commands share, spelt once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from probgap.cli._completion import complete_column


class EngineName(StrEnum):
    """What computes."""

    MEMORY = "memory"
    DASK = "dask"


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV or Parquet file, gzipped or not; - reads standard input.",
    ),
]
Tables = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV or Parquet file, gzipped or not; a folder or a pattern of Parquet "
        "files; - reads standard input.",
    ),
]
Label = Annotated[
    str,
    typer.Option(
        metavar="COLUMN",
        help="The column that marks the known positives. Empty, 0, False and no mean "
        "unlabelled.",
        autocompletion=complete_column,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="The value of the label column that marks a known positive; all others "
        "then mean unlabelled.",
        show_default=False,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="A column that names the rows; kept in the results, never learnt from.",
        autocompletion=complete_column,
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to leave out: a name, or several with commas; may be repeated.",
        autocompletion=complete_column,
        show_default=False,
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of numbers that are codes, to be taken for categories.",
        autocompletion=complete_column,
        show_default=False,
    ),
]
ClassPrior = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="The share of all rows that are positive, if it is known: 0.2, or a range: "
        "0.1,0.3. Settles what the table itself leaves open.",
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**32 - 1,
        metavar="N",
        help="Seed: the same gives the same results, bit by bit.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Processes at once; results do not change."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON for machines, nothing else.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors and results.")
]
Engine = Annotated[
    EngineName,
    typer.Option(
        help="What computes: memory, for a table that fits; or dask, for Parquet files in "
        "blocks, by --jobs processes or --scheduler.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A dask scheduler whose workers can read the files, such as "
        "tcp://host:8786; for --engine dask.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite earlier results.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Folder = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder for the results; it is made."),
]


def split_columns(given: list[str] | None, known: list[str]) -> list[str]:
    """Read repeated, comma-separated column names; a name may itself hold a comma."""
    names: list[str] = []
    for entry in given or []:
        if entry in known:
            names.append(entry)
        else:
            names.extend(part.strip() for part in entry.split(",") if part.strip())
    return names
