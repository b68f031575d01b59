"""Run the experiments of the paper and compare the numbers with the printed ones.

Writes rows.jsonl, one line for each method, labelling and split, as each ends; then
report.html and report.md with its figures. --resume continues a run that was stopped.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from probgap.exceptions import ProbgapError
from research.paper.data import check_data
from research.paper.plan import Job, load_spec, paper_specs, pending, plan, rows_of
from research.paper.report import build_report
from research.paper.rows import Row, RowFile, latest_rows, read_rows, write_rows
from research.paper.run import run

_INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line, run what it asks for, and write the report."""
    options = _read_options(words)
    try:
        if options.report is not None:
            _report(latest_rows(read_rows(options.report)), options)
            return
        planned = plan(
            [load_spec(path) for path in options.spec] or paper_specs(),
            tables=options.table or None,
            methods=options.method or None,
            rows=options.rows,
            splits=options.splits,
            quick=options.quick,
        )
        if options.plan:
            print(*(job.key for job in planned), sep="\n")
            return
        path = options.out / "rows.jsonl"
        if path.exists() and not (options.resume or options.force):
            sys.exit(
                f"{path} has rows of an earlier run: continue it with --resume, start "
                "anew with --force, or choose another --out."
            )
        check_data({job.data for job in planned})
        made = _run(planned, path, options)
    except (ProbgapError, OSError, ImportError) as error:
        sys.exit(f"Error: {error}")
    _report(made, options)
    failed = [row for row in made if row["status"] != "ok"]
    if failed:
        sys.exit(
            f"{len(failed)} of {len(made)} jobs failed; the first, {failed[0]['key']}: "
            f"{failed[0]['error']}. Try them again with --resume."
        )


def _read_options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m research.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    out, folder = Path("reproduction"), "folder for all that is made"
    add("--out", type=Path, default=out, metavar="DIR", help=folder)
    which = "a table to run: 1 to 8, boundaries, figure1, raw, raw1000, weighted, "
    which += "smallest3, smallest10, semi or semikept; may be repeated"
    add("--table", action="append", default=[], metavar="N", help=which)
    which = "a method to run, such as PGPU; may be repeated"
    add("--method", action="append", default=[], metavar="NAME", help=which)
    which = "which rows of each table, such as 1-3,5"
    add("--rows", type=_read_selection, metavar="ROWS", help=which)
    which = "a table of your own, as TOML, in place of the paper's"
    add("--spec", type=Path, action="append", default=[], metavar="FILE", help=which)
    add("--splits", type=_positive, metavar="N", help="the most splits of each cell")
    quick = "two splits of 400 samples: three minutes, to see that all works"
    add("--quick", action="store_true", help=quick)
    what = parser.add_mutually_exclusive_group()
    resume = "continue an earlier run: keep the rows in the folder"
    what.add_argument("--resume", action="store_true", help=resume)
    force = "start anew: delete the rows in the folder"
    what.add_argument("--force", action="store_true", help=force)
    jobs = "number of processes; by default, one for each core"
    add("--jobs", type=_positive, default=joblib.cpu_count(), metavar="N", help=jobs)
    add("--plan", action="store_true", help="list the jobs without running them")
    report = "run nothing, and build the report from a file of rows"
    add("--report", type=Path, metavar="FILE", help=report)
    keep = "put the rows, compressed, beside the report, and leave out the HTML file"
    add("--keep", action="store_true", help=keep)
    add("--quiet", action="store_true", help="show no progress")
    return parser.parse_args(words)


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise ValueError
    return value


def _read_selection(text: str) -> set[int]:
    """Read 1-3,5 as the set of 1, 2, 3 and 5."""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise ValueError
    parts = (part.partition("-") for part in text.split(","))
    ranges = (range(int(first), int(last or first) + 1) for first, _, last in parts)
    return {number for each in ranges for number in each}


def _run(planned: list[Job], path: Path, options: argparse.Namespace) -> list[Row]:
    """Run what is not done yet, and return the rows of all jobs."""
    shown = not options.quiet and sys.stderr.isatty()
    with RowFile(path, fresh=options.force) as file:
        made = list(file.rows)
        todo = pending(planned, made)
        cost, spent = {job.key: job.cost for job in todo}, 0.0
        try:
            for row in run(todo, n_jobs=options.jobs, command=_choice()):
                file.append(row)
                made.append(row)
                spent += cost[row["key"]]
                if shown:
                    share = spent / sum(cost.values())
                    sys.stderr.write(f"\r\033[K{share:.0%} of the time: {row['key']}")
        except (KeyboardInterrupt, TerminatedWorkerError) as stop:
            killed = isinstance(stop, TerminatedWorkerError)
            why = "A worker died, perhaps out of memory" if killed else "\nStopped"
            n_made = len(planned) - len(pending(planned, made))
            has = f"{path} has {n_made} of {len(planned)} rows"
            print(
                f"{why}. {has}. Continue with:\n  {_command()} --resume",
                file=sys.stderr,
            )
            sys.exit(1 if killed else _INTERRUPTED)
    if shown and todo:
        sys.stderr.write("\r\033[K")
    return latest_rows(rows_of(planned, made))


def _command() -> str:
    """Return the command that was typed, without --resume and --force."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--force")]
    return shlex.join(["python", "-m", "research.paper", *words])


def _choice() -> str:
    """Return the command without where its results went and how many processes ran."""
    words = shlex.split(_command())
    where = ("--out", "--jobs")
    return shlex.join(
        word
        for before, word in pairwise(["", *words])
        if before not in where
        and word != "--quiet"
        and not any(word == name or word.startswith(f"{name}=") for name in where)
    )


def _report(rows: list[Row], options: argparse.Namespace) -> None:
    files = build_report(rows, options.out)
    if options.keep:
        rows = sorted(rows, key=lambda row: row["key"])
        write_rows(options.out / "rows.jsonl.gz", rows)
        files.html.unlink()
    elif not options.quiet:
        print(f"{len(rows)} rows. Report: {files.html} and {files.markdown}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # in the report; its rows are all there
        sys.exit(_INTERRUPTED)
