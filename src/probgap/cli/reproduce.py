"""``probgap reproduce``: the paper's experiments, and a report beside its numbers."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli._terminal import BAD_INPUT, INTERRUPTED, plain_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probgap.reproduction import Job, RowFile

_MOST_ROWS = 10_000  # of a table
_SELECTION = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


def reproduce(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the rows and the report.")
    ] = Path("reproduction"),
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="A table to run: 1 to 8, boundaries or figure1; may be repeated. "
            "All of them, if none is named.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="Which rows of each table, such as 1-3,5. Or a file of result rows: "
            "then nothing is run, and the report is built from it.",
        ),
    ] = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A table of your own, as TOML, in place of the paper's.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Two splits of 400 samples: two minutes, to see that all works.",
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the rows that the folder has."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Start anew: delete the rows it has.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes at once; one for each core, if not said.",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="List the jobs, one a line; run none.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Run the experiments of the paper and set the numbers beside the printed ones.

    Writes rows.jsonl, one line for each method, labelling and split, as each ends; then
    report.html and report.md. A run that was stopped goes on with --resume.
    """
    with plain_errors(debug=debug):
        if rows is not None and not _SELECTION.fullmatch(rows):
            Path(rows).open("rb").close()  # refuse it before the slow import
            from probgap.reproduction import read_rows

            _report(read_rows(rows), out, command=None, quiet=quiet)
            return
        from probgap import reproduction

        tables = [reproduction.load_spec(file) for file in spec or []]
        planned = reproduction.plan(
            tables or reproduction.paper_specs(),
            tables=table,
            rows=_numbers(rows),
            quick=quick,
        )
        if plan:
            typer.echo("\n".join(job.key for job in planned))
            return
        failed = _run(planned, out, jobs, resume=resume, force=force, quiet=quiet)
    if failed:
        raise typer.Exit(BAD_INPUT)


def _numbers(selection: str | None) -> set[int] | None:
    """Read 1-3,5 as the set of 1, 2, 3 and 5."""
    if selection is None:
        return None
    chosen: set[int] = set()
    for part in selection.split(","):
        first, _, last = part.partition("-")
        stop = min(int(last or first), _MOST_ROWS)
        chosen.update(range(int(first), stop + 1))
    return chosen


def _run(
    planned: list[Job],
    out: Path,
    n_jobs: int | None,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Run what is not done yet, build the report, and return the number of failures."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from probgap.page import check_libraries
    from probgap.reproduction import RowFile, latest_rows, pending, rows_of

    path = out / "rows.jsonl"
    _check_target(path, resume=resume, force=force)
    check_libraries()
    _check_data({job.data for job in planned})
    with RowFile(path, fresh=force) as file:
        todo = pending(planned, file.rows)
        made = list(file.rows)
        try:
            for row in _rows_with_progress(
                todo, n_jobs or joblib.cpu_count(), len(planned), quiet=quiet
            ):
                file.append(row)
                made.append(row)
        except (KeyboardInterrupt, TerminatedWorkerError) as stop:
            killed = isinstance(stop, TerminatedWorkerError)
            left = len(pending(planned, made))
            _say_how_to_go_on(file, len(planned), left, killed=killed)
            raise typer.Exit(BAD_INPUT if killed else INTERRUPTED) from None
    rows = latest_rows(rows_of(planned, made))
    command = shlex.join(["probgap", *sys.argv[1:]])
    _report(rows, out, command=command, quiet=quiet)
    failures = [row for row in rows if row["status"] != "ok"]
    if failures:
        first = failures[0]
        typer.echo(
            f"Error: {len(failures)} of {len(rows)} jobs failed; the first, "
            f"{first['key']}: {first['error']}. Try them again with --resume.",
            err=True,
        )
    return len(failures)


def _check_data(names: set[str]) -> None:
    from probgap.datasets import DataFileError
    from probgap.exceptions import MissingLibraryError, ProbgapError
    from probgap.reproduction import check_data

    try:
        check_data(names)
    except (DataFileError, MissingLibraryError) as error:
        msg = f"{error} Tables 1 to 6 need neither: choose them with --table."
        raise ProbgapError(msg) from None


def _check_target(path: Path, *, resume: bool, force: bool) -> None:
    from probgap.exceptions import InvalidInputError

    if resume and force:
        msg = "--resume and --force must not be given together. Got both."
        raise InvalidInputError(msg)
    if path.exists() and not resume and not force:
        msg = (
            f"{path} must not exist yet. Got a file of an earlier run; go on with "
            "--resume, start anew with --force, or choose another --out."
        )
        raise InvalidInputError(msg)


def _rows_with_progress(
    todo: list[Job], n_jobs: int, n_all: int, *, quiet: bool
) -> Iterator[dict[str, Any]]:
    from probgap.reproduction import run

    if quiet or not sys.stderr.isatty():
        yield from run(todo, n_jobs=n_jobs)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.fields[done]}/{task.fields[jobs]} jobs"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
        TextColumn("{task.description}"),
    )
    cost = {job.key: job.cost for job in todo}
    with Progress(
        *columns, console=Console(stderr=True), speed_estimate_period=600
    ) as bar:
        done = n_all - len(todo)
        task = bar.add_task("", total=sum(cost.values()), done=done, jobs=n_all)
        for row in run(todo, n_jobs=n_jobs):
            done += 1
            bar.update(
                task, advance=cost[row["key"]], done=done, description=row["key"]
            )
            yield row


def _say_how_to_go_on(file: RowFile, n_jobs: int, n_left: int, *, killed: bool) -> None:
    arguments = [a for a in sys.argv[1:] if a not in ("--resume", "--force")]
    command = shlex.join(["probgap", *arguments, "--resume"])
    typer.echo(
        ("A worker died, perhaps of too little memory. " if killed else "Stopped. ")
        + f"{file.path} has {n_jobs - n_left} of {n_jobs} rows. Go on with:\n"
        f"  {command}",
        err=True,
    )


def _report(
    rows: Sequence[dict[str, Any]], out: Path, *, command: str | None, quiet: bool
) -> None:
    from probgap.reproduction import build_report

    files = build_report(rows, out, command=command)
    if not quiet:
        typer.echo(f"{len(rows)} rows. Report: {files.html} and {files.markdown}")
