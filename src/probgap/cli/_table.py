"""The table of a command: its columns as the options name them, and its rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from probgap import tables
from probgap._core.errors import refuse
from probgap._core.runtime import free_memory
from probgap.cli._terminal import command_line, first_few, one_line
from probgap.tables import Table

# A table takes at least as many times the size of its files.
_TIMES_IN_MEMORY = 3


@dataclass(frozen=True)
class Options:
    """What a user asks ``fit`` or ``compare`` to do."""

    source: str
    label: str
    positive: Sequence[str] | None = None
    id: str | None = None
    group: str | None = None
    drop: Sequence[str] | None = None
    category: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    truth: str | None = None  # a column to judge by, never to learn from
    negative: str | None = None
    labelled_by: Sequence[str] | None = None
    kinds: bool = False  # whether the report tells several positive values apart
    class_prior: tuple[float, float] | None = None
    answers: Path | None = None  # of an earlier audit
    seed: int = 0
    jobs: int = 1
    fast: bool = False  # leave out the checks that fit something else
    engine: str | None = None  # "dask", if rows are drawn from blocks
    scheduler: str | None = None  # of its workers
    command: str = field(default_factory=command_line)

    def choose_columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Return which columns have a use of their own, or refuse one that is not there."""
        taken: dict[str, str] = {}
        for option in ("label", "id", "truth"):
            name = getattr(self, option)
            if name is not None:
                require_column(f"--{option}", name, names)
                if name in taken:
                    refuse(
                        f"--{option} must name another column than --{taken[name]}. Got "
                        f"{name!r} for both."
                    )
                taken[name] = option
        if self.group is not None:
            require_column("--group", self.group, names)
        drop = _split_columns("--drop", self.drop, names)
        return {
            "id": self.id,
            "group": self.group,
            "drop": drop if self.truth is None else [*drop, self.truth],
            "category": _split_columns("--category", self.category, names),
            "keep": _split_columns("--keep", self.keep, names),
            "labelled_by": _split_columns("--labelled-by", self.labelled_by, names),
        }


def _split_columns(
    option: str, given: Sequence[str] | None, names: Sequence[str]
) -> list[str]:
    """Read repeated, comma-separated column names; a name may itself hold a comma."""
    chosen: list[str] = []
    for entry in given or []:
        parts = [entry] if entry in names else map(str.strip, entry.split(","))
        chosen += [part for part in parts if part]
    for name in chosen:
        require_column(option, name, names)
    return chosen


def require_column(option: str, name: str, names: Sequence[str]) -> None:
    """Refuse a column that the table does not have, and suggest a similar one."""
    if name in names:
        return
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if len(names) == 1 and name in re.split(r"[,;|]", names[0]):
        hint = (
            " The table was read as one column: a file named .tsv is cut at tabs alone."
        )
    has = first_few([one_line(column) for column in names], 8)
    rule = f"{option} must name a column of the table, which has {has}."
    refuse(f"{rule} Got {name!r}.{hint}")


def read_rows(options: Options, *, shown: bool = False) -> Table:
    """Read the whole table, or rows drawn from it; refuse it as soon as it will not do."""
    files, drawn = tables.find_tables(options.source), options.engine is not None
    if drawn or Path(files[0]).is_file():  # anything else can be read only once
        with tables.TableReader(files[0]) as reader:
            columns = options.choose_columns(reader.columns)
        if drawn:
            from probgap.cli._cluster import draw_from_files

            return draw_from_files(options, columns, shown=shown)
        _require_memory(options.source, files)
    return tables.read_table(options.source)


def _require_memory(source: str, files: Sequence[str]) -> None:
    needed = _TIMES_IN_MEMORY * sum(Path(file).stat().st_size for file in files)
    free = free_memory()
    if free is not None and needed > free:
        refuse(
            f"{source} takes about {needed / 1e9:.1f} GB in memory, where {free / 1e9:.1f} "
            "GB are free; use probgap fit --engine dask, or fewer rows or columns."
        )
