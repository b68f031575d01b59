"""``probgap audit``: ask about some rows, and count the hidden positives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._fitted import FittedTable
from probgap.cli._output import check_file, check_libraries

if TYPE_CHECKING:
    from probgap.cli._questions import AuditFile

_BUDGET = "Number of rows to ask about."
_ANSWERS = "The file of questions, filled in: yes, no or unknown, in the column answer."
_MORE = "Draw this many more rows, most where answers so far differ."
_BY = (
    "A column whose groups are to be counted one by one, such as the clinic: each gets rows "
    "of its own, and a line with its count. By default that of --labelled-by, if fit had it."
)
_OUT = "File for the questions: .csv or .xlsx; audit.csv in the folder by default."


def audit(
    folder: given.Fitted,
    *,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help=_BUDGET)] = 100,
    answers: Annotated[Path | None, typer.Option(metavar="FILE", help=_ANSWERS)] = None,
    more: Annotated[int | None, typer.Option(min=1, metavar="N", help=_MORE)] = None,
    kind: given.AuditKind = given.QuestionKind.AUDIT,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help=_BY)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    table: given.TableAgain = None,
    seed: given.Seed = 0,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Ask a person about some rows, and count the hidden positives from the answers.

    First, rows are drawn into audit.csv, in random order and without their scores. Fill
    in the column answer: yes, no, or unknown for rows that nobody can tell. Then read it
    back: the count and its interval hold whatever the model believes, if the answers are
    right. Writes audit.html, a report, and audit.json, for programs.

    Example: probgap audit results --budget 100

    Example: probgap audit results --budget 200 --by clinic

    Example: probgap audit results --answers results/audit.csv

    Example: probgap audit results --more 50
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        fit = FittedTable(folder, table)
        if answers is None and more is None:
            found = begin(fit, out, budget, kind.value, seed, by=by, force=force)
        elif by is not None:
            refuse("--by must come with the first questions, which it draws by group.")
        if answers is not None:
            notes = take_answers(fit, answers, shown=not quiet)
            found = write_report(fit, notes)
        if more is not None:
            found = go_on(fit, out, more, force=force)
        if as_json:
            terminal.print_json(found)
        elif answers is not None and not quiet:
            print_estimate(found, folder)


def begin(
    fit: FittedTable,
    out: Path | None,
    budget: int,
    kind: str,
    seed: int,
    *,
    by: str | None,
    force: bool,
) -> dict[str, Any]:
    """Draw rows, and write the questions."""
    from probgap.cli._journal import read_journal
    from probgap.cli._questions import NAME, draw

    target = out or fit.folder / "audit.csv"
    if by is not None and kind != "audit":
        refuse(f"--by requires --kind audit. Got --kind {kind}.")
    for path in (target, fit.folder / NAME):
        if path.exists() and not force:
            refuse(
                f"{path} exists: an audit has begun. Go on with --answers or --more, or "
                "replace it and its answers with --force."
            )
    # Earlier answers in the browser count for this audit, unless it starts over.
    since = len(read_journal(fit.folder)) if force else 0
    check_file(target, force=force)
    return _ask(draw(fit, kind, budget, seed, by=by, since=since), 0, target)


def go_on(fit: FittedTable, out: Path | None, n: int, *, force: bool) -> dict[str, Any]:
    """Draw further rows, and write them as a file of their own."""
    from probgap.cli._questions import AuditFile

    audit = AuditFile.read(fit)
    names = (fit.folder / f"audit_{number}.csv" for number in count(2))
    target = out or next(path for path in names if not path.exists())
    check_file(target, force=force)
    longer, n_before = audit.extend(n), audit.design.rows.size
    if longer.design.rows.size == n_before:
        refuse("Every unlabelled row has been drawn already.")
    return _ask(longer, n_before, target)


def _ask(audit: AuditFile, n_before: int, target: Path) -> dict[str, Any]:
    """Write the questions after the first ones, and say how to go on."""
    from probgap.cli._questions import write_questions

    rows = audit.design.rows[n_before:].tolist()
    write_questions(audit.fit, rows, target)
    more = "more rows" if n_before else "rows"
    typer.echo(
        f"{len(rows)} {more} to ask about: {target}. Fill in the column answer (yes, no, "
        f"unknown), then: probgap audit {audit.fit.folder} --answers {target}",
        err=True,
    )
    return audit.write()


def take_answers(fit: FittedTable, path: Path, *, shown: bool) -> Sequence[str]:
    """Read answers into the journal, and return what was understood of them."""
    from probgap.cli._answers import read_answer_file
    from probgap.cli._journal import FROM_FILE, Journal, Record
    from probgap.cli._questions import AuditFile

    audit = AuditFile.read(fit)
    words, notes = read_answer_file(path, audit, shown=shown)
    kind, known = audit.design.kind, {each[:3] for each in audit.said.values()}
    told = [Record(row, word, kind, FROM_FILE) for row, word in words.items()]
    with Journal(fit.folder) as journal:
        journal.append(*(record for record in told if record[:3] not in known))
    return notes


def write_report(fit: FittedTable, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Write audit.html and audit.json, and return what the answers say."""
    from probgap._core.output import whole_file
    from probgap.cli._questions import AuditFile
    from probgap.reporting import render_audit

    audit = AuditFile.read(fit)
    found, name = audit.write(), fit.described["name"]
    with whole_file(fit.folder / "audit.html") as file:
        folder = str(fit.folder)
        file.write(render_audit(found, notes=notes, table=name, folder=folder))
    return found


def print_estimate(found: Mapping[str, Any], folder: Path) -> None:
    """Print the main points of what the answers say."""
    console = terminal.make_console()
    if not (found["n_yes"] or found["n_no"] or found["n_unknown"]):
        console.print("There are no answers yet: fill in the column answer.")
        return
    console.print(f"{found['headline']}.")
    if found["valid"]:
        console.print(
            f"Best estimate {found['count']:,.0f}; 90% interval from {found['n_yes']} yes, "
            f"{found['n_no']} no and {found['n_unknown']} unknown of {found['n_asked']} rows."
        )
        if (verdict := found["model_verdict"]) is not None:
            low, high = found["model_interval"]
            said = "agrees with it" if verdict == "holds" else f"was {verdict}"
            console.print(
                f"The model's own interval, {low:,.0f} to {high:,.0f}, {said}."
            )
        need = found["rows_to_find_80_percent"]
        console.print(
            f"To find 80% of them, check the top {need['estimate']:,.0f} rows "
            f"({need['low']:,.0f} to {need['high']:,.0f})."
        )
    for each in found["groups"]:
        _print_group(console, found["by"], each)
    console.print(f"Report: {folder / 'audit.html'}", style="dim")


def _print_group(console: Any, by: str, group: Mapping[str, Any]) -> None:
    low, high = group["hidden_low"], group["hidden_high"]
    console.print(
        f"{by} {group['group']}: {group['sentence']}. Hidden positives: {low:,.0f} to "
        f"{high:,.0f} of {group['rows']:,} rows."
    )
