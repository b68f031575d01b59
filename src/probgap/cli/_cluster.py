"""``fit --engine dask``: Parquet files in blocks, on worker processes or a cluster."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from probgap._core.errors import InvalidInputError
from probgap.cli._analysis import caught_warnings
from probgap.cli._options import split_columns
from probgap.cli._output import check_folder
from probgap.cli._prepare import (
    Prepared,
    Request,
    read_ids,
    read_inputs,
    require_column,
    require_labels,
)
from probgap.cli._progress import Progress
from probgap.cli._scores import label_values

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap.cli._analysis import Analysis
    from probgap.tables import ColumnPlan, LabelColumn, RowGroups

FILES = ("report.html", "label_next.csv", "model.skops", "run.json")
# Rows that show what the columns are, and how numbers are spread.
_SAMPLE_ROWS = 50_000
# What speaks of a row says so.
_IN_ROW = " in row "
# Labelled rows beside them.
_SAMPLE_LABELLED = 2000


@dataclass(frozen=True)
class _Blocks:
    """Pieces of files, what their columns are, and how to turn them into numbers."""

    pieces: list[RowGroups]
    labels: LabelColumn
    plan: ColumnPlan
    preprocessor: Any

    @property
    def n_rows(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)


def fit_on_cluster(
    request: Request, out: Path, *, scheduler: str | None, force: bool, shown: bool
) -> Analysis:
    """Fit to Parquet files in blocks and write the results: all of them, or none."""
    check_folder(out, frozenset(FILES), force=force, read=request.source)
    from probgap.cli._analysis import CHECK, COSTS, FIT, PAGE, READ, check_fit
    from probgap.cli.fit import check_tool_libraries, rounded, write_results

    check_tool_libraries()
    started = datetime.now(UTC)
    with Progress(COSTS, shown=shown) as progress:
        with start_client(scheduler, request.jobs, shown=shown):
            progress.begin(READ)
            blocks = _look_at(request)
            progress.begin(FIT)
            with caught_warnings() as heard:
                model, classifier = _fit(blocks, request)
            prepared = _prepare_rows(blocks, request, classifier.sample_rows_)
        progress.begin(CHECK)
        analysis = check_fit(request, prepared, model, heard, started, progress)
        progress.begin(PAGE)
        files = tuple(dict.fromkeys(piece.file for piece in blocks.pieces))
        table = replace(analysis.table, rows=blocks.n_rows, files=files)
        timings = rounded(progress)
        run = replace(analysis.run, engine="dask", files=FILES, timings=timings)
        analysis = replace(analysis, table=table, run=run)
        write_results(analysis, FILES, out)
    return analysis


@contextmanager
def start_client(scheduler: str | None, jobs: int, *, shown: bool) -> Iterator[Any]:
    """Connect to a scheduler, or start worker processes here; say where to watch."""
    from probgap._core.errors import load_library

    name = "distributed"
    distributed = load_library(name, extra="dask", purpose="--engine dask")
    # After Ctrl-C nobody waits for what workers were asked: that is no news.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    if scheduler is None:
        with _interrupts_ignored():
            started = distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.ERROR,
            )
    else:
        started = None
    try:
        try:
            client = distributed.Client(scheduler if started is None else started)
        except (OSError, TypeError, ValueError) as error:
            msg = (
                "--scheduler must be the address of a dask scheduler, such as "
                f"tcp://host:8786. Got {scheduler!r}: {error}."
            )
            raise InvalidInputError(msg) from error
        with client:
            if shown:
                typer.echo(f"Dashboard: {client.dashboard_link}", err=True)
            yield client
    finally:
        if started is not None:
            started.close()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that are started now leave Ctrl-C to this one, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # elsewhere signals cannot be set
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _look_at(request: Request) -> _Blocks:
    """Find the use of the columns from some rows, and the label from all."""
    import pandas as pd

    from probgap.dask._engine import gather, lazily
    from probgap.dask._parquet import find_pieces
    from probgap.tables import make_preprocessor, plan_columns, read_label_counts

    pieces, names = find_pieces(request.source, None)
    for option, name in (("--label", request.label), ("--id", request.id)):
        if name is not None:
            require_column(option, name, names)
    drop = split_columns(list(request.drop or []), list(names))
    category = split_columns(list(request.category or []), list(names))
    for option, chosen in (("--drop", drop), ("--category", category)):
        for name in chosen:
            require_column(option, name, names)
    counted = gather([lazily(_count_labels, piece, request.label) for piece in pieces])
    counts: dict[str, int] = {}
    for part in counted:
        for value, times in part.items():
            counts[value] = counts.get(value, 0) + times
    labels = read_label_counts(counts, request.positive, name=request.label)
    n_rows = sum(piece.n_rows for piece in pieces)
    require_labels(labels.n_labelled, n_rows, request.label)
    sample, labelled = _sample(pieces, names, request.label, labels)
    asked: dict[str, Any] = {
        "label": request.label,
        "id": request.id,
        "drop": drop,
        "positive": request.positive,
        "category": category,
    }
    shown = pd.concat([sample, labelled], ignore_index=True)
    try:
        plan = plan_columns(shown, **asked)
        preprocessor = make_preprocessor(plan).fit(read_inputs(sample, plan))
    except InvalidInputError as error:
        if _IN_ROW not in str(error):
            raise
        # It speaks of a row of the sample: look for the file.
        found = gather([lazily(_find_fault, piece, names, asked) for piece in pieces])
        raise InvalidInputError(next(filter(None, found), str(error))) from None
    return _Blocks(pieces, labels, plan, preprocessor)


def _count_labels(piece: RowGroups, label: str) -> dict[str, int]:
    from probgap.tables import count_levels, read_row_groups

    return count_levels(read_row_groups(piece, [label])[label])


def _sample(
    pieces: list[RowGroups], names: Sequence[str], label: str, labels: LabelColumn
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bring rows here that are spread evenly over all files, and more labelled ones.

    Where labels are rare, only these show which columns give them away.
    """
    import pandas as pd

    from probgap._core.kernels import spread_rows
    from probgap.dask._engine import gather, lazily

    first = np.concatenate([[0], np.cumsum([piece.n_rows for piece in pieces])])
    rows = spread_rows(int(first[-1]), min(int(first[-1]), _SAMPLE_ROWS))
    inside = np.split(rows, np.searchsorted(rows, first[1:-1]))
    share = min(1.0, _SAMPLE_LABELLED / labels.n_labelled)
    taken = (tuple(names), label, labels, share)
    parts = [
        lazily(_take, piece, at - first[k], *taken)
        for k, (piece, at) in enumerate(zip(pieces, inside, strict=True))
    ]
    frames: list[Any] = gather(parts)
    spread, more = (
        pd.concat(part, ignore_index=True) for part in zip(*frames, strict=True)
    )
    return spread, more


def _take(
    piece: RowGroups,
    at: Any,
    names: tuple[str, ...],
    label: str,
    labels: LabelColumn,
    share: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give rows, and beside them a share of the labelled ones."""
    from probgap._core.kernels import spread_rows
    from probgap.tables import read_row_groups

    frame = read_row_groups(piece, names)
    others = np.setdiff1d(np.flatnonzero(labels.find(frame[label])), at)
    if others.size:
        few = int(np.ceil(share * others.size))
        others = others[spread_rows(others.size, few)]
    return frame.iloc[at], frame.iloc[others]


def _find_fault(
    piece: RowGroups, names: tuple[str, ...], asked: dict[str, Any]
) -> str | None:
    """Say which row of a piece is wrong, if one is."""
    from probgap.tables import make_preprocessor, plan_columns, read_row_groups

    frame = read_row_groups(piece, names)
    try:
        plan = plan_columns(frame, **asked)
        make_preprocessor(plan).fit(read_inputs(frame, plan))
    except InvalidInputError as error:
        return _in_piece(error, piece) if _IN_ROW in str(error) else None
    return None


def _in_piece(error: InvalidInputError, piece: RowGroups) -> str:
    last = piece.first + piece.n_rows
    where = f"{piece.file}, rows {piece.first + 1:,} to {last:,}"
    return f"{str(error).rstrip('.')} ({where})."


def _fit(blocks: _Blocks, request: Request) -> tuple[Any, Any]:
    from sklearn.pipeline import Pipeline

    from probgap.dask import PGPUClassifier
    from probgap.dask._parquet import map_pieces

    names = blocks.plan.inputs
    X = map_pieces(_prepare, blocks.pieces, blocks.preprocessor, blocks.plan, names)
    marker = blocks.labels.positive
    y = map_pieces(_read_marks, blocks.pieces, request.label, blocks.labels)["observed"]
    classifier = PGPUClassifier(
        class_prior=request.class_prior,
        pos_label=label_values(marker)[1],
        random_state=request.seed,
        n_jobs=request.jobs,
    ).fit(X, y)
    steps = [("columns", blocks.preprocessor), ("classifier", classifier.model_)]
    return Pipeline(steps), classifier


def _prepare_rows(
    blocks: _Blocks, request: Request, rows: NDArray[np.intp]
) -> Prepared:
    """Bring the rows that a fit has drawn here, as they stand in the files."""
    import pandas as pd

    from probgap.dask._blocks import split_ranks
    from probgap.dask._engine import gather, lazily
    from probgap.tables import Table, read_row_groups

    names = [use.name for use in blocks.plan.columns]
    sizes = np.array([piece.n_rows for piece in blocks.pieces])
    parts = [
        lazily(_take_rows, read_row_groups, piece, inside, names)
        for piece, inside in zip(blocks.pieces, split_ranks(rows, sizes), strict=True)
        if inside.size
    ]
    frame = pd.concat(gather(parts), ignore_index=True)
    labelled = blocks.labels.find(frame[request.label])
    notes: tuple[str, ...] = ()
    if rows.size < blocks.n_rows:
        note = (
            f"{rows.size:,} of {blocks.n_rows:,} rows were drawn to fit and to check, "
            f"{np.count_nonzero(labelled):,} of {blocks.labels.n_labelled:,} labelled "
            "ones among them; in counts, each stands for as many as were not."
        )
        notes = (note,)
    return Prepared(
        Table(frame, request.source, "", notes),
        read_inputs(frame, blocks.plan),
        request.label,
        replace(blocks.labels, labelled=labelled),
        blocks.plan,
        read_ids(frame, request.id),
        rows,
    )


def _take_rows(
    read: Callable[..., pd.DataFrame],
    piece: RowGroups,
    inside: NDArray[np.intp],
    names: list[str],
) -> pd.DataFrame:
    return read(piece, names).iloc[inside]


def _prepare(
    piece: RowGroups, preprocessor: Any, plan: ColumnPlan, names: tuple[str, ...]
) -> pd.DataFrame:
    """Turn a piece into numbers, or name it."""
    import pandas as pd

    from probgap.dask._parquet import mark_source
    from probgap.tables import read_row_groups

    frame = read_row_groups(piece, names)
    try:
        numbers = preprocessor.transform(read_inputs(frame, plan))
    except InvalidInputError as error:
        raise InvalidInputError(_in_piece(error, piece)) from None
    return mark_source(pd.DataFrame(numbers, frame.index), piece)


def _read_marks(piece: RowGroups, label: str, labels: LabelColumn) -> pd.DataFrame:
    from probgap.tables import read_row_groups

    frame = read_row_groups(piece, [label])
    marked = labels.find(frame[label]).astype(int)
    values = np.array(label_values(labels.positive))
    return frame.assign(observed=values[marked])[["observed"]]
