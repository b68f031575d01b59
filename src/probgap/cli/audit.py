"""``probgap audit``: ask about some rows, and count the hidden positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_file, check_libraries
from probgap.cli._run import read_run, request_again

if TYPE_CHECKING:
    from probgap.cli._answers import AuditFile
    from probgap.cli._prepare import Prepared

_FOLDER = "A folder that fit wrote."
_BUDGET = "Number of rows to ask about."
_ANSWERS = "The file of questions, filled in: yes, no or unknown, in the column answer."
_MORE = "Draw this many more rows, most where answers so far differ."
_KIND = (
    "audit draws at random, for a valid count; find takes the likeliest first; teach takes "
    "those that would improve the model most."
)
_OUT = "File for the questions: .csv or .xlsx; audit.csv in the folder by default."
_TABLE = "The table of the fit, if it is no longer where it was."


class Kind(StrEnum):
    """What the answers are for."""

    AUDIT = "audit"
    FIND = "find"
    TEACH = "teach"


def audit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=_FOLDER)],
    *,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help=_BUDGET)] = 100,
    answers: Annotated[Path | None, typer.Option(metavar="FILE", help=_ANSWERS)] = None,
    more: Annotated[int | None, typer.Option(min=1, metavar="N", help=_MORE)] = None,
    kind: Annotated[Kind, typer.Option(help=_KIND)] = Kind.AUDIT,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    table: Annotated[str | None, typer.Option(metavar="TABLE", help=_TABLE)] = None,
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
    right. Writes audit.html, a page to read, and audit.json, for programs.

    Example: probgap audit results --budget 100

    Example: probgap audit results --answers results/audit.csv

    Example: probgap audit results --more 50
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        shown = not (quiet or as_json)
        if answers is None and more is None:
            state = begin(folder, table, budget, kind.value, out, seed, force=force)
        else:
            from probgap.cli._answers import AuditFile

            state = AuditFile.read(folder)
            if answers is not None:
                state = take_answers(folder, state, answers, shown=not quiet)
            if more is not None:
                state = go_on(folder, state, more, table, out, force=force)
        if as_json:
            terminal.print_json(state.to_dict()["estimate"])
        elif shown and answers is not None:
            show(state, folder)


def begin(
    folder: Path,
    table: str | None,
    budget: int,
    kind: Any,
    out: Path | None,
    seed: int,
    *,
    force: bool,
) -> AuditFile:
    """Draw rows, and write the questions."""
    described = read_run(folder, "table")
    from probgap.cli._answers import NAME, AuditFile
    from probgap.cli._labelling import read_journal

    target = out or folder / "audit.csv"
    for path in (target, folder / NAME):
        if path.exists() and not force:
            terminal.refuse(
                f"{path} exists: an audit has begun. Go on with --answers or --more, or "
                "replace it and its answers with --force."
            )
    check_file(target, force=force)
    from probgap.cli._prepare import Request, prepare

    prepared = prepare(Request(**request_again(described, table)))
    from probgap.audit import design
    from probgap.io import load

    with terminal.caught_warnings():
        model = load(folder / "model.skops")
    made = design(
        model,
        prepared.inputs if kind == "teach" else None,
        prepared.labels.labelled,
        budget=budget,
        kind=kind,
        random_state=seed,
    )
    # Earlier answers in the browser count for this audit, unless it starts over.
    past = len(read_journal(folder)) if force else 0
    asked = asked_rows(prepared, made.rows.tolist())
    state = AuditFile(made, table_of(described, prepared), asked, journal=past)
    _write_questions(prepared, made.rows.tolist(), target)
    state.write(folder)
    typer.echo(
        f"{made.rows.size} rows to ask about: {target}. Fill in the column answer (yes, "
        f"no, unknown), then: probgap audit {folder} --answers {target}",
        err=True,
    )
    return state


def take_answers(
    folder: Path, state: AuditFile, path: Path, *, shown: bool
) -> AuditFile:
    """Read answers into the audit, and write its page."""
    from probgap.cli._answers import read_answers

    told = read_answers(path, state, state.table["positive"])
    for note in told.notes if shown else ():
        typer.echo(note, err=True)
    state = replace(
        state,
        answers={**state.answers, **told.answers},
        others={**state.others, **told.others},
    )
    write_page(folder, state, told.notes)
    return state


def write_page(folder: Path, state: AuditFile, notes: Sequence[str] = ()) -> None:
    """Write the audit, and its page."""
    from probgap._core.output import whole_file
    from probgap.audit import estimate
    from probgap.cli._answers import describe
    from probgap.page import render_audit

    found = describe(estimate(state.design, state.answers))
    with whole_file(folder / "audit.html") as file:
        name = state.table.get("name", "")
        file.write(render_audit(found, notes=notes, table=name, folder=str(folder)))
    state.write(folder)


def go_on(
    folder: Path,
    state: AuditFile,
    more: int,
    table: str | None,
    out: Path | None,
    *,
    force: bool,
) -> AuditFile:
    """Draw further rows, and write them as a file of their own."""
    number = 2
    while (target := out or folder / f"audit_{number}.csv").exists() and out is None:
        number += 1
    check_file(target, force=force)
    from probgap.cli._prepare import Request, prepare

    made = state.design.extend(state.answers, more)
    new = made.rows[state.design.rows.size :].tolist()
    if not new:
        terminal.refuse("Every unlabelled row has been drawn already.")
    described = read_run(folder, "table")
    prepared = prepare(Request(**request_again(described, table)))
    _write_questions(prepared, new, target)
    known = {row: state.others[row] for row in new if row in state.others}
    state = replace(
        state,
        design=made,
        asked=[*state.asked, *asked_rows(prepared, new)],
        answers={**state.answers, **known},
    )
    state.write(folder)
    typer.echo(
        f"{len(new)} more rows to ask about: {target}. Fill it in, then: probgap audit "
        f"{folder} --answers {target}",
        err=True,
    )
    return state


def table_of(described: dict[str, Any], prepared: Prepared) -> dict[str, Any]:
    """Return what an audit records about its table."""
    kept = {name: described[name] for name in ("name", "sha256", "id", "positive")}
    return kept | {"rows": len(prepared.table.frame)}


def asked_rows(prepared: Prepared, rows: list[int]) -> list[dict[str, Any]]:
    """Return number, id and cells of rows, as they are shown."""
    from probgap.cli._prepare import cell_text

    frame = prepared.table.frame.drop(columns=prepared.request.label)
    return [
        {
            "row": row + 1,
            "id": prepared.ids[row],
            "cells": {str(n): cell_text(v) for n, v in frame.iloc[row].items()},
        }
        for row in rows
    ]


def _write_questions(prepared: Prepared, rows: list[int], target: Path) -> None:
    """Write complete rows, with an empty column to fill in and without their scores."""
    from probgap._core.output import whole_file
    from probgap.tables import write_csv

    frame = prepared.table.frame.drop(columns=prepared.request.label)
    taken = {str(name).lower() for name in frame.columns}
    names = {n: f"probgap_{n}" if n in taken else n for n in ("answer", "row")}
    frame = frame.iloc[rows].astype(object)
    frame.insert(0, names["row"], [row + 1 for row in rows])
    frame.insert(0, names["answer"], "")
    excel = target.suffix.lower() == ".xlsx"
    with whole_file(target, binary=excel) as file:
        if excel:
            _write_excel(frame, file)
        else:
            write_csv(frame, file)


def _write_excel(frame: Any, file: Any) -> None:
    """Write a workbook in which no text is taken for a formula or a date."""
    from probgap._core.errors import load_library

    excel = load_library("openpyxl", extra="excel", purpose="Excel files")
    book = excel.Workbook()
    sheet = book.active
    for line, values in enumerate([list(frame.columns), *frame.to_numpy().tolist()], 1):
        for at, value in enumerate(values, 1):
            if value is None or value != value:  # noqa: PLR0124 (NaN)
                continue
            cell = sheet.cell(line, at)
            cell.value = value if isinstance(value, int | float) else str(value)
            if isinstance(value, str):
                cell.data_type = "s"
    book.save(file)


def show(state: AuditFile, folder: Path) -> None:
    """Print the main points."""
    from probgap.audit import estimate

    found = estimate(state.design, state.answers)
    console = terminal.make_console()
    if not (found.n_yes or found.n_no or found.n_unknown):
        console.print("There are no answers yet: fill in the column answer.")
        return
    console.print(f"{found.headline}.")
    if found.valid:
        console.print(
            f"Best estimate {found.count:,.0f}; 90% interval from {found.n_yes} yes, "
            f"{found.n_no} no and {found.n_unknown} unknown of {found.n_asked} rows."
        )
        if (verdict := found.model_verdict) is not None:
            low, high = state.design.expected or (0.0, 0.0)
            said = "agrees with it" if verdict == "holds" else f"was {verdict}"
            console.print(
                f"The model's own interval, {low:,.0f} to {high:,.0f}, {said}."
            )
        need = found.rows_to_find(0.8)
        console.print(
            f"To find 80% of them, check the top {need.estimate:,.0f} rows ({need.low:,.0f} "
            f"to {need.high:,.0f})."
        )
    console.print(f"Page: {folder / 'audit.html'}", style="dim")
