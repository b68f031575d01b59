"""``probgap label``: the questions of an audit in a browser, one row at a time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError, refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._fitted import FittedTable, read_run
from probgap.cli._output import check_libraries
from probgap.cli.audit import print_estimate, write_report

if TYPE_CHECKING:
    from probgap.audit import Design
    from probgap.cli._journal import Journal
    from probgap.cli._labelling import LabelSession

_BUDGET = (
    "Number of rows to ask about: 100, or as many as an audit that has begun. A greater "
    "number draws more rows."
)
_PORT = "Port of the page; 0 takes a free one."
_HOST = "Address to listen on."
_NETWORK = "Allow a --host that other machines can reach, without encryption."
_BROWSER = "Print the address only."
_N_SIMILAR, _N_VALUES = 3, 6
_N_COMPARED = 8  # telling columns that are compared with those of other rows
_LONGEST, _LONGEST_SIMILAR = 20_000, 200  # characters of a cell


def label(
    folder: given.Fitted,
    *,
    mode: given.AuditMode = given.QuestionKind.AUDIT,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=_BUDGET)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help=_PORT)] = 0,
    host: Annotated[str, typer.Option(metavar="HOST", help=_HOST)] = "127.0.0.1",
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help=_NETWORK)
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help=_BROWSER)] = False,
    table: given.TableAgain = None,
    seed: given.Seed = 0,
    as_json: given.Json = False,
    debug: given.Debug = False,
) -> None:
    """Answer the questions of an audit in the browser, one row at a time.

    Opens a page that only this machine can reach. Keys: y (yes), n (no), ? (cannot tell)
    and z (undo). In an audit, scores stay hidden, and the count with its interval is
    shown after every answer. Each answer is appended to answers.jsonl before the next
    row is shown. Ctrl-C ends the server and writes audit.html and audit.json.

    Example: probgap label results

    Example: probgap label results --mode find --budget 50
    """
    with terminal.plain_errors(debug=debug):
        from probgap.cli._journal import Journal
        from probgap.cli._server import bind, is_local, serve

        if not is_local(host) and not allow_network:
            refuse(
                "--host must be an address of this machine alone, such as 127.0.0.1, "
                f"unless --allow-network is given. Got {host!r}."
            )
        fit = FittedTable(folder, table)
        check_libraries()
        check_libraries("starlette", "uvicorn", extra="label", purpose="probgap label")
        with bind(host, port) as sock, Journal(folder, alone=True) as journal:
            session, about = open_session(fit, journal, mode.value, budget, seed)
            serve(session, about, sock, host, browse=not no_browser)
        typer.echo(f"\nThe answers are in {journal.path}.", err=True)
        found = write_report(fit)
        if as_json:
            terminal.print_json(found)
        else:
            print_estimate(found, folder)


def open_session(
    fit: FittedTable, journal: Journal, mode: str, budget: int | None, seed: int
) -> tuple[LabelSession, dict[str, Any]]:
    """Return the questions of an audit that has begun, or new ones, and their table."""
    from probgap.cli._labelling import LabelSession
    from probgap.cli._questions import NAME, AuditFile, draw

    before = AuditFile.read(fit) if (fit.folder / NAME).is_file() else None
    kept = before is None or mode == "audit"
    if before is not None and before.design.kind == mode == "audit":
        audit = before
    else:
        # Answers to other questions stay, but do not count.
        audit = draw(fit, mode, budget or 100, seed, before=before)
        if kept:
            audit.write()

    def extend(n: int) -> Design:
        nonlocal audit
        # Another command may have drawn more rows meanwhile.
        audit = (AuditFile.read(fit) if kept else audit).extend(n)
        if kept:
            audit.write()
        return audit.design

    if mode == "audit" and (n_more := (budget or 0) - audit.design.rows.size) > 0:
        extend(n_more)
    view, more = RowView(fit, audit.design), None if mode == "teach" else extend
    session = LabelSession(journal, audit.design, view.show, audit.counted, more)
    return session, view.about


class RowView:
    """Rows as the page shows them, and what it says of their table (``about``)."""

    def __init__(self, fit: FittedTable, drawn: Design) -> None:
        self._fit, self._drawn = fit, drawn
        driving: list[str] = []
        with suppress(InvalidInputError):  # there may be no drivers
            columns = read_run(fit.folder, "drivers")["columns"]
            driving = [each["column"] for each in columns if each["importance"] > 0]
        names = list(fit.cells.columns)
        first = [name for name in driving if name in names]
        ordered = dict.fromkeys([*first, *fit.inputs.columns, *names])
        self._names = [name for name in ordered if name != fit.described["id"]]
        self._compared = [name for name in first[:_N_COMPARED] if name in fit.inputs]
        self.about = {
            "table": fit.described["name"],
            "folder": str(fit.folder),
            "label": fit.described["label"],
            "positive": fit.described["positive"],
            "driving": len(first),
        }

    def show(self, row: int) -> dict[str, Any]:
        """Return a row: its columns, the telling ones first; no score in an audit."""
        from probgap.inspection import nearest_labelled

        fit, drawn = self._fit, self._drawn
        shown = self._row(row, self._names, _LONGEST)
        if drawn.kind == "audit":
            return shown
        for cell in shown["cells"]:
            if cell[0] in self._compared:
                cell.append(self._compare(cell[0], row))
        one, score = fit.inputs.iloc[[row]], drawn.score[drawn.population == row]
        near, _ = nearest_labelled(
            fit.model, fit.inputs, fit.labelled, one, n=_N_SIMILAR
        )
        names, longest = self._names[:_N_VALUES], _LONGEST_SIMILAR
        similar = [self._row(other, names, longest) for other in near.tolist()]
        return shown | {"score": next(iter(score.tolist()), None), "similar": similar}

    def _row(self, row: int, names: list[str], longest: int) -> dict[str, Any]:
        cells = self._fit.cells.iloc[row]
        shown = [[name, _shorten(cells[name], longest)] for name in names]
        return {"row": row + 1, "id": self._fit.ids[row], "cells": shown}

    def _compare(self, name: str, row: int) -> str:
        """Return how a cell compares with all rows, and with the labelled positives."""
        import pandas as pd

        column = self._fit.inputs[name]
        value, known = column.iat[row], column[self._fit.labelled].dropna()
        if pd.isna(value) or known.empty:
            return ""
        if not pd.api.types.is_numeric_dtype(column):
            same = (column == value).sum()
            share, like = same / len(column), (known == value).mean()
            words = f"so are {share:.0%} of rows, and {like:.0%} of labelled positives"
            return words if same > 1 else ""
        low, high = known.quantile([0.25, 0.75])
        return (
            f"above {(column < value).mean():.0%} of rows; half of the labelled positives "
            f"have {low:.4g} to {high:.4g}"
        )


def _shorten(value: Any, longest: int) -> str:
    from probgap.reporting import cell_text

    text = value if isinstance(value, str) else cell_text(value)
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]} … ({left:,} characters more)"
