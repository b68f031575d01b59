"""``probgap predict``: scores of new rows, a chunk at a time."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli._errors import plain_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    import pandas as pd

    from probgap.tables import TableReader

    Write = Callable[[pd.DataFrame], None]

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
            help="File for the scores: CSV, or Parquet if it is named .parquet; else "
            "they are printed.",
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
    numbered on, in the order of the files' names.

    Example: probgap predict results/model.skops new.csv --out scored.csv
    """
    with plain_errors(debug=debug):
        from probgap.cli._analysis import heard_warnings
        from probgap.cli._output import check_file
        from probgap.cli.fit import check_tool_libraries

        check_tool_libraries()
        from probgap.tables import find_tables

        sources = find_tables(table)
        if out is not None:
            check_file(out, force=force, read=(model, *sources))
        from probgap.io import load, read_metadata

        if model.is_dir():
            model /= "model.skops"
        with heard_warnings() as heard:
            fitted = load(model)
        for sentence in heard if not quiet else ():
            typer.echo(f"Warning: {sentence}", err=True)
        named = id_column or read_metadata(model).get("id")
        counts = _score_tables(
            fitted,
            sources,
            out,
            named if isinstance(named, str) else None,
            required=id_column is not None,
            as_json=as_json and out is None,
            shown=not (quiet or as_json),
        )
        if out is not None:
            _say(counts, out, as_json=as_json, quiet=quiet)


def _score_tables(
    model: Any,
    sources: list[str],
    out: Path | None,
    named: str | None,
    *,
    required: bool,
    as_json: bool,
    shown: bool,
) -> dict[str, int]:
    from probgap.cli._progress import Progress

    counts = {"rows": 0, "positive": 0}
    with closing(_open_each(model, sources, named, required=required)) as readers:
        # A first file that will not do is refused before anything is begun.
        first = next(readers)
        with (
            Progress({SCORE: 1.0}, shown=shown) as progress,
            _sink(out, as_json=as_json) as write,
        ):
            progress.begin(SCORE)
            for at, (reader, name) in enumerate(chain([first], readers)):
                for scored in _scored_chunks(model, reader, name, counts):
                    write(scored)
                    if reader.n_bytes:
                        done = at + reader.bytes_read / reader.n_bytes
                        text = f"{counts['rows']:,} rows"
                        progress.advance(done, len(sources), text)
    return counts


def _open_each(
    model: Any, sources: list[str], named: str | None, *, required: bool
) -> Generator[tuple[TableReader, str | None], None, None]:
    """Open one file after the other, and see that it has what is needed."""
    from probgap.cli._prepare import require_column
    from probgap.tables import needed_columns, open_table

    for source in sources:
        with open_table(source, chunk_rows=_ROWS_AT_ONCE) as reader:
            _require_columns(model, reader.columns)
            if required and named is not None:
                require_column("--id", named, reader.columns)
            elif named not in reader.columns:
                named = None
            # What the first file has, the others must have.
            required = True
            reader.select([*needed_columns(model), *([named] if named else [])])
            yield reader, named


def _require_columns(model: Any, columns: Sequence[str]) -> None:
    from probgap._core.errors import InvalidInputError
    from probgap.tables import missing_columns

    missing = missing_columns(model, columns)
    if missing:
        shown = ", ".join(repr(name) for name in missing[:8])
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        msg = (
            "The table must have every column that the model learnt from. Got none "
            f"named {shown}{more}."
        )
        raise InvalidInputError(msg)


def _scored_chunks(
    model: Any, reader: TableReader, named: str | None, counts: dict[str, int]
) -> Iterator[pd.DataFrame]:
    from probgap.cli._scores import score_rows

    positive = model.classes_[model[-1].positive_index_]
    for frame in reader:
        scored = score_rows(model, frame)
        first = counts["rows"] + 1
        scored.insert(0, "row", range(first, first + len(frame)))
        if named is not None:
            ids = frame[named]
            kept = ids.dtype if ids.dtype.kind in "iu" else object
            scored.insert(1, "id", ids.to_numpy(dtype=kept))
        counts["rows"] += len(frame)
        counts["positive"] += int((scored["predicted_label"] == positive).sum())
        yield scored


@contextmanager
def _sink(out: Path | None, *, as_json: bool) -> Iterator[Write]:
    """Give what writes the scores of rows, chunk after chunk."""
    if out is None:
        from probgap.cli._streams import data_stream

        stream = data_stream()
        yield _write_json(stream) if as_json else _write_csv(stream)
        stream.flush()
        return
    from probgap._core.output import whole_file

    if out.suffix.lower() in _PARQUET:
        from probgap.tables import append_parquet

        with whole_file(out, binary=True) as file, append_parquet(file) as write:
            yield write
        return
    with whole_file(out) as file:
        yield _write_csv(file)


def _write_csv(file: IO[str]) -> Write:
    from probgap.tables import write_csv

    begun = False

    def write(scored: pd.DataFrame) -> None:
        nonlocal begun
        write_csv(scored, file, header=not begun)
        begun = True

    return write


def _write_json(file: IO[str]) -> Write:
    def write(scored: pd.DataFrame) -> None:
        file.write(scored.to_json(orient="records", lines=True, double_precision=15))

    return write


def _say(counts: dict[str, int], out: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**counts, "file": str(out)}))
    elif not quiet:
        rows, positive = counts["rows"], counts["positive"]
        typer.echo(f"{rows:,} rows, {positive:,} called positive. Scores: {out}")
