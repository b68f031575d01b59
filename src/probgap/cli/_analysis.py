"""A fit, checked and described: scores, ranks, the account, and the files of all that."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probgap import __version__
from probgap._core.types import Mask, Vector
from probgap.cli._output import write_folder
from probgap.cli._prepare import MemoryEngine, Prepared
from probgap.cli._scores import caught_warnings, score_rows
from probgap.cli.doctor import version_of
from probgap.diagnostics import Account, examine
from probgap.diagnostics.account import Caution, NextRow, as_plain
from probgap.io import save
from probgap.page import RankedRow, RunRecord, TableRecord, render_page
from probgap.tables import write_csv

FORMAT = 1  # of run.json
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib", "skops")
_N_RANKED = 20
_N_SHOWN_COLUMNS = 4
_LONGEST_CELL = 200
_LONG_FRACTION = re.compile(r"-?\d{1,15}\.\d{7,}")


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

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``run.json``."""
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

    def write(self, folder: Path) -> None:
        """Write the files of the run: all of them, or none."""
        content = json.dumps(
            self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1
        )
        page = render_page(
            self.account, table=self.table, ranked=self.ranked, run=self.run
        )
        # What the model file tells about its table.
        names = ("name", "sha256", "label", "id", "positive")
        metadata = {name: getattr(self.table, name) for name in names}
        write: dict[str, Callable[[Path], object]] = {
            "report.html": lambda path: path.write_text(page, encoding="utf-8"),
            "scores.csv": lambda path: write_csv(self.scores, path),
            "label_next.csv": lambda path: write_csv(self.label_next, path),
            "model.skops": lambda path: save(self.model, path, metadata=metadata),
            "run.json": lambda path: path.write_text(content + "\n", encoding="utf-8"),
        }
        write_folder(folder, {name: write[name] for name in self.run.files})


def check_fit(
    model: Any,
    prepared: Prepared,
    heard: list[Warning],
    progress: Callable[[float, float, str], None],
) -> Account:
    """Return the account of a fit, which warned of what was heard."""
    request = prepared.request
    with caught_warnings():  # of refits: what they warn of has been said of the fit
        account = examine(
            model,
            prepared.inputs,
            prepared.labels.labelled,
            random_state=request.seed,
            n_jobs=request.jobs,
            progress=progress,
        )
    return replace(account, warnings=_add_heard(account.warnings, heard))


def _add_heard(said: tuple[Caution, ...], heard: list[Warning]) -> tuple[Caution, ...]:
    """Add what ``fit`` warned of to what the account says already, no fact twice."""
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


def describe(
    model: Any, prepared: Prepared, account: Account, run: RunRecord
) -> Analysis:
    """Score and rank the rows of a fit, by models that have not seen them."""
    labelled, classifier = prepared.labels.labelled, model[-1]
    scored = score_rows(
        classifier, classifier.observed_gap_, classifier.posterior_, labelled
    )
    gap, probability = (scored[key].to_numpy() for key in ("gap", "probability"))
    ranked = rank_hidden(probability, gap, labelled)
    named = tuple(
        replace(
            entry,
            row=prepared.number_of(entry.row - 1),
            id=prepared.id_of(entry.row - 1),
        )
        for entry in account.next
    )
    return Analysis(
        model=model,
        scores=_score_table(prepared, scored, ranked),
        label_next=_next_table(prepared, account.next),
        account=replace(account, next=named),
        table=_describe_table(prepared, account.found.rows),
        ranked=_likeliest(prepared, scored, ranked[:_N_RANKED], account),
        run=run,
    )


def describe_run(
    engine: MemoryEngine, model: Any, started: str, seconds: Mapping[str, float]
) -> RunRecord:
    """Return how, when and with what a fit was made."""
    settings = {
        key: value if isinstance(value, str | int | float | bool) else repr(value)
        for key, value in model[-1].get_params(deep=False).items()
        if value is not None
    }
    versions = {"python": platform.python_version(), "probgap": __version__}
    for name in _LIBRARIES:
        if (found := version_of(name)) is not None:
            versions[name] = found
    return RunRecord(
        probgap=__version__,
        started=started,
        command=engine.request.command,
        seed=engine.request.seed,
        settings=settings,
        versions=versions,
        timings={step: round(taken, 3) for step, taken in seconds.items()},
        pipeline=repr(model),
        files=engine.files,
        engine=engine.name,
    )


def _describe_table(prepared: Prepared, n_rows: int) -> TableRecord:
    request, labels, table = prepared.request, prepared.labels, prepared.table
    source = request.source
    return TableRecord(
        name=table.name,
        path="-" if source == "-" else str(Path(source).absolute()),
        rows=n_rows,
        sha256=table.sha256,
        label=request.label,
        positive=labels.positive,
        unlabelled={str(key): int(n) for key, n in labels.unlabelled.items()},
        sentence=labels.sentence,
        id=request.id,
        notes=tuple(table.notes),
        columns=tuple(asdict(use) for use in prepared.plan.columns),
        files=prepared.files,
    )


def rank_hidden(probability: Vector, gap: Vector, labelled: Mask) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~labelled)
    order = np.lexsort((rows, -gap[rows], -probability[rows]))
    return rows[order]


def _likeliest(
    prepared: Prepared,
    scored: pd.DataFrame,
    ranked: NDArray[np.intp],
    account: Account,
) -> tuple[RankedRow, ...]:
    """Return ranked rows with the columns that matter most."""
    driving = [] if account.drivers is None else account.drivers.columns
    names = (driving or prepared.plan.inputs)[:_N_SHOWN_COLUMNS]
    frame = prepared.table.frame
    return tuple(
        RankedRow(
            rank=rank,
            row=prepared.number_of(at),
            id=prepared.id_of(at),
            probability=float(scored["probability"].iloc[at]),
            gap=float(scored["gap"].iloc[at]),
            values={name: cell_text(frame[name].iloc[at]) for name in names},
        )
        for rank, at in enumerate(ranked.tolist(), start=1)
    )


def cell_text(value: Any) -> str:
    """Return a cell as text, a missing one as nothing, a long decimal fraction rounded."""
    if pd.isna(value):
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if _LONG_FRACTION.fullmatch(text):
        text = f"{float(text):.6g}"
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"


def _score_table(
    prepared: Prepared, scored: pd.DataFrame, ranked: NDArray[np.intp]
) -> pd.DataFrame:
    """Order rows by rank, labelled ones last, as in the table."""
    labels = prepared.labels
    rank = np.full(len(scored), "", dtype=object)
    rank[ranked] = np.arange(1, ranked.size + 1).astype(str)
    table = scored.assign(rank=rank)
    observed = np.where(labels.labelled, labels.positive, "")
    table.insert(0, "observed_label", observed)
    if prepared.ids is not None:
        table.insert(0, "id", prepared.ids)
    table.insert(0, "row", np.arange(1, len(scored) + 1))
    return table.iloc[np.concatenate([ranked, np.flatnonzero(labels.labelled)])]


def _next_table(prepared: Prepared, suggested: tuple[NextRow, ...]) -> pd.DataFrame:
    """Return the rows to label next, whole, with an empty label column to fill in."""
    frame, rows = prepared.table.frame, [entry.row - 1 for entry in suggested]
    table = frame.iloc[rows].reset_index(drop=True).astype(object)
    table[prepared.request.label] = ""
    ours = pd.DataFrame(
        [
            (prepared.number_of(e.row - 1), e.probability, e.gap, e.why)
            for e in suggested
        ],
        columns=["row", "probability", "gap", "why"],
    )
    taken = {name: f"probgap_{name}" for name in ours.columns if name in frame.columns}
    return pd.concat([ours.rename(columns=taken), table], axis=1)
