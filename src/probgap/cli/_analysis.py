"""A fit and its report, and the files that hold both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from probgap.cli._output import write_folder
from probgap.cli._prepare import MemoryEngine, Prepared
from probgap.cli._terminal import Progress, caught_warnings
from probgap.io import save
from probgap.reporting import Report, report
from probgap.tables import describe_ranges, write_csv


@dataclass(frozen=True)
class Analysis:
    """A fitted model, the rows it was fitted to, and the report of both."""

    model: Any
    prepared: Prepared
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``run.json``."""
        return self.report.to_dict()

    def write(self, folder: Path) -> None:
        """Write the files of the run: all of them, or none."""
        found, tree, prepared = self.report, self.report.tree, self.prepared
        # What the model file notes about its table.
        names = ("name", "sha256", "label", "id", "positive")
        metadata = {name: tree["table"][name] for name in names}
        metadata["sha256"] = prepared.table.sha256
        metadata["ranges"] = describe_ranges(prepared.inputs, prepared.plan)
        write: dict[str, Callable[[Path], object]] = {
            "report.html": found.save,
            "scores.csv": lambda path: write_csv(found.ranked, path),
            "label_next.csv": lambda path: write_csv(found.label_next, path),
            "model.skops": lambda path: save(self.model, path, metadata=metadata),
            "run.json": found.save,
        }
        write_folder(folder, {name: write[name] for name in tree["run"]["files"]})


def check_fit(
    model: Any,
    prepared: Prepared,
    raised: list[Warning],
    progress: Progress,
    engine: MemoryEngine,
    started: str,
) -> Report:
    """Return the report of a fit, with the warnings that it raised."""
    request, labels = prepared.request, prepared.labels
    source = request.source
    described = SimpleNamespace(
        frame=prepared.table.frame,
        name=prepared.table.name,
        path="-" if source == "-" else str(Path(source).absolute()),
        sha256=prepared.table.sha256,
        label=request.label,
        positive=labels.positive,
        unlabelled=labels.unlabelled,
        sentence=labels.sentence,
        id=request.id,
        notes=prepared.table.notes,
        columns=[asdict(use) for use in prepared.plan.columns],
        files=prepared.files,
    )
    run = {
        "started": started,
        "command": request.command,
        "seed": request.seed,
        "files": engine.files,
        "engine": engine.name,
    }
    with caught_warnings():  # of refits, which repeat those of the fit
        return report(
            model,
            prepared.inputs,
            labels.labelled,
            ids=None if request.id is None else prepared.ids,
            table=described,  # type: ignore[arg-type]
            run=run,
            fast=request.fast,
            random_state=request.seed,
            n_jobs=request.jobs,
            progress=progress.advance,
            caught=raised,
        )
