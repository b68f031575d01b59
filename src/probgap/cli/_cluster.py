"""``fit --engine dask``: Parquet files in blocks, on worker processes or a cluster."""

from __future__ import annotations

import logging
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from probgap._core.errors import InvalidInputError, load_library
from probgap.cli._prepare import (
    MemoryEngine,
    Prepared,
    Request,
    choose_columns,
    read_ids,
    read_inputs,
    require_labels,
)
from probgap.cli._scores import label_values

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap.tables import ColumnPlan, LabelColumn, RowGroups

# Rows that show what the columns are and how numbers are spread, and labelled rows
# beside them: where labels are rare, only these show which columns give them away.
_SAMPLE_ROWS = 50_000
_SAMPLE_LABELLED = 2000
_IN_ROW = " in row "  # is in every message about a row


class DaskEngine(MemoryEngine):
    """Reads Parquet files larger than memory, and fits to rows drawn from them."""

    scores_all = False

    def __init__(self, request: Request, scheduler: str | None, *, shown: bool) -> None:
        super().__init__(request)
        self._client = start_client(scheduler, request.jobs, shown=shown)
        self._workers = ExitStack()

    def read(self) -> None:
        """Read the labels of all rows, and from some the use of the columns."""
        from probgap.tables import find_tables, list_row_groups, read_label_counts

        request = self.request
        # Refused before any worker is started.
        _, names = list_row_groups(find_tables(request.source)[0])
        chosen = choose_columns(request, names)
        self._workers.enter_context(self._client)
        from probgap.dask.engine import gather, lazily
        from probgap.dask.parquet import find_pieces

        self._pieces, _ = find_pieces(request.source, names)
        parts = [lazily(_count_labels, piece, request.label) for piece in self._pieces]
        counts: Counter[str] = Counter()
        for part in gather(parts):
            counts.update(part)
        self._labels = read_label_counts(
            dict(counts), request.positive, name=request.label
        )
        require_labels(self._labels.n_labelled, self._n_rows, request.label)
        self._plan, self._preprocessor = _plan(
            self._pieces, names, chosen, self._labels
        )

    def fit(self) -> tuple[Any, Prepared]:
        """Return a fitted pipeline, and the rows that were drawn for it."""
        from sklearn.pipeline import Pipeline

        from probgap.dask import PGPUClassifier
        from probgap.dask.parquet import map_pieces

        request, marker = self.request, self._labels.positive
        X = map_pieces(_to_numbers, self._pieces, self._preprocessor, self._plan)
        marks = map_pieces(_read_marks, self._pieces, request.label, self._labels)
        classifier = PGPUClassifier(**self.parameters(marker)).fit(X, marks["observed"])
        steps = [("columns", self._preprocessor), ("classifier", classifier.model_)]
        return Pipeline(steps), self._drawn(classifier.sample_rows_)

    def about(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return how many rows in which files, and that dask computed."""
        files = tuple(dict.fromkeys(piece.file for piece in self._pieces))
        return {"rows": self._n_rows, "files": files}, {"engine": "dask"}

    def close(self) -> None:
        """Let the workers go."""
        self._workers.close()

    @property
    def _n_rows(self) -> int:
        return sum(piece.n_rows for piece in self._pieces)

    def _drawn(self, rows: NDArray[np.intp]) -> Prepared:
        """Return rows as they stand in the files."""
        import pandas as pd

        from probgap.dask.engine import gather, lazily
        from probgap.tables import Table

        request, plan = self.request, self._plan
        names = [use.name for use in plan.columns]
        parts = [
            lazily(_take_rows, piece, inside, names)
            for piece, inside in _split(self._pieces, rows)
            if inside.size
        ]
        frame = pd.concat(gather(parts), ignore_index=True)
        labelled = self._labels.find(frame[request.label])
        notes: tuple[str, ...] = ()
        if rows.size < self._n_rows:
            note = (
                f"{rows.size:,} of {self._n_rows:,} rows were drawn to fit and to check, "
                f"{np.count_nonzero(labelled):,} of {self._labels.n_labelled:,} labelled "
                "ones among them; counts are scaled to all rows."
            )
            notes = (note,)
        return Prepared(
            Table(frame, request.source, "", notes),
            read_inputs(frame, plan),
            request.label,
            replace(self._labels, labelled=labelled),
            plan,
            read_ids(frame, request.id),
            rows,
        )


@contextmanager
def start_client(scheduler: str | None, jobs: int, *, shown: bool) -> Iterator[Any]:
    """Connect to a scheduler, or start worker processes here; print where to watch."""
    name = "distributed"
    distributed = load_library(name, extra="dask", purpose="--engine dask")
    # After Ctrl-C asyncio would report every request to a worker that was left open.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with ExitStack() as opened:
        address: Any = scheduler
        if scheduler is None:
            with _interrupts_ignored():
                address = distributed.LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=logging.ERROR,
                )
            opened.callback(address.close)
        try:
            client = opened.enter_context(distributed.Client(address))
        except (OSError, TypeError, ValueError) as error:
            msg = (
                "--scheduler must be the address of a dask scheduler, such as "
                f"tcp://host:8786. Got {scheduler!r}: {error}."
            )
            raise InvalidInputError(msg) from error
        if shown:
            typer.echo(f"Dashboard: {client.dashboard_link}", err=True)
        yield client


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


def _plan(
    pieces: list[RowGroups],
    names: tuple[str, ...],
    chosen: dict[str, Any],
    labels: LabelColumn,
) -> tuple[ColumnPlan, Any]:
    """Find the use of the columns, and fit what turns them into numbers, on a sample."""
    import pandas as pd

    from probgap._core.kernels import spread_rows
    from probgap.dask.engine import gather, lazily
    from probgap.tables import make_preprocessor, plan_columns

    n_rows = sum(piece.n_rows for piece in pieces)
    rows = spread_rows(n_rows, min(n_rows, _SAMPLE_ROWS))
    share = min(1.0, _SAMPLE_LABELLED / labels.n_labelled)
    taken = (names, chosen["label"], labels, share)
    parts = [
        lazily(_take_sample, piece, inside, *taken)
        for piece, inside in _split(pieces, rows)
    ]
    sample, labelled = map(pd.concat, zip(*gather(parts), strict=True))
    sample, shown = sample.reset_index(drop=True), pd.concat([sample, labelled])
    try:
        plan = plan_columns(shown.reset_index(drop=True), **chosen)
        return plan, make_preprocessor(plan).fit(read_inputs(sample, plan))
    except InvalidInputError as error:
        if _IN_ROW not in str(error):
            raise
        # It names a row of the sample: look for the file.
        found = gather([lazily(_find_fault, piece, names, chosen) for piece in pieces])
        raise InvalidInputError(next(filter(None, found), str(error))) from None


def _split(
    pieces: list[RowGroups], rows: NDArray[np.intp]
) -> Iterator[tuple[RowGroups, NDArray[np.intp]]]:
    """Yield the pieces, each with those of the rows that are in it."""
    from probgap.dask.blocks import split_ranks

    sizes = np.array([piece.n_rows for piece in pieces])
    return zip(pieces, split_ranks(rows, sizes), strict=True)


# What workers do with a piece.


def _count_labels(piece: RowGroups, label: str) -> dict[str, int]:
    from probgap.tables import count_levels, read_row_groups

    return count_levels(read_row_groups(piece, [label])[label])


def _take_rows(piece: RowGroups, inside: NDArray[np.intp], names: Any) -> pd.DataFrame:
    from probgap.tables import read_row_groups

    return read_row_groups(piece, names).iloc[inside]


def _take_sample(
    piece: RowGroups,
    inside: Any,
    names: Any,
    label: str,
    labels: LabelColumn,
    share: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return some rows and, of the labelled rows that are not among them, a share."""
    from probgap._core.kernels import spread_rows
    from probgap.tables import read_row_groups

    frame = read_row_groups(piece, names)
    others = np.setdiff1d(np.flatnonzero(labels.find(frame[label])), inside)
    if others.size:
        few = int(np.ceil(share * others.size))
        others = others[spread_rows(others.size, few)]
    return frame.iloc[inside], frame.iloc[others]


def _find_fault(piece: RowGroups, names: Any, chosen: dict[str, Any]) -> str | None:
    """Return what is wrong with a row of the piece, if one is."""
    from probgap.tables import make_preprocessor, plan_columns, read_row_groups

    frame = read_row_groups(piece, names)
    try:
        plan = plan_columns(frame, **chosen)
        make_preprocessor(plan).fit(read_inputs(frame, plan))
    except InvalidInputError as error:
        return _in_piece(error, piece) if _IN_ROW in str(error) else None
    return None


def _to_numbers(piece: RowGroups, preprocessor: Any, plan: ColumnPlan) -> pd.DataFrame:
    import pandas as pd

    from probgap.dask.parquet import mark_source
    from probgap.tables import read_row_groups

    frame = read_row_groups(piece, plan.inputs)
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


def _in_piece(error: InvalidInputError, piece: RowGroups) -> str:
    last = piece.first + piece.n_rows
    where = f"{piece.file}, rows {piece.first + 1:,} to {last:,}"
    return f"{str(error).rstrip('.')} ({where})."
