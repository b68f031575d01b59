"""``fit --engine dask``: Parquet files in blocks, on worker processes or a cluster."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from probgap import tables
from probgap._core.errors import InvalidInputError, load_library
from probgap.cli._output import FILES
from probgap.cli._prepare import (
    MemoryEngine,
    Prepared,
    Request,
    choose_columns,
    observed_labels,
    read_inputs,
    require_labels,
)
from probgap.cli._terminal import refuse, signal_handler
from probgap.tables import ColumnPlan, LabelColumn, RowGroups

# Rows that show how columns are used and distributed, and further labelled rows: where
# labels are rare, only these show which columns mirror them.
_SAMPLE_ROWS = 50_000
_SAMPLE_LABELLED = 2000


class DaskEngine(MemoryEngine):
    """Reads Parquet files larger than memory, and fits to a sample of their rows."""

    name = "dask"
    files = tuple(name for name in FILES if name != "scores.csv")

    def __init__(self, request: Request, scheduler: str | None, *, shown: bool) -> None:
        super().__init__(request)
        self._client = start_client(scheduler, request.jobs, shown=shown)
        self._workers = ExitStack()

    def read(self) -> None:
        """Read the labels of all rows, and plan the columns by a sample."""
        request = self.request
        # A bad request is refused before any worker is started.
        files = tables.find_tables(request.source, text=False)
        _, names = tables.list_row_groups(files[0])
        chosen = choose_columns(request, names)
        self._workers.enter_context(self._client)
        from probgap.dask.parquet import find_pieces

        self._pieces, _ = find_pieces(request.source, names)
        self._n_rows = sum(piece.n_rows for piece in self._pieces)
        counts: Counter[str] = Counter()
        for part in self._on_workers(_count_labels, request.label):
            counts.update(part)
        self._labels = tables.read_label_counts(
            dict(counts), request.positive, name=request.label
        )
        require_labels(self._labels.n_labelled, self._n_rows, request.label)
        self._plan, self._preprocessor = self._plan_columns(names, chosen)

    def _plan_columns(
        self, names: tuple[str, ...], chosen: dict[str, Any]
    ) -> tuple[ColumnPlan, Any]:
        """Plan the use of the columns, and fit the preprocessor, on a sample of rows."""
        found = self._on_workers(_find_labelled, chosen["label"], self._labels)
        first = np.cumsum([0, *(piece.n_rows for piece in self._pieces)])
        labelled = np.concatenate(
            [at + of for at, of in zip(found, first, strict=False)]
        )
        labelled = labelled[_spread(labelled.size, _SAMPLE_LABELLED)]
        rows = np.union1d(_spread(self._n_rows, _SAMPLE_ROWS), labelled)
        parts = self._on_workers(_take_rows, names, rows=rows)
        try:
            sample = pd.concat(parts, ignore_index=True)
            plan = tables.plan_columns(sample, **chosen)
            return plan, tables.make_preprocessor(plan).fit(read_inputs(sample, plan))
        except InvalidInputError:
            # It may name a row of the sample: find the file of that row.
            for piece, part in zip(self._pieces, parts, strict=True):
                if part is not None:
                    with _located_errors(piece, " in row "):
                        tables.plan_columns(part, **chosen)
            raise

    def fit(self) -> tuple[Any, Prepared]:
        """Return a fitted pipeline, and the rows that were drawn for it."""
        from sklearn.pipeline import Pipeline

        from probgap.dask import PGPUClassifier
        from probgap.dask.parquet import map_pieces

        labels = self._labels
        X = map_pieces(_to_numbers, self._pieces, self._preprocessor, self._plan)
        y = map_pieces(_read_observed, self._pieces, self.request.label, labels)
        classifier = PGPUClassifier(**self.parameters(labels)).fit(X, y["observed"])
        steps = [("columns", self._preprocessor), ("classifier", classifier.model_)]
        return Pipeline(steps), self._read_sample(classifier.sample_rows_)

    def close(self) -> None:
        """Stop the workers."""
        self._workers.close()

    def _read_sample(self, rows: NDArray[np.intp]) -> Prepared:
        """Read the rows that were drawn, as they are in the files."""
        names = [use.name for use in self._plan.columns]
        parts = self._on_workers(_take_rows, names, rows=rows)
        frame = pd.concat(parts).set_axis(rows)
        labelled = self._labels.find(frame[self.request.label])
        note = (
            f"{rows.size:,} of {self._n_rows:,} rows were drawn to fit and to check, "
            f"{np.count_nonzero(labelled):,} of {self._labels.n_labelled:,} labelled "
            "ones among them; counts are scaled to all rows."
        )
        notes = (note,) if rows.size < self._n_rows else ()
        return Prepared(
            self.request,
            tables.Table(frame, self.request.source, "", notes),
            replace(self._labels, labelled=labelled),
            self._plan,
            tuple(dict.fromkeys(piece.file for piece in self._pieces)),
        )

    def _on_workers(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        rows: NDArray[np.intp] | None = None,
    ) -> list[Any]:
        """Return a function's result for each piece, and for those of ``rows`` in it."""
        from probgap.dask.blocks import split_ranks
        from probgap.dask.engine import gather, lazily

        calls: Any = zip(self._pieces)
        if rows is not None:
            sizes = np.array([piece.n_rows for piece in self._pieces])
            calls = zip(self._pieces, split_ranks(rows, sizes), strict=True)
        return gather([lazily(function, *call, *arguments) for call in calls])


@contextmanager
def start_client(scheduler: str | None, jobs: int, *, shown: bool) -> Iterator[Any]:
    """Connect to a scheduler, or start worker processes here; print where to watch."""
    distributed = load_library("distributed", extra="dask", purpose="--engine dask")
    # After Ctrl-C asyncio would report every request to a worker that was left open.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with ExitStack() as opened:
        address: Any = scheduler
        if scheduler is None:
            # The workers leave Ctrl-C to this process, which ends them.
            with signal_handler(signal.SIGINT, signal.SIG_IGN):
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
            refuse(
                "--scheduler must be the address of a dask scheduler, such as "
                f"tcp://host:8786. Got {scheduler!r}: {error}."
            )
        if shown:
            typer.echo(f"Dashboard: {client.dashboard_link}", err=True)
        yield client


def _spread(n_rows: int, most: int) -> NDArray[np.intp]:
    from probgap._core.runtime import spread_rows

    return spread_rows(n_rows, min(n_rows, most))


# What workers do with a piece.


def _count_labels(piece: RowGroups, label: str) -> dict[str, int]:
    return tables.count_levels(tables.read_row_groups(piece, [label])[label])


def _find_labelled(
    piece: RowGroups, label: str, labels: LabelColumn
) -> NDArray[np.intp]:
    frame = tables.read_row_groups(piece, [label])
    found = np.flatnonzero(labels.find(frame[label]))
    return found[_spread(found.size, _SAMPLE_LABELLED)]


def _take_rows(piece: RowGroups, inside: NDArray[np.intp], names: Any) -> pd.DataFrame:
    return tables.read_row_groups(piece, names).iloc[inside] if inside.size else None


def _to_numbers(piece: RowGroups, preprocessor: Any, plan: ColumnPlan) -> pd.DataFrame:
    from probgap.dask.parquet import mark_source

    frame = tables.read_row_groups(piece, plan.inputs)
    with _located_errors(piece):
        numbers = preprocessor.transform(read_inputs(frame, plan))
    return mark_source(pd.DataFrame(numbers, frame.index), piece)


def _read_observed(piece: RowGroups, label: str, labels: LabelColumn) -> pd.DataFrame:
    frame = tables.read_row_groups(piece, [label])
    observed = observed_labels(labels.positive, labels.find(frame[label]))
    return frame.assign(observed=observed)[["observed"]]


@contextmanager
def _located_errors(piece: RowGroups, containing: str = "") -> Iterator[None]:
    """Add the file and rows of a piece to errors whose message contains a text."""
    try:
        yield
    except InvalidInputError as error:
        if containing in str(error):
            where = f"{piece.file}, rows {piece.first + 1:,} to {piece.first + piece.n_rows:,}"
            refuse(f"{str(error).rstrip('.')} ({where}).")
