"""What a run tells beside the account of its fit: table, ranked rows, settings."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probgap import __version__
from probgap.cli._prepare import Prepared, Request

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap.diagnostics import Account
    from probgap.diagnostics.account import NextRow
    from probgap.page import RankedRow, RunRecord, TableRecord

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib", "skops")
_LEARNT_FROM = ("number", "date", "category", "text")
_N_RANKED = 20
_N_SHOWN_COLUMNS = 4
_LONGEST_CELL = 200
_LONG_FRACTION = re.compile(r"-?\d{1,15}\.\d{7,}")


def name_of(ids: NDArray[Any] | None, row: int) -> str | None:
    """Return the user's name of a row, counted from 1."""
    return None if ids is None else str(ids[row - 1])


def describe_table(request: Request, prepared: Prepared) -> TableRecord:
    from probgap.page import TableRecord

    labels, table = prepared.labels, prepared.table
    source = request.source
    return TableRecord(
        name=table.name,
        path="-" if source == "-" else str(Path(source).absolute()),
        rows=len(table.frame),
        sha256=table.sha256,
        label=request.label,
        positive=labels.positive,
        unlabelled={str(key): int(n) for key, n in labels.unlabelled.items()},
        sentence=labels.sentence,
        id=request.id,
        notes=tuple(table.notes),
        columns=tuple(asdict(use) for use in prepared.plan.columns),
    )


def describe_run(request: Request, model: Any, started: datetime) -> RunRecord:
    from probgap.page import RunRecord

    settings = {
        key: value if isinstance(value, str | int | float | bool) else repr(value)
        for key, value in model[-1].get_params(deep=False).items()
        if value is not None
    }
    return RunRecord(
        probgap=__version__,
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        command=request.command,
        seed=request.seed,
        settings=settings,
        versions=library_versions(),
        pipeline=repr(model),
    )


def library_versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    found = {"python": platform.python_version(), "probgap": __version__}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def likeliest(
    prepared: Prepared,
    scored: pd.DataFrame,
    ranked: NDArray[np.intp],
    account: Account,
) -> tuple[RankedRow, ...]:
    """Return the likeliest hidden positives, with the columns that matter most."""
    from probgap.page import RankedRow

    used = [use.name for use in prepared.plan.columns if use.use in _LEARNT_FROM]
    driving = [] if account.drivers is None else account.drivers.columns
    names = (driving or used)[:_N_SHOWN_COLUMNS]
    frame = prepared.table.frame
    return tuple(
        RankedRow(
            rank=rank,
            row=prepared.number(int(at)),
            id=name_of(prepared.ids, int(at) + 1),
            probability=float(scored["probability"].iloc[at]),
            gap=float(scored["gap"].iloc[at]),
            values={name: cell_text(frame[name].iloc[at]) for name in names},
        )
        for rank, at in enumerate(ranked[:_N_RANKED], start=1)
    )


def cell_text(value: Any) -> str:
    """Show a cell as text, a missing one as nothing, a long decimal fraction rounded."""
    if value is None or value != value or str(value) == "<NA>":  # noqa: PLR0124 (NaN)
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if _LONG_FRACTION.fullmatch(text):
        text = f"{float(text):.6g}"
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"


def score_table(
    prepared: Prepared, scored: pd.DataFrame, ranked: NDArray[np.intp]
) -> pd.DataFrame:
    """Order rows by rank, labelled ones last, as in the table."""
    labels = prepared.labels
    observed = np.where(labels.labelled, labels.positive, "")
    table = scored.assign(row=np.arange(1, len(scored) + 1), observed_label=observed)
    rank = np.zeros(len(scored), dtype=np.int64)
    rank[ranked] = np.arange(1, ranked.size + 1)
    table["rank"] = np.where(labels.labelled, "", rank.astype(str))
    columns = ["row", "observed_label", "gap", "decided", "probability"]
    columns += ["predicted_label", "rank"]
    if prepared.ids is not None:
        table["id"] = prepared.ids
        columns.insert(1, "id")
    order = np.concatenate([ranked, np.flatnonzero(labels.labelled)])
    return table[columns].iloc[order]


def next_table(suggested: tuple[NextRow, ...], prepared: Prepared) -> pd.DataFrame:
    """Return the rows to label next, whole, with an empty label column to fill in."""
    import pandas as pd

    frame = prepared.table.frame
    rows = [entry.row - 1 for entry in suggested]
    table = frame.iloc[rows].reset_index(drop=True).astype(object)
    table[prepared.label] = ""
    ours = pd.DataFrame(
        [(prepared.number(e.row - 1), e.probability, e.gap, e.why) for e in suggested],
        columns=["row", "probability", "gap", "why"],
    )
    taken = {name: f"probgap_{name}" for name in ours.columns if name in frame.columns}
    return pd.concat([ours.rename(columns=taken), table], axis=1)
