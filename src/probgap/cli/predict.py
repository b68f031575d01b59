"""``probgap predict``: scores of new rows, a chunk at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_file, check_libraries

if TYPE_CHECKING:
    from pandas import DataFrame

    from probgap._core.types import Mask
    from probgap.tables import TableClassifier, TableReader

SCORE = "Scoring rows"
_ROWS_AT_ONCE = 20_000
_MODEL = "model.probgap, as fit wrote it, or the folder it is in."
_OUT = (
    "File for the scores: CSV, or Parquet if it is named .parquet; printed by default."
)
_STRICT = "Refuse a table with columns that left the range of the fit."


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)],
    table: given.Table,
    *,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    id_column: given.Id = None,
    strict: Annotated[bool, typer.Option("--strict", help=_STRICT)] = False,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Score the rows of a new table with a fitted model.

    Writes CSV or Parquet: row, the id column if there is one, gap, decided, probability,
    predicted_label, and the range of what the probability may mean, probability_low to
    probability_high. The table needs the columns that the model learnt from, in any order;
    others are ignored. Memory does not grow with the table. Rows of several files are
    numbered consecutively, in the order of the files' names.

    A column that left its training range is named on standard error, in what --json prints
    beside --out, and in the metadata of a Parquet file: in another unit, empty, or with
    categories that the fit did not have. With --strict such a table is refused.

    Example: probgap predict results/model.probgap new.csv --out scored.csv
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        from probgap.tables import find_tables

        sources = find_tables(table)
        if model.is_dir():
            model /= "model.probgap"
        if out is not None:
            check_file(out, force=force, read=(model, *sources))
        if not model.is_file():
            refuse(
                f"MODEL must be a file that probgap fit wrote. Got {model}: No such file "
                "or directory."
            )
        rows, positive = 0, 0
        drift: list[dict[str, Any]] = []
        with (
            terminal.Progress({SCORE: 1.0}, shown=not (quiet or as_json)) as progress,
            _sink(out, drift, as_json=as_json) as write,
        ):
            chunks: Iterable[tuple[DataFrame, Mask]] = _score_rows(
                model,
                sources,
                progress,
                drift,
                id_column=id_column,
                strict=strict,
                quiet=quiet,
            )
            if strict and out is None:
                chunks = list(chunks)  # of a table that is refused, nothing is printed
            for scored, called in chunks:
                write(scored, header=rows == 0)
                rows += len(scored)
                positive += int(called.sum())
        for entry in drift if not quiet else ():
            typer.echo(f"Warning: {entry['notice']}", err=True)
        if out is not None and as_json:
            counted = {"rows": rows, "positive": positive}
            terminal.print_json({**counted, "file": str(out), "drift": drift})
        elif out is not None and not quiet:
            total = f"{rows:,} row{'s' if rows != 1 else ''}"
            typer.echo(f"{total}, {positive:,} called positive. Scores: {out}")


def _score_rows(
    path: Path,
    sources: list[str],
    progress: terminal.Progress,
    drift: list[dict[str, Any]],
    *,
    id_column: str | None,
    strict: bool,
    quiet: bool,
) -> Iterator[tuple[DataFrame, Mask]]:
    """Yield the scores of rows, a chunk at a time, and which are called positive.

    At the end, notices of columns that left their training range are added to ``drift``.
    """
    from probgap.tables import TableReader

    model, name, n_done = None, id_column, 0
    for at, source in enumerate(sources):
        with TableReader(source, chunk_rows=_ROWS_AT_ONCE) as reader:
            if model is None:
                # Slow: it loads scikit-learn, which no check before it needs.
                from probgap.tables import DriftWatch

                model, scorer = _load(path, quiet=quiet)
                watch = DriftWatch(model.ranges_)
                if name is None and model.id in reader.columns:
                    name = model.id
            _select_columns(reader, model.plan_.inputs, name)
            if at == 0:
                progress.begin(SCORE)
            for frame in reader:
                scored, called = _score_frame(model, scorer, frame)
                watch.update(frame)
                scored.insert(0, "row", range(n_done + 1, n_done + len(frame) + 1))
                if name is not None:
                    ids = frame[name]
                    kept = ids.dtype if ids.dtype.kind in "iu" else object
                    scored.insert(1, "id", ids.to_numpy(dtype=kept))
                yield scored, called
                n_done += len(frame)
                share = reader.bytes_read / reader.n_bytes if reader.n_bytes else 0.0
                done = at + min(1.0, share)
                progress.advance(done, len(sources), f"{n_done:,} rows")
    drift += watch.notices()
    if strict and drift:
        first, *others = drift
        names = terminal.first_few([repr(entry["column"]) for entry in others], 5)
        so = f", and so did {names}" if others else ""
        refuse(f"{first['notice'].rstrip('.')}{so}; --strict refuses that.")


def _score_frame(
    model: TableClassifier, scorer: Any, frame: DataFrame
) -> tuple[DataFrame, Mask]:
    """Return the scores of some rows, and which are called positive."""
    from probgap.reporting import score_rows

    classifier = model.pipeline_[-1]
    samples = model.pipeline_[:-1].transform(frame)
    gap = classifier.gap_estimator_.transform(samples)[:, 0]
    chance = scorer.predict_proba(samples)[:, classifier.positive_index_]
    return score_rows(classifier, gap, chance), chance > 0.5


def _load(path: Path, *, quiet: bool) -> tuple[TableClassifier, Any]:
    """Return a model, and what gives prepared rows their probabilities."""
    from probgap.io import load

    with terminal.caught_warnings() as raised:
        found = load(path)
    for warning in raised if not quiet else ():
        typer.echo(f"Warning: {warning}", err=True)
    model = getattr(found, "model", found)  # that answers have corrected
    if not hasattr(model, "pipeline_") or not hasattr(model.pipeline_[-1], "boundary_"):
        refuse(
            f"MODEL must be a file that probgap fit wrote. Got {path}, which holds a "
            f"{type(model).__name__}."
        )
    classifier = model.pipeline_[-1]
    return model, classifier if model is found else replace(found, model=classifier)


def _select_columns(
    reader: TableReader, needed: Sequence[str], name: str | None
) -> None:
    from probgap.cli._table import require_column

    if missing := [name for name in needed if name not in reader.columns]:
        refuse(
            f"The table has no {terminal.first_few(list(map(repr, missing)), 8)}: it needs "
            "every column that the model was fitted to."
        )
    if name is not None:
        require_column("--id", name, reader.columns)
    reader.select([*needed, *([] if name is None else [name])])


@contextmanager
def _sink(
    out: Path | None, drift: list[dict[str, Any]], *, as_json: bool
) -> Iterator[Callable[..., Any]]:
    """Yield a function that writes scores, chunk after chunk, the first with a header."""
    from probgap._core.output import whole_file
    from probgap.tables import append_parquet, write_csv

    if out is not None and out.suffix.lower() in (".parquet", ".pq"):
        with (
            whole_file(out, binary=True) as file,
            append_parquet(file, lambda: {"probgap.drift": json.dumps(drift)}) as write,
        ):
            yield lambda scored, **_: write(scored)
        return
    stream = nullcontext(terminal.data_stream()) if out is None else whole_file(out)
    with stream as file:
        if out is None and as_json:
            options: Any = {"orient": "records", "lines": True, "double_precision": 15}
            yield lambda scored, **_: file.write(scored.to_json(**options))
        else:
            yield lambda scored, header: write_csv(scored, file, header=header)
        file.flush()
