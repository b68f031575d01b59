"""``probgap reproduce``: the paper's experiments, and a report beside its numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal

if TYPE_CHECKING:
    from probgap.reproduction import Job

_MOST_ROWS = 10_000  # of a table
_SELECTION = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_RUN = "Running"

_OUT = "Folder for the rows and the report."
_TABLE = (
    "A table to run: 1 to 8, boundaries or figure1; may be repeated. By default, all of "
    "them."
)
_ROWS = (
    "Which rows of each table, such as 1-3,5. Or a file of result rows: then nothing is "
    "run, and the report is built from it."
)
_SPEC = "A table of your own, as TOML, in place of the paper's."
_QUICK = "Two splits of 400 samples: two minutes, to see that all works."
_RESUME = "Continue an earlier run: keep the rows in the folder."
_FORCE = "Start anew: delete the rows in the folder."
_JOBS = "Number of processes; by default, one for each core."
_PLAN = "List the jobs, one on each line, without running them."


def reproduce(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help=_OUT)] = Path("reproduction"),
    table: Annotated[list[str] | None, typer.Option(metavar="N", help=_TABLE)] = None,
    rows: Annotated[str | None, typer.Option(metavar="ROWS", help=_ROWS)] = None,
    spec: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=_SPEC)] = None,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK)] = False,
    resume: Annotated[bool, typer.Option("--resume", help=_RESUME)] = False,
    force: Annotated[bool, typer.Option("--force", help=_FORCE)] = False,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help=_JOBS)] = None,
    plan: Annotated[bool, typer.Option("--plan", help=_PLAN)] = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Run the experiments of the paper and compare the numbers with the printed ones.

    Writes rows.jsonl, one line for each method, labelling and split, as each ends; then
    report.html and report.md. Continue a run that was stopped with --resume.
    """
    with terminal.plain_errors(debug=debug):
        selected, source = rows, None
        if rows is not None and not _SELECTION.fullmatch(rows):
            selected, source = None, Path(rows)
            source.open("rb").close()  # refuse it before the slow import
        from probgap import reproduction

        if source is not None:
            _report(reproduction.read_rows(source), out, quiet=quiet)
            return
        tables = [reproduction.load_spec(file) for file in spec or []]
        planned = reproduction.plan(
            tables or reproduction.paper_specs(),
            tables=table,
            rows=_numbers(selected),
            quick=quick,
        )
        if plan:
            typer.echo("\n".join(job.key for job in planned))
            return
        _check(planned, out / "rows.jsonl", resume=resume, force=force)
        made = _run(planned, out / "rows.jsonl", jobs, fresh=force, quiet=quiet)
        _report(made, out, command=terminal.command_line(), quiet=quiet)
        failed = [row for row in made if row["status"] != "ok"]
        if failed:
            terminal.refuse(
                f"{len(failed)} of {len(made)} jobs failed; the first, "
                f"{failed[0]['key']}: {failed[0]['error']}. Try them again with --resume."
            )


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


def _check(planned: list[Job], path: Path, *, resume: bool, force: bool) -> None:
    """Refuse a run that could not finish, before it starts."""
    from probgap.datasets import DataFileError
    from probgap.exceptions import MissingLibraryError
    from probgap.page import check_libraries
    from probgap.reproduction import check_data

    if resume and force:
        terminal.refuse("--resume and --force exclude each other.")
    if path.exists() and not resume and not force:
        terminal.refuse(
            f"{path} has rows of an earlier run; continue it with --resume, start anew "
            "with --force, or choose another --out."
        )
    check_libraries()
    try:
        check_data({job.data for job in planned})
    except (DataFileError, MissingLibraryError) as error:
        terminal.refuse(
            f"{error} Tables 1 to 6 need neither: choose them with --table."
        )


def _run(
    planned: list[Job], path: Path, n_jobs: int | None, *, fresh: bool, quiet: bool
) -> list[dict[str, Any]]:
    """Run what is not done yet, and return the rows of all jobs."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from probgap import reproduction

    n_all, shown = len(planned), not quiet and sys.stderr.isatty()
    with (
        reproduction.RowFile(path, fresh=fresh) as file,
        terminal.Progress({_RUN: 1.0}, shown=shown) as progress,
    ):
        made = list(file.rows)
        todo = reproduction.pending(planned, made)
        cost, spent = {job.key: job.cost for job in todo}, 0.0
        progress.begin(_RUN)
        try:
            rows = reproduction.run(todo, n_jobs=n_jobs or joblib.cpu_count())
            for n_run, row in enumerate(rows, start=n_all - len(todo) + 1):
                file.append(row)
                made.append(row)
                spent += cost[row["key"]]
                what = f"{n_run}/{n_all} jobs, {row['key']}"
                progress.advance(spent, sum(cost.values()), what)
        except (KeyboardInterrupt, TerminatedWorkerError) as stop:
            killed = isinstance(stop, TerminatedWorkerError)
            why = "A worker died, perhaps out of memory" if killed else "Stopped"
            n_made = n_all - len(reproduction.pending(planned, made))
            again = terminal.command_line("--resume", without=("--resume", "--force"))
            has = f"{path} has {n_made} of {n_all} rows"
            typer.echo(f"{why}. {has}. Continue with:\n  {again}", err=True)
            code = terminal.BAD_INPUT if killed else terminal.INTERRUPTED
            raise typer.Exit(code) from None
    return reproduction.latest_rows(reproduction.rows_of(planned, made))


def _report(
    rows: list[dict[str, Any]], out: Path, *, command: str | None = None, quiet: bool
) -> None:
    from probgap.reproduction import build_report

    files = build_report(rows, out, command=command)
    if not quiet:
        typer.echo(f"{len(rows)} rows. Report: {files.html} and {files.markdown}")
