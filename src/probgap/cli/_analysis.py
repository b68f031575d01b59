"""From a table to a model, its scores and an account of both: what ``fit`` does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Analysis:
    """A fitted model, the scores of the rows it came from, and the account of it."""

    model: Any
    scores: pd.DataFrame
    label_next: pd.DataFrame
    account: dict[str, Any]
    metadata: dict[str, Any]


def check_fit(
    request: Request,
    prepared: Prepared,
    model: Any,
    heard: list[Warning],
    started: datetime,
    progress: Progress,
) -> Analysis:
    """Score the rows of a fit, check it, and write the account of it."""
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
    add_heard(account["warnings"], heard)
    ranked = rank_hidden(
        scored["probability"].to_numpy(), scored["gap"].to_numpy(), labelled
    )
    for entry in account["next"]:
        entry["id"] = name_of(prepared.ids, entry["row"])
    label_next = next_table(account["next"], prepared)
    for entry in account["next"]:
        entry["row"] = prepared.number(entry["row"] - 1)
    account = {
        "format": 1,
        "table": describe_table(request, prepared),
        "found": account["found"],
        "ranked": likeliest(prepared, scored, ranked, account.get("drivers")),
        **{key: value for key, value in account.items() if key != "found"},
        "run": describe_run(request, model, started),
    }
    return Analysis(
        model=model,
        scores=score_table(prepared, scored, ranked),
        label_next=label_next,
        account=account,
        metadata={
            key: account["table"][key] for key in ("name", "sha256", "label", "id")
        }
        | {"positive": prepared.labels.positive},
    )


def add_heard(said: list[dict[str, str]], heard: list[Warning]) -> None:
    """Add what ``fit`` warned of to what the account says already, no fact twice."""
    for warning in heard:
        what, do = split_sentence(str(warning))
        sign = getattr(warning, "sign", None)
        if any(
            w["what"] in (what, str(warning)) or w.get("sign", "") == sign for w in said
        ):
            continue
        level = "mild" if sign is None else "strong"
        said.append({"level": level, "what": what, "do": do})
    said.sort(key=lambda warning: warning["level"] != "strong")


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
