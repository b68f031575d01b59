"""A fit and its results: the account, scores and ranks, and the files that hold them."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probgap import __version__
from probgap.cli._output import write_folder
from probgap.cli._prepare import (
    MemoryEngine,
    Prepared,
    cell_text,
    rank_hidden,
    score_rows,
)
from probgap.cli._terminal import Progress, caught_warnings
from probgap.diagnostics import Account, examine
from probgap.diagnostics.account import Caution, as_plain
from probgap.io import save
from probgap.page import (
    AllRows,
    RankedRow,
    RunRecord,
    TableRecord,
    expect_positives,
    render_page,
)
from probgap.tables import describe_ranges, write_csv

FORMAT = 1  # of run.json
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib", "skops")
_N_RANKED = 20
_N_SHOWN_COLUMNS = 4


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
        prepared, request = self.prepared, self.prepared.request
        labels, source = prepared.labels, request.source
        return TableRecord(
            name=prepared.table.name,
            path="-" if source == "-" else str(Path(source).absolute()),
            rows=self.account.found.rows,
            sha256=prepared.table.sha256,
            label=request.label,
            positive=labels.positive,
            unlabelled=labels.unlabelled,
            sentence=labels.sentence,
            id=request.id,
            notes=prepared.table.notes,
            columns=tuple(asdict(use) for use in prepared.plan.columns),
            files=prepared.files,
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The rows by rank, labelled ones last, scored by models not fitted on them."""
        labels, classifier = self.prepared.labels, self.model[-1]
        table = score_rows(
            classifier,
            classifier.observed_gap_,
            classifier.probability_,
            labels.labelled,
        )
        observed = np.where(labels.labelled, labels.positive, "")
        table.insert(0, "observed_label", observed)
        if self.prepared.request.id is not None:
            table.insert(0, "id", self.prepared.ids)
        table.insert(0, "row", self.prepared.numbers)
        probability, gap = (table[key].to_numpy() for key in ("probability", "gap"))
        ranked = rank_hidden(probability, gap, labels.labelled)
        place = table.columns.get_loc("predicted_label") + 1
        table.insert(place, "rank", "")
        table.loc[ranked, "rank"] = np.arange(1, ranked.size + 1).astype(str)
        return table.iloc[np.concatenate([ranked, np.flatnonzero(labels.labelled)])]

    @cached_property
    def ranked(self) -> tuple[RankedRow, ...]:
        """The likeliest hidden positives, with the columns that matter most."""
        drivers, frame = self.account.drivers, self.prepared.table.frame
        driving = None if drivers is None else drivers.columns
        names = (driving or self.prepared.plan.inputs)[:_N_SHOWN_COLUMNS]
        top = self.scores[self.scores["rank"] != ""].head(_N_RANKED)
        reading = self.model[-1].reading_
        likely = reading.probability_range(top["probability"], unlabelled=True)
        chances = np.where(likely.agreed, top["probability"], np.nan).tolist()
        return tuple(
            RankedRow(
                rank=int(row["rank"]),
                row=row["row"],
                id=row.get("id"),
                probability=row["probability"],
                gap=row["gap"],
                values={name: cell_text(frame.at[at, name]) for name in names},
                range=(row["probability_low"], row["probability_high"]),
                chance=None if np.isnan(chance) else chance,
            )
            for at, row, chance in zip(
                top["row"] - 1, top.to_dict("records"), chances, strict=True
            )
        )

    @property
    def all_rows(self) -> AllRows | None:
        """The unlabelled rows by rank, with their cells; none if rows were sampled."""
        scores = self.scores[self.scores["rank"] != ""]
        if "scores.csv" not in self.run.files or scores.empty:
            return None
        drivers, inputs = self.account.drivers, self.prepared.inputs
        telling = [] if drivers is None else list(drivers.columns)
        names = [*telling, *(name for name in inputs if name not in telling)]
        classifier = self.model[-1]
        posterior = classifier.posterior_[scores.index]
        expected = expect_positives(classifier.reading_, posterior)
        return AllRows(scores, inputs[names].iloc[scores.index], expected)

    @property
    def label_next(self) -> pd.DataFrame:
        """The rows to label next, whole, with an empty label column to fill in."""
        frame, suggested = self.prepared.table.frame, self.account.next
        table = frame.loc[[entry.row - 1 for entry in suggested]].astype(object)
        table[self.prepared.request.label] = ""
        names = ["row", "probability", "gap", "why"]
        ours = pd.DataFrame(
            [[getattr(entry, name) for name in names] for entry in suggested],
            index=table.index,
            columns=names,
        )
        taken = {name: f"probgap_{name}" for name in names if name in frame.columns}
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
            self.account,
            table=self.table,
            ranked=self.ranked,
            run=self.run,
            rows=self.all_rows,
        )
        # What the model file notes about its table.
        names = ("name", "sha256", "label", "id", "positive")
        metadata = {name: getattr(self.table, name) for name in names}
        prepared = self.prepared
        metadata["ranges"] = describe_ranges(prepared.inputs, prepared.plan)
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
            fast=request.fast,
            random_state=request.seed,
            n_jobs=request.jobs,
            progress=progress.advance,
        )
    numbers, ids = prepared.numbers, prepared.ids
    named = [
        replace(entry, row=int(numbers[entry.row - 1]), id=ids[entry.row - 1])
        for entry in account.next
    ]
    cautions = list(account.warnings)
    for warning in raised:
        what, do = split_sentence(str(warning))
        code = getattr(warning, "code", None)
        if not any(
            known.what in (what, str(warning)) or (code and known.sign == code)
            for known in cautions
        ):
            cautions.append(Caution("strong" if code else "mild", what, do))
    cautions.sort(key=lambda caution: caution.level != "strong")
    return replace(account, next=tuple(named), warnings=tuple(cautions))


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
    return RunRecord(
        probgap=__version__,
        started=started,
        command=engine.request.command,
        seed=engine.request.seed,
        settings=settings,
        versions=versions | {name: version(name) for name in _LIBRARIES},
        timings={step: round(taken, 3) for step, taken in progress.seconds.items()},
        pipeline=repr(model),
        files=engine.files,
        engine=engine.name,
    )
