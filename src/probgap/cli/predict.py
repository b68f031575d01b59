"""``probgap predict``: scores of new rows, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_file, check_libraries

if TYPE_CHECKING:
    import pandas as pd

    from probgap._core.types import Mask, Vector
    from probgap.tables import TableReader

SCORE = "Scoring rows"
_ROWS_AT_ONCE = 20_000
_DECIMALS = 8  # more would be noise
_MODEL = "model.skops, as fit wrote it, or the folder it is in."
_OUT = (
    "File for the scores: CSV, or Parquet if it is named .parquet; printed by default."
)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)],
    table: given.Tables,
    *,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    id_column: given.Id = None,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Score the rows of a new table with a fitted model.

    Writes CSV or Parquet: row, the id column if there is one, gap, decided, probability,
    predicted_label. The table needs the columns that the model learnt from, in any order;
    others are ignored. Memory does not grow with the table. Rows of several files are
    numbered consecutively, in the order of the files' names.

    Example: probgap predict results/model.skops new.csv --out scored.csv
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        from probgap.tables import find_tables

        sources = find_tables(table)
        if model.is_dir():
            model /= "model.skops"
        if out is not None:
            check_file(out, force=force, read=(model, *sources))
        if not model.is_file():
            terminal.refuse(
                f"MODEL must be a file that probgap fit wrote. Got {model}: No such file "
                "or directory."
            )
        with closing(_open_each(sources)) as readers:
            first = next(readers)
            # Slow: it loads scikit-learn, which no check before it needs.
            fitted, id_of_fit = _load(model, quiet=quiet)
            name = id_column
            if name is None and id_of_fit in first.columns:
                name = id_of_fit
            _select_columns(first, fitted, name)
            called = fitted.classes_[fitted[-1].positive_index_]
            rows, positive, shown = 0, 0, not (quiet or as_json)
            with (
                terminal.Progress({SCORE: 1.0}, shown=shown) as progress,
                _sink(out, as_json=as_json) as write,
            ):
                progress.begin(SCORE)
                scores = _score_tables(chain([first], readers), fitted, name)
                for scored, done in scores:
                    write(scored, header=rows == 0)
                    rows += len(scored)
                    positive += int((scored["predicted_label"] == called).sum())
                    progress.advance(done, len(sources), f"{rows:,} rows")
        if out is not None and as_json:
            terminal.print_json({"rows": rows, "positive": positive, "file": str(out)})
        elif out is not None and not quiet:
            typer.echo(f"{rows:,} rows, {positive:,} called positive. Scores: {out}")


def _open_each(sources: list[str]) -> Generator[TableReader, None, None]:
    from probgap.tables import open_table

    for source in sources:
        with open_table(source, chunk_rows=_ROWS_AT_ONCE) as reader:
            yield reader


def _load(path: Path, *, quiet: bool) -> tuple[Any, Any]:
    """Return a model, and the id column of the table that it was fitted to."""
    from probgap.io import load, read_metadata

    with terminal.caught_warnings() as raised:
        model = load(path)
    for warning in raised if not quiet else ():
        typer.echo(f"Warning: {warning}", err=True)
    return model, read_metadata(path).get("id")


def _select_columns(reader: TableReader, model: Any, name: str | None) -> None:
    """Read only the columns that are needed, and the id column if there is one."""
    from probgap.cli._prepare import require_column
    from probgap.tables import missing_columns, needed_columns

    missing = missing_columns(model, reader.columns)
    if missing:
        shown = ", ".join(repr(column) for column in missing[:8])
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        terminal.refuse(
            f"The table has no {shown}{more}: it needs every column that the model was "
            "fitted to."
        )
    if name is not None:
        require_column("--id", name, reader.columns)
    reader.select([*needed_columns(model), *([] if name is None else [name])])


def _score_tables(
    readers: Iterable[TableReader], model: Any, name: str | None
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yield the scores of rows, a chunk at a time, and how many tables are done."""
    classifier, first = model[-1], 1
    for at, reader in enumerate(readers):
        _select_columns(reader, model, name)
        for frame in reader:
            samples = model[:-1].transform(frame)
            chances = classifier.predict_proba(samples)
            gap = classifier.gap_estimator_.transform(samples)[:, 0]
            scored = score_rows(classifier, gap, chances[:, classifier.positive_index_])
            scored.insert(0, "row", range(first, first + len(frame)))
            if name is not None:
                ids = frame[name]
                kept = ids.dtype if ids.dtype.kind in "iu" else object
                scored.insert(1, "id", ids.to_numpy(dtype=kept))
            first += len(frame)
            share = reader.bytes_read / reader.n_bytes if reader.n_bytes else 0.0
            yield scored, at + min(1.0, share)


def score_rows(
    classifier: Any, gap: Vector, probability: Vector, labelled: Mask | None = None
) -> pd.DataFrame:
    """Return each row's gap, its decision by the gap alone, probability and prediction."""
    import numpy as np
    import pandas as pd

    lower, positive = classifier.boundary_.value, classifier.positive_index_
    decided = np.select(
        [gap <= lower, gap > max(0.0, lower)],
        ["negative", "positive"],
        default="undecided",
    )
    if labelled is not None:
        decided[labelled] = "positive"
    # predict would compute the kernel once more for the same answer.
    called = np.where(probability > 0.5, positive, 1 - positive)
    return pd.DataFrame(
        {
            "gap": np.round(gap, _DECIMALS),
            "decided": decided,
            "probability": np.round(probability, _DECIMALS),
            "predicted_label": classifier.classes_[called],
        }
    )


@contextmanager
def _sink(out: Path | None, *, as_json: bool) -> Iterator[Callable[..., Any]]:
    """Yield a function that writes scores, chunk after chunk, the first with a header."""
    from probgap._core.output import whole_file
    from probgap.tables import append_parquet, write_csv

    if out is not None and out.suffix.lower() in (".parquet", ".pq"):
        with whole_file(out, binary=True) as file, append_parquet(file) as write:
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
