"""``fit --engine dask``: rows drawn from files by worker processes or a cluster."""

import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from probgap._core.errors import load_library, refuse
from probgap.cli._table import Options
from probgap.cli._terminal import signal_handler
from probgap.tables import Table


def draw_from_files(options: Options, columns: Any, *, shown: bool) -> Table:
    """Draw the rows to fit to: all labelled ones, and as many others as fit."""
    with start_client(options.scheduler, options.jobs, shown=shown):
        from probgap.dask._files import draw_table

        how: Any = {"positive": options.positive, "negative": options.negative}
        how |= {"seed": options.seed}
        return draw_table(options.source, options.label, **how, **columns)


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
