"""A fit and its results: the account, scores and ranks, and the files that hold them."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probgap import __version__
from probgap._core.types import Mask, Vector
from probgap.cli._output import write_folder
from probgap.cli._prepare import MemoryEngine, Prepared
from probgap.cli._terminal import Progress, caught_warnings
from probgap.cli.doctor import version_of
from probgap.cli.predict import score_rows
from probgap.diagnostics import Account, examine
from probgap.diagnostics.account import Caution, as_plain
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
    """A fitted model, the rows it was fitted to, and the account of both."""

    model: Any
    prepared: Prepared
    account: Account
    run: RunRecord

    @cached_property
    def table(self) -> TableRecord:
        """Where the rows came from and how they were read."""
        request, labels = self.prepared.request, self.prepared.labels
        table, source = self.prepared.table, self.prepared.request.source
        return TableRecord(
            name=table.name,
            path="-" if source == "-" else str(Path(source).absolute()),
            rows=self.account.found.rows,
            sha256=table.sha256,
            label=request.label,
            positive=labels.positive,
            unlabelled=labels.unlabelled,
            sentence=labels.sentence,
            id=request.id,
            notes=table.notes,
            columns=tuple(asdict(use) for use in self.prepared.plan.columns),
            files=self.prepared.files,
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The rows by rank, labelled ones last, scored by models not fitted on them."""
        labels, classifier = self.prepared.labels, self.model[-1]
        table = score_rows(
            classifier, classifier.observed_gap_, classifier.posterior_, labels.labelled
        )
        probability, gap = (table[key].to_numpy() for key in ("probability", "gap"))
        ranked = rank_hidden(probability, gap, labels.labelled)
        table.insert(
            0, "observed_label", np.where(labels.labelled, labels.positive, "")
        )
        if self.prepared.request.id is not None:
            table.insert(0, "id", self.prepared.ids)
        table.insert(0, "row", self.prepared.numbers)
        table["rank"] = ""
        table.loc[ranked, "rank"] = np.arange(1, ranked.size + 1).astype(str)
        return table.iloc[np.concatenate([ranked, np.flatnonzero(labels.labelled)])]

    @cached_property
    def ranked(self) -> tuple[RankedRow, ...]:
        """The likeliest hidden positives, with the columns that matter most."""
        drivers, frame = self.account.drivers, self.prepared.table.frame
        driving = None if drivers is None else drivers.columns
        names = (driving or self.prepared.plan.inputs)[:_N_SHOWN_COLUMNS]
        top = self.scores[self.scores["rank"] != ""].head(_N_RANKED)
        return tuple(
            RankedRow(
                rank=int(row["rank"]),
                row=row["row"],
                id=row.get("id"),
                probability=row["probability"],
                gap=row["gap"],
                values={name: cell_text(frame.at[at, name]) for name in names},
            )
            for at, row in zip(top["row"] - 1, top.to_dict("records"), strict=True)
        )

    @property
    def label_next(self) -> pd.DataFrame:
        """The rows to label next, whole, with an empty label column to fill in."""
        frame, suggested = self.prepared.table.frame, self.account.next
        table = frame.loc[[entry.row - 1 for entry in suggested]].astype(object)
        table[self.prepared.request.label] = ""
        ours = pd.DataFrame(
            [
                (entry.row, entry.probability, entry.gap, entry.why)
                for entry in suggested
            ],
            index=table.index,
            columns=["row", "probability", "gap", "why"],
        )
        taken = {name: f"probgap_{name}" for name in ours if name in frame.columns}
        return pd.concat([ours.rename(columns=taken), table], axis=1)

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
        # What the model file notes about its table.
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
    model: Any, prepared: Prepared, raised: list[Warning], progress: Progress
) -> Account:
    """Return the account of a fit, with the warnings that it raised."""
    request = prepared.request
    with caught_warnings():  # of refits, which repeat those of the fit
        account = examine(
            model,
            prepared.inputs,
            prepared.labels.labelled,
            random_state=request.seed,
            n_jobs=request.jobs,
            progress=progress.advance,
        )
    numbers = prepared.numbers
    named = [
        replace(each, row=int(numbers[each.row - 1]), id=prepared.ids[each.row - 1])
        for each in account.next
    ]
    cautions = _add_warnings(account.warnings, raised)
    return replace(account, next=tuple(named), warnings=cautions)


def _add_warnings(
    cautions: tuple[Caution, ...], raised: list[Warning]
) -> tuple[Caution, ...]:
    """Add the warnings of ``fit`` to those of the account, without repeating any."""
    found = list(cautions)
    for warning in raised:
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


def describe_run(
    engine: MemoryEngine, model: Any, started: str, progress: Progress
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
        timings={step: round(taken, 3) for step, taken in progress.seconds.items()},
        pipeline=repr(model),
        files=engine.files,
        engine=engine.name,
    )


def rank_hidden(probability: Vector, gap: Vector, labelled: Mask) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~labelled)
    return rows[np.lexsort((rows, -gap[rows], -probability[rows]))]


def cell_text(value: Any) -> str:
    """Return a cell as text, a missing one as nothing, a long decimal fraction rounded."""
    if pd.isna(value):
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if _LONG_FRACTION.fullmatch(text):
        text = f"{float(text):.6g}"
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"
