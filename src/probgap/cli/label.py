"""``probgap label``: the questions of an audit in a browser, one row at a time."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import InvalidInputError
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_libraries
from probgap.cli._run import read_run, request_again
from probgap.cli.audit import Kind, asked_rows, show, table_of, write_page

if TYPE_CHECKING:
    from probgap.audit import Design
    from probgap.cli._answers import AuditFile
    from probgap.cli._labelling import Answer, Journal, Session
    from probgap.cli._prepare import Prepared

_FOLDER = "A folder that fit wrote."
_MODE = (
    "audit draws at random, for a valid count; find takes the likeliest first; teach takes "
    "those that would improve the model most."
)
_BUDGET = (
    "Number of rows to ask about: 100, or as many as an audit that has begun. A greater "
    "number draws more rows."
)
_PORT = "Port of the page; 0 takes a free one."
_HOST = "Address to listen on."
_NETWORK = "Allow a --host that other machines can reach, without encryption."
_BROWSER = "Print the address only."
_TABLE = "The table of the fit, if it is no longer where it was."
_N_SIMILAR, _N_VALUES = 3, 6
_N_WHY = 8  # telling columns that are compared with those of other rows
_LONGEST = 20_000  # characters of a cell


def label(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=_FOLDER)],
    *,
    mode: Annotated[Kind, typer.Option(help=_MODE)] = Kind.AUDIT,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=_BUDGET)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help=_PORT)] = 0,
    host: Annotated[str, typer.Option(metavar="HOST", help=_HOST)] = "127.0.0.1",
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help=_NETWORK)
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help=_BROWSER)] = False,
    table: Annotated[str | None, typer.Option(metavar="TABLE", help=_TABLE)] = None,
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
        from probgap.cli._server import bind, check_server, is_local, make_app, serve

        if not is_local(host) and not allow_network:
            terminal.refuse(
                "--host must be an address of this machine alone, such as 127.0.0.1, "
                f"unless --allow-network is given. Got {host!r}."
            )
        described = read_run(folder, "table")
        check_libraries()
        check_server()
        with bind(host, port) as sock:
            from probgap.cli._prepare import Request, prepare

            prepared = prepare(Request(**request_again(described, table)))
            from probgap.cli._labelling import Journal

            with Journal(folder) as journal:
                desk = _Desk(folder, described, prepared, seed)
                session = desk.open(journal, mode.value, budget)
                token, port = secrets.token_urlsafe(24), sock.getsockname()[1]
                app = make_app(
                    session, desk.about, token, port, network=not is_local(host)
                )
                name = f"[{host}]" if ":" in host else host
                address = f"http://{name}:{port}/?token={token}"
                _greet(address, network=not is_local(host))
                with suppress(KeyboardInterrupt):
                    serve(app, sock, address, browse=not no_browser)
                _finish(folder, journal, as_json=as_json)


def _greet(address: str, *, network: bool) -> None:
    if network:
        typer.echo(
            "Warning: others on this network can reach the page if they have its address, "
            "and can read what is sent, rows and token: nothing is encrypted.",
            err=True,
        )
    typer.echo(
        f"Labelling at {address}\nPress Ctrl-C to end. Every answer is saved at once.",
        err=True,
    )


def _finish(folder: Path, journal: Journal, *, as_json: bool) -> None:
    """Write the page and the numbers of the audit, and tell where the answers are."""
    from probgap.cli._answers import AuditFile

    typer.echo(f"\nThe answers are in {journal.path}.", err=True)
    state = AuditFile.read(folder)
    write_page(folder, state)
    if as_json:
        terminal.print_json(state.to_dict()["estimate"])
    else:
        show(state, folder)


class _Desk:
    """The table and the audit of a folder, and what is shown of its rows."""

    def __init__(
        self, folder: Path, described: dict[str, Any], prepared: Prepared, seed: int
    ) -> None:
        self._folder, self._described = folder, described
        self._prepared, self._seed = prepared, seed
        driving: list[str] = []
        with suppress(InvalidInputError):  # there may be no drivers
            columns = read_run(folder, "drivers")["columns"]
            driving = [each["column"] for each in columns if each["importance"] > 0]
        names = [str(name) for name in prepared.table.frame.columns]
        hidden = (described["label"], described["id"])
        first = [name for name in driving if name in names]
        rest = [n for n in (*prepared.plan.inputs, *names) if n not in first]
        self._names = [n for n in dict.fromkeys([*first, *rest]) if n not in hidden]
        self._similar: Callable[[int], list[int]] | None = None
        self.about = {
            "table": prepared.table.name,
            "folder": str(folder),
            "label": described["label"],
            "positive": described["positive"],
            "driving": len(first),
        }

    def open(self, journal: Journal, mode: str, budget: int | None) -> Session:
        """Return the questions, and what was answered already."""
        from probgap.cli._answers import NAME, AuditFile
        from probgap.cli._labelling import Session, read_journal

        state = None
        if (self._folder / NAME).is_file():
            state = AuditFile.read(self._folder)
        answers: dict[int, Answer] = {}
        if mode == "audit" and state is not None and state.design.kind == "audit":
            more = (budget or 0) - state.design.rows.size
            made = self._extend(state.design, {}, more) if more > 0 else state.design
            answers = dict(state.answers)
        else:
            made = self._draw(state, mode, budget or 100)
            if mode == "audit" or state is None:
                state = self._begin(made, state)
                answers = dict(state.answers)
        history: dict[int, None] = {}
        for record in filter(None, read_journal(self._folder)):
            row = record["row"] - 1
            history.pop(row, None)
            if record["mode"] == mode and record["answer"] != "undo":
                history[row] = None
        extend = {"audit": self._extend, "find": _extend_found}.get(mode)
        self._made = made
        return Session(journal, made, self.show, answers, list(history), extend)

    def _begin(self, made: Design, before: AuditFile | None) -> AuditFile:
        """Keep a new design; answers to other questions stay, but do not count."""
        from probgap.cli._answers import AuditFile
        from probgap.cli._labelling import read_journal

        asked = asked_rows(self._prepared, made.rows.tolist())
        state = AuditFile(made, table_of(self._described, self._prepared), asked)
        if before is not None:
            others = {**before.others, **before.answers}
            state = replace(state, others=others, journal=before.journal)
        state = state.catch_up(read_journal(self._folder))
        state.write(self._folder)
        return state

    def _extend(self, made: Design, _: dict[int, Answer], n: int) -> Design:
        """Draw more rows of an audit, by its answers on disk, and keep them."""
        from probgap.cli._answers import AuditFile

        state = AuditFile.read(self._folder)
        made = state.design.extend(state.answers, n)
        new = made.rows[state.design.rows.size :].tolist()
        asked = [*state.asked, *asked_rows(self._prepared, new)]
        replace(state, design=made, asked=asked).write(self._folder)
        return made

    def _draw(self, state: AuditFile | None, mode: str, budget: int) -> Design:
        from probgap.audit import correct, design
        from probgap.io import load

        prepared = self._prepared
        known = prepared.labels.labelled.copy()
        with terminal.caught_warnings():
            model: Any = load(self._folder / "model.skops")
            if mode != "audit":
                self._similar = _find_similar(model, prepared)
                told = {**state.others, **state.answers} if state is not None else {}
                known[list(told)] = True
                if state is not None and state.design.kind == "audit":
                    # Left for the audit, whose answers must not depend on the score.
                    known[state.design.rows] = True
                rows = [row for row, answer in told.items() if answer is not None]
                if mode == "teach" and rows:
                    said = [bool(told[row]) for row in rows]
                    held_out = model[-1].posterior_[rows]
                    asked = prepared.inputs.iloc[rows]
                    model = correct(model, asked, said, probability=held_out)
            return design(
                model,
                prepared.inputs if mode == "teach" else None,
                known,
                budget=budget,
                kind=mode,  # type: ignore[arg-type]
                random_state=self._seed,
            )

    def show(self, row: int) -> dict[str, Any]:
        """Return a row: its columns, the telling ones first; no score in an audit."""
        cells = self._prepared.table.frame.iloc[row]
        shown: dict[str, Any] = {
            "row": row + 1,
            "id": self._prepared.ids[row],
            "cells": [[name, _text(cells[name])] for name in self._names],
        }
        if self._similar is not None:
            for cell in shown["cells"][: min(self.about["driving"], _N_WHY)]:
                if cell[0] in self._prepared.inputs:
                    cell.append(self._compare(cell[0], row))
            place = (self._made.population == row).nonzero()[0]
            shown["score"] = float(self._made.score[place[0]]) if place.size else None
            shown["similar"] = [
                {
                    "row": other + 1,
                    "id": self._prepared.ids[other],
                    "cells": [
                        [name, _text(self._prepared.table.frame[name].iat[other])[:200]]
                        for name in self._names[:_N_VALUES]
                    ],
                }
                for other in self._similar(row)
            ]
        return shown

    def _compare(self, name: str, row: int) -> str:
        """Return how a cell compares with all rows, and with the labelled positives."""
        import pandas as pd

        column, labels = self._prepared.inputs[name], self._prepared.labels
        value, known = column.iat[row], column[labels.labelled].dropna()
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


def _extend_found(made: Design, answers: dict[int, Answer], n: int) -> Design:
    return made.extend(answers, n)


def _text(value: Any) -> str:
    from probgap.cli._prepare import cell_text

    if not isinstance(value, str):
        return cell_text(value)
    left = len(value) - _LONGEST
    return value if left <= 0 else f"{value[:_LONGEST]} … ({left:,} characters more)"


def _find_similar(model: Any, prepared: Prepared) -> Callable[[int], list[int]]:
    """Return a function that finds the labelled positives most like a row."""
    import numpy as np
    from sklearn.neighbors import NearestNeighbors

    from probgap._core.estimators import as_matrix, samples_of

    rows = np.flatnonzero(prepared.labels.labelled)
    known = as_matrix(samples_of(model, prepared.inputs.iloc[rows]))
    search = NearestNeighbors(n_neighbors=min(_N_SIMILAR, rows.size)).fit(known)

    def find(row: int) -> list[int]:
        asked = as_matrix(samples_of(model, prepared.inputs.iloc[[row]]))
        found: list[int] = rows[search.kneighbors(asked)[1][0]].tolist()
        return found

    return find
