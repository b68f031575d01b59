"""The arguments and options that several commands share, and completion of columns."""

import csv
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from probgap._core.errors import refuse

_HEAD = 65_536  # bytes: a completion must be quick


class EngineName(StrEnum):
    """Where a fit is computed."""

    MEMORY = "memory"
    DASK = "dask"


class QuestionKind(StrEnum):
    """What answers are for."""

    AUDIT = "audit"
    FIND = "find"
    TEACH = "teach"


def complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the table whose names begin with what was typed."""
    source = context.params.get("table")
    if not source:  # the parser stops at an unfinished option
        parameters = context.command.params
        arguments = [p.name for p in parameters if p.param_type_name == "argument"]
        words = [word for word in context.args if not word.startswith("--")]
        source = dict(zip(arguments, words, strict=False)).get("table", "-")
    try:
        with open(source, encoding="utf-8-sig") as file:  # noqa: PTH123 (a name as typed)
            line = file.readline(_HEAD)
    except (OSError, UnicodeDecodeError):  # standard input, Parquet, gzip, missing
        return []
    tabs = source.lower().endswith(".tsv")
    separator = "\t" if tabs else max(",;\t|", key=line.count)
    names = next(csv.reader([line], delimiter=separator), [])
    return [name for name in names if name.startswith(incomplete)]


def read_class_prior(text: str | None) -> tuple[float, float] | None:
    """Read a share, or a range of two with a comma."""
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in (1, 2) or not all(0.0 < share < 1.0 for share in shares):
        refuse(
            "--class-prior must be a share between 0 and 1, or a range such as 0.1,0.3. "
            f"Got {text!r}."
        )
    return shares[0], shares[-1]


def column(description: str, *names: str, metavar: str = "COLUMN") -> Any:
    """Return an option that takes columns of the table."""
    return typer.Option(
        *names, metavar=metavar, help=description, autocompletion=complete_column
    )


_FILE = "CSV, TSV, Parquet or Excel file, gzipped or not; "
_FILE += "a folder or a pattern of CSV or Parquet files; "
_STDIN = "- reads standard input."
_LABEL = (
    "The column that marks known positives. Empty, 0, False and 'no' mean unlabelled."
)
_POSITIVE = (
    "The value of the label column that marks a known positive; all others then mean "
    "unlabelled. May be repeated: any of these values is positive."
)
_NEGATIVE = (
    "The value of the label column that marks a row somebody checked and found negative. "
    "Such rows are learnt from, and never ranked."
)
_KINDS = (
    "Say which of several --positive values each row looks like, and how many hidden "
    "positives to expect of each."
)
_ID = "A column that identifies the rows; kept in the results, never learnt from."
_GROUP = (
    "A column that names what several rows belong to, such as a customer or patient: "
    "rows of one value are held out together; not learnt from unless it is kept."
)
_DROP = "Columns to leave out, separated by commas; may be repeated."
_KEEP = (
    "Columns to learn from although they would be left out, such as numbers that look "
    "like ids; separated by commas; may be repeated."
)
_LABELLED_BY = (
    "Columns that say who was looked at: a clinic, a year, who labelled; separated by commas. "
    "How often their groups were labelled is estimated, and nothing else is learnt from them, "
    "unless they are also in --keep."
)
_CATEGORY = "Columns of numbers that are codes, to be read as categories."
_EARLIER = (
    "Answers of an earlier audit to learn from: answers.jsonl of its folder, or a file of "
    "questions, filled in. Rows are found again by --id."
)
_PRIOR = (
    "The share of all rows that are positive, if it is known: 0.2, or a range: 0.1,0.3. "
    "Settles what the table itself leaves open."
)
_SEED = "Random seed: the same seed gives the same results, bit for bit."
_JOBS = "Number of processes; it does not change results."
_ENGINE = (
    "memory, if the table fits into it; or dask, which draws rows from larger files, on --jobs "
    "processes or a --scheduler."
)
_SCHEDULER = (
    "A dask scheduler whose workers can read the files, such as tcp://host:8786; for "
    "--engine dask."
)
_FAST = (
    "Leave out the checks that fit further models: random labelling, other methods, and "
    "which columns matter. The report says so."
)
_FOLDER = "Folder for the results; created if needed."
_FITTED = "A folder that fit wrote."
_AGAIN = "The table of the fit, if it is no longer where it was."
_KIND = (
    "audit draws at random, for a valid count; find takes the likeliest first; teach takes "
    "those that would improve the model most."
)

Table = Annotated[str, typer.Argument(metavar="TABLE", help=_FILE + _STDIN)]
Label = Annotated[str, column(_LABEL)]
Positive = Annotated[list[str] | None, typer.Option(metavar="VALUE", help=_POSITIVE)]
Negative = Annotated[str | None, typer.Option(metavar="VALUE", help=_NEGATIVE)]
Kinds = Annotated[bool, typer.Option("--kinds", help=_KINDS)]
Id = Annotated[str | None, column(_ID, "--id")]
Group = Annotated[str | None, column(_GROUP)]
Drop = Annotated[list[str] | None, column(_DROP, metavar="COLUMNS")]
Keep = Annotated[list[str] | None, column(_KEEP, metavar="COLUMNS")]
LabelledBy = Annotated[list[str] | None, column(_LABELLED_BY, metavar="COLUMNS")]
Category = Annotated[list[str] | None, column(_CATEGORY, metavar="COLUMNS")]
Earlier = Annotated[
    Path | None, typer.Option("--answers", metavar="FILE", help=_EARLIER)
]
ClassPrior = Annotated[str | None, typer.Option(metavar="SHARE", help=_PRIOR)]
Fast = Annotated[bool, typer.Option("--fast", help=_FAST)]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help=_SEED)]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help=_JOBS)]
Engine = Annotated[EngineName, typer.Option(help=_ENGINE)]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help=_SCHEDULER)]
Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help=_FOLDER)]
Fitted = Annotated[Path, typer.Argument(metavar="DIR", help=_FITTED)]
TableAgain = Annotated[
    str | None, typer.Option("--table", metavar="TABLE", help=_AGAIN)
]
AuditKind = Annotated[QuestionKind, typer.Option("--kind", help=_KIND)]
AuditMode = Annotated[QuestionKind, typer.Option("--mode", help=_KIND)]
Force = Annotated[bool, typer.Option("--force", help="Overwrite earlier results.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only, for programs.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors and results.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
