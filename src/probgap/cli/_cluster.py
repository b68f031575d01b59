"""``fit --engine dask``: Parquet files in blocks, on worker processes or a cluster."""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from probgap._core.errors import InvalidInputError
from probgap.cli._account import describe_run
from probgap.cli._analysis import add_heard, caught_warnings
from probgap.cli._options import split_columns
from probgap.cli._output import check_folder, write_folder
from probgap.cli._prepare import Request, read_inputs, require_column, require_labels
from probgap.cli._scores import label_values

if TYPE_CHECKING:
    import pandas as pd

    from probgap.tables import ColumnPlan, LabelColumn, RowGroups

FILES = ("model.skops", "run.json")
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
) -> dict[str, Any]:
    """Fit to Parquet files in blocks and write the model: all of it, or nothing."""
    check_folder(out, frozenset(FILES), force=force, read=request.source)
    from probgap.cli.fit import check_tool_libraries

    check_tool_libraries()
    started = datetime.now(UTC)
    with start_client(scheduler, request.jobs, shown=shown):
        blocks = _look_at(request)
        with caught_warnings() as heard:
            model, classifier = _fit(blocks, request, shown=shown)
        found = _count_found(blocks, request, model, classifier)
    account = _account(request, blocks, model, classifier, found, started)
    add_heard(account["warnings"], heard)
    _write(account, model, out)
    return account


@contextmanager
def start_client(scheduler: str | None, jobs: int, *, shown: bool) -> Iterator[Any]:
    """Connect to a scheduler, or start worker processes here; say where to watch."""
    from probgap._core.optional import load_library

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
    taken = (tuple(names), label, labels.positive, share)
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
    marker: str,
    share: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give rows, and beside them a share of the labelled ones."""
    from probgap._core.kernels import spread_rows
    from probgap.tables import is_level, read_row_groups

    frame = read_row_groups(piece, names)
    others = np.setdiff1d(np.flatnonzero(is_level(frame[label], marker)), at)
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


def _fit(blocks: _Blocks, request: Request, *, shown: bool) -> tuple[Any, Any]:
    from sklearn.pipeline import Pipeline

    from probgap.dask import PGPUClassifier
    from probgap.dask._parquet import map_pieces

    names = blocks.plan.inputs
    X = map_pieces(_prepare, blocks.pieces, blocks.preprocessor, blocks.plan, names)
    marker = blocks.labels.positive
    y = map_pieces(_read_marks, blocks.pieces, request.label, marker)["labelled"]
    classifier = PGPUClassifier(random_state=request.seed, verbose=int(shown))
    classifier.fit(X, y)
    negative, positive = label_values(marker)
    model = classifier.model_
    model.set_params(pos_label=positive)
    model.classes_ = np.sort(np.array([negative, positive]))
    model.positive_index_ = int(model.classes_.tolist().index(positive))
    pipeline = Pipeline([("columns", blocks.preprocessor), ("classifier", model)])
    return pipeline, classifier


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


def _read_marks(piece: RowGroups, label: str, marker: str) -> pd.DataFrame:
    from probgap.tables import is_level, read_row_groups

    frame = read_row_groups(piece, [label])
    return frame.assign(labelled=is_level(frame[label], marker))[["labelled"]]


def _count_found(
    blocks: _Blocks, request: Request, model: Any, classifier: Any
) -> dict[str, Any]:
    from probgap.dask._engine import add_up, lazily
    from probgap.pgpu._prior import LEVEL, count_hidden

    marker = blocks.labels.positive
    parts = [
        lazily(_count_called, piece, model, blocks.plan, request.label, marker)
        for piece in blocks.pieces
    ]
    (called,) = add_up(parts)
    hidden, interval = count_hidden(classifier, blocks.n_rows)
    return {
        "rows": blocks.n_rows,
        "labelled": blocks.labels.n_labelled,
        "unlabelled": blocks.n_rows - blocks.labels.n_labelled,
        "hidden": hidden,
        "hidden_interval": list(interval),
        "level": LEVEL,
        "share_positive": classifier.estimated_class_prior_,
        "share_interval": list(classifier.estimated_class_prior_interval_),
        "called_positive": int(called),
        "passes": classifier.n_passes_,
    }


def _count_called(
    piece: RowGroups, model: Any, plan: ColumnPlan, label: str, marker: str
) -> tuple[int]:
    from probgap.tables import is_level, read_row_groups

    frame = read_row_groups(piece, [*plan.inputs, label])
    classifier = model[-1]
    predicted = model.predict(read_inputs(frame, plan))
    positive = predicted == classifier.classes_[classifier.positive_index_]
    return (int(np.count_nonzero(positive & ~is_level(frame[label], marker))),)


def _account(
    request: Request,
    blocks: _Blocks,
    model: Any,
    classifier: Any,
    found: dict[str, Any],
    started: datetime,
) -> dict[str, Any]:
    labels = blocks.labels
    files = list(dict.fromkeys(piece.file for piece in blocks.pieces))
    run = describe_run(request, model, started)
    run["engine"] = "dask"
    run["files"] = list(FILES)
    run["timings"] = {"fit": round((datetime.now(UTC) - started).total_seconds(), 3)}
    return {
        "format": 1,
        "table": {
            "name": request.source,
            "files": files,
            "rows": blocks.n_rows,
            "label": request.label,
            "positive": labels.positive,
            "unlabelled": labels.unlabelled,
            "sentence": labels.sentence,
            "id": request.id,
            "columns": blocks.plan.as_dicts(),
        },
        "found": found,
        "boundary": asdict(classifier.boundary_),
        "warnings": [],
        "run": run,
    }


def _write(account: dict[str, Any], model: Any, out: Path) -> None:
    from probgap.io import save

    table = account["table"]
    metadata = {key: table[key] for key in ("name", "label", "id", "positive")}
    text = json.dumps(account, ensure_ascii=False, allow_nan=False, indent=1)
    write_folder(
        out,
        {
            "model.skops": lambda path: save(model, path, metadata=metadata),
            "run.json": lambda path: path.write_text(text + "\n", encoding="utf-8"),
        },
    )


def show_found(account: dict[str, Any], out: Path) -> None:
    """Print the main points of a fit on blocks."""
    found, table = account["found"], account["table"]
    files = len(table["files"])
    typer.echo(
        f"{table['name']}: {found['rows']:,} rows in {files:,} "
        f"file{'s' if files != 1 else ''}."
    )
    typer.echo(table["sentence"])
    low, high = found["hidden_interval"]
    typer.echo(
        f"Hidden positives: {low:,.0f} to {high:,.0f} ({found['level']:.0%} interval), "
        f"best estimate {found['hidden']:,.0f}."
    )
    typer.echo(
        f"{found['called_positive']:,} of {found['unlabelled']:,} unlabelled rows are "
        f"called positive. Boundary {account['boundary']['value']:.2f}."
    )
    for warning in account["warnings"]:
        typer.echo(f"! {warning['what']} {warning['do']}".rstrip())
    typer.echo(
        f"{out / 'model.skops'} is the model; probgap predict {out} TABLE scores rows."
    )
