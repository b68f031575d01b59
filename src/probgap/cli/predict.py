"""``probgap predict``: scores of new rows, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError
from probgap.cli import _options as given
from probgap.cli._output import check_file, check_libraries
from probgap.cli._terminal import Progress, data_stream, plain_errors, print_json

if TYPE_CHECKING:
    import pandas as pd

    from probgap.tables import TableReader

    Write = Callable[[pd.DataFrame], object]

SCORE = "Scoring rows"
_ROWS_AT_ONCE = 20_000
_PARQUET = frozenset({".parquet", ".pq"})


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="model.skops, as fit wrote it, or the folder it is in.",
        ),
    ],
    table: given.Tables,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the scores: CSV, or Parquet if it is named .parquet; "
            "printed by default.",
        ),
    ] = None,
    id_column: given.Id = None,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Score the rows of a new table with a model that fit made.

    Writes CSV or Parquet: row, the id column if there is one, gap, decided, probability,
    predicted_label. The table needs the columns that the model learnt from, in any order;
    others are ignored. Memory does not grow with the table. Rows of several files are
    numbered consecutively, in the order of the files' names.

    Example: probgap predict results/model.skops new.csv --out scored.csv
    """
    with plain_errors(debug=debug):
        check_libraries()
        from probgap.tables import find_tables

        sources = find_tables(table)
        if model.is_dir():
            model /= "model.skops"
        if out is not None:
            check_file(out, force=force, read=(model, *sources))
        if not model.is_file():
            msg = f"MODEL must be a file that probgap fit wrote. Got {model}: No such file or directory."
            raise InvalidInputError(msg)
        with closing(_open_each(sources)) as readers:
            first = next(readers)
            # All that does not need scikit-learn has been checked before it is loaded.
            fitted, noted = _load(model, quiet=quiet)
            wanted = noted if id_column is None else id_column
            name = _select(first, fitted, wanted, required=id_column is not None)
            counts = {"rows": 0, "positive": 0}
            with (
                Progress({SCORE: 1.0}, shown=not (quiet or as_json)) as progress,
                _sink(out, as_json=as_json) as write,
            ):
                progress.begin(SCORE)
                for at, reader in enumerate(chain([first], readers)):
                    if at:  # what the first file has, the others must have
                        _select(reader, fitted, name, required=True)
                    for frame in reader:
                        write(_score(fitted, frame, name, counts))
                        if reader.n_bytes:
                            done = at + reader.bytes_read / reader.n_bytes
                            text = f"{counts['rows']:,} rows"
                            progress.advance(done, len(sources), text)
        if out is not None and as_json:
            print_json({**counts, "file": str(out)})
        elif out is not None and not quiet:
            rows, positive = counts["rows"], counts["positive"]
            typer.echo(f"{rows:,} rows, {positive:,} called positive. Scores: {out}")


def _open_each(sources: list[str]) -> Generator[TableReader, None, None]:
    from probgap.tables import open_table

    for source in sources:
        with open_table(source, chunk_rows=_ROWS_AT_ONCE) as reader:
            yield reader


def _load(path: Path, *, quiet: bool) -> tuple[Any, str | None]:
    """Return a model, and the id column of the table that it was fitted to."""
    from probgap.cli._analysis import heard_warnings
    from probgap.io import load, read_metadata

    with heard_warnings() as heard:
        model = load(path)
    for sentence in heard if not quiet else ():
        typer.echo(f"Warning: {sentence}", err=True)
    noted = read_metadata(path).get("id")
    return model, noted if isinstance(noted, str) else None


def _select(
    reader: TableReader, model: Any, name: str | None, *, required: bool
) -> str | None:
    """Read only the columns that are needed, and the id column if there is one."""
    from probgap.cli._prepare import require_column
    from probgap.tables import missing_columns, needed_columns

    missing = missing_columns(model, reader.columns)
    if missing:
        shown = ", ".join(repr(column) for column in missing[:8])
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        msg = (
            "The table must have every column that the model learnt from. Got none "
            f"named {shown}{more}."
        )
        raise InvalidInputError(msg)
    if required and name is not None:
        require_column("--id", name, reader.columns)
    elif name not in reader.columns:
        name = None
    reader.select([*needed_columns(model), *([name] if name else [])])
    return name


def _score(
    model: Any, frame: pd.DataFrame, name: str | None, counts: dict[str, int]
) -> pd.DataFrame:
    """Return the scores of a chunk of rows, and count them."""
    from probgap.cli._scores import score_rows

    scored = score_rows(model, frame)
    first = counts["rows"] + 1
    scored.insert(0, "row", range(first, first + len(frame)))
    if name is not None:
        ids = frame[name]
        kept = ids.dtype if ids.dtype.kind in "iu" else object
        scored.insert(1, "id", ids.to_numpy(dtype=kept))
    positive = model.classes_[model[-1].positive_index_]
    counts["rows"] += len(frame)
    counts["positive"] += int((scored["predicted_label"] == positive).sum())
    return scored


@contextmanager
def _sink(out: Path | None, *, as_json: bool) -> Iterator[Write]:
    """Yield what writes scores, chunk after chunk."""
    from probgap._core.output import whole_file
    from probgap.tables import append_parquet, write_csv

    if out is None:
        stream = data_stream()
        if as_json:
            options: Any = {"orient": "records", "lines": True, "double_precision": 15}
            yield lambda scored: stream.write(scored.to_json(**options))
        else:
            yield _with_one_header(write_csv, stream)
        stream.flush()
    elif out.suffix.lower() in _PARQUET:
        with whole_file(out, binary=True) as file, append_parquet(file) as write:
            yield write
    else:
        with whole_file(out) as file:
            yield _with_one_header(write_csv, file)


def _with_one_header(write_csv: Callable[..., None], file: Any) -> Write:
    headers = chain([True], repeat(False))
    return lambda scored: write_csv(scored, file, header=next(headers))
