"""From a table to a model, its scores and an account of both: what ``fit`` does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from probgap._core.errors import ProbgapWarning
from probgap.cli._account import (
    describe_run,
    describe_table,
    likeliest,
    name_of,
    next_table,
    score_table,
)
from probgap.cli._prepare import CHECK, Prepared, Request
from probgap.cli._scores import rank_hidden, score_rows
from probgap.cli._terminal import Progress

if TYPE_CHECKING:
    import pandas as pd

    from probgap.diagnostics import Account
    from probgap.diagnostics.account import Caution
    from probgap.page import RankedRow, RunRecord, TableRecord

FORMAT = 1  # of run.json


@dataclass(frozen=True)
class Analysis:
    """A fitted model, the scores of the rows it came from, and the account of it."""

    model: Any
    scores: pd.DataFrame
    label_next: pd.DataFrame
    account: Account
    table: TableRecord
    ranked: tuple[RankedRow, ...]
    run: RunRecord

    @property
    def metadata(self) -> dict[str, str | None]:
        """What the model file tells about its table."""
        names = ("name", "sha256", "label", "id", "positive")
        return {name: getattr(self.table, name) for name in names}

    @property
    def page(self) -> str:
        """The page to read."""
        from probgap.page import render_page

        return render_page(
            self.account, table=self.table, ranked=self.ranked, run=self.run
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``run.json``."""
        from probgap.diagnostics.account import as_plain

        account = self.account.to_dict()
        table, run = as_plain(self.table), as_plain(self.run)
        for part, name in ((table, "sha256"), (table, "files"), (run, "engine")):
            if not part[name]:
                del part[name]
        return {
            "format": FORMAT,
            "table": table,
            "found": account.pop("found"),
            "ranked": as_plain(self.ranked),
            **account,
            "run": run,
        }


def check_fit(
    request: Request,
    prepared: Prepared,
    model: Any,
    heard: list[Warning],
    started: datetime,
    progress: Progress,
) -> Analysis:
    """Score the rows of a fit, check it, and return the account of it."""
    from probgap.diagnostics import examine

    frame, labelled = prepared.inputs, prepared.labels.labelled
    scored = score_rows(
        model,
        frame,
        gap=model[-1].observed_gap_,
        probability=model[-1].posterior_,
        labelled=labelled,
    )
    progress.begin(CHECK)
    with heard_warnings():  # of refits: what they warn of has been said of the fit
        account = examine(
            model,
            frame,
            labelled,
            random_state=request.seed,
            n_jobs=request.jobs,
            progress=progress.advance,
        )
    ranked = rank_hidden(
        scored["probability"].to_numpy(), scored["gap"].to_numpy(), labelled
    )
    label_next = next_table(account.next, prepared)
    named = tuple(
        replace(
            entry,
            id=name_of(prepared.ids, entry.row),
            row=prepared.number(entry.row - 1),
        )
        for entry in account.next
    )
    warned = add_heard(account.warnings, heard)
    return Analysis(
        model=model,
        scores=score_table(prepared, scored, ranked),
        label_next=label_next,
        account=replace(account, next=named, warnings=warned),
        table=describe_table(request, prepared),
        ranked=likeliest(prepared, scored, ranked, account),
        run=describe_run(request, model, started),
    )


def add_heard(said: tuple[Caution, ...], heard: list[Warning]) -> tuple[Caution, ...]:
    """Add what ``fit`` warned of to what the account says already, no fact twice."""
    from probgap.diagnostics.account import Caution

    found = list(said)
    for warning in heard:
        what, do = split_sentence(str(warning))
        sign = getattr(warning, "sign", None)
        if not any(
            known.what in (what, str(warning)) or (sign and known.sign == sign)
            for known in found
        ):
            found.append(Caution("strong" if sign else "mild", what, do))
    return tuple(sorted(found, key=lambda caution: caution.level != "strong"))


def split_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence, and the rest."""
    first, *rest = re.split(r"(?<=[.?!]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(rest)


@contextmanager
def heard_warnings() -> Iterator[list[str]]:
    """Collect what the library warns of, once each, as sentences."""
    sentences: list[str] = []
    with caught_warnings() as heard:
        yield sentences
    sentences += map(str, heard)


@contextmanager
def caught_warnings() -> Iterator[list[Warning]]:
    """Collect what the library warns of, once each; other people's warnings are not ours."""
    from sklearn.exceptions import ConvergenceWarning

    heard: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
    known = set()
    for warning in caught:
        ours = issubclass(warning.category, ProbgapWarning | ConvergenceWarning)
        if ours and str(warning.message) not in known:
            known.add(str(warning.message))
            heard.append(warning.message)  # type: ignore[arg-type]
