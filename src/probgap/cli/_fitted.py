"""A fit in a folder, opened again: its table, its model, and a model corrected by answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from probgap._core.errors import refuse
from probgap.cli._terminal import caught_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probgap._core.types import Mask
    from probgap.audit import CorrectedClassifier
    from probgap.tables._cells import Frame


def read_run(folder: Path, part: str) -> Any:
    """Return a part of run.json, or refuse a file that fit did not write."""
    path = folder / "run.json"
    if not path.is_file():
        refuse(
            f"DIR must be a folder that probgap fit wrote. Got {folder}: no run.json in it."
        )
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        run = None
    match run:
        case {"format": int(number)} if number > 1:
            refuse(
                f"{path} has format {number}, and this version reads format 1; use a "
                "newer probgap."
            )
        case {"format": 1, "drivers": None} if part == "drivers":
            refuse(
                "There were too few labelled rows to say what drives the probabilities."
            )
        case {"format": 1, "table": {"files": _, **table}} if (
            part == "table" and "sha256" not in table
        ):
            refuse(
                "This requires a fit in memory; this one was made with --engine dask."
            )
        case {"format": 1} if _is_whole(part, run.get(part)):
            pass
        case _:
            refuse(f"{path} is damaged or was altered; fit again.")
    return run[part]


def _is_whole(part: str, found: Any) -> bool:
    """Return whether a part has what the commands read of it."""
    match part, found:
        case "table", {
            "path": str(),
            "sha256": str(),
            "label": str(),
            "positive": str(),
        }:
            return "id" in found and isinstance(found["id"], str | None)
        case "run", {"answers": {"yes": list(rows)}}:
            return all(isinstance(row, int) for row in rows)
        case "run", dict():
            return True
        case "drivers", {
            "scored_by": str(),
            "score": int() | float(),
            "columns": list(),
        }:
            return all(_is_whole("driver", column) for column in found["columns"])
        case "driver", {"column": str(), "importance": shown, "spread": spread}:
            return all(isinstance(number, int | float) for number in (shown, spread))
    return False


class FittedTable:
    """The table of a fit, which is read again when it is asked for.

    ``source`` says where it is now, if not where it was.
    """

    def __init__(self, folder: Path, source: str | None) -> None:
        self.folder, self._source = folder, source
        self.described: dict[str, Any] = read_run(folder, "table")

    @cached_property
    def _frame(self) -> Frame:
        from probgap import tables

        source = self._source or self.described["path"]
        if source == "-":
            _refuse_table("none, and it came from standard input")
        if not all(Path(file).is_file() for file in tables.find_tables(source)):
            _refuse_table(f"{source!r}, which is not a file")
        table = tables.read_table(source)
        if table.sha256 != self.described["sha256"]:
            _refuse_table(f"a file with other contents: {source}")
        return table.frame

    @cached_property
    def cells(self) -> Frame:
        """All columns but the label, as they were read."""
        return self._frame.drop(columns=self.described["label"])

    @cached_property
    def inputs(self) -> Frame:
        """What the model learns from."""
        return self.table_model.read_inputs(self._frame)

    @cached_property
    def labelled(self) -> Mask:
        """Which rows are known positives."""
        cells = self._frame[self.described["label"]]
        found = self.table_model.labels_.find(cells)
        answers = read_run(self.folder, "run").get("answers", {"yes": []})
        found[[row - 1 for row in answers["yes"]]] = True
        return found

    @cached_property
    def known(self) -> Mask:
        """Which rows are known positives, or were checked and are negative."""
        negative = self.model[-1].negative_
        return self.labelled if negative is None else self.labelled | negative

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The user's names of the rows; None where no column holds them."""
        from probgap.tables import ids_of

        return ids_of(self._frame, self.described["id"])

    @property
    def scored_ids(self) -> dict[int, str]:
        """The user's names of the rows as the fit wrote them, by row."""
        from probgap.tables import read_table

        scores = read_table(self.folder / "scores.csv").frame
        rows = scores["row"].astype(int) - 1
        return dict(zip(rows, scores["id"], strict=True))

    def find_row(self, row: str) -> int:
        """Return the place of a row that is named by its id or its number."""
        named = self.described["id"] is not None
        names = self.ids if named else [str(at) for at in range(1, len(self.ids) + 1)]
        found = [at for at, name in enumerate(names) if name == row]
        if len(found) != 1 and not named:
            refuse(f"--row must be a number from 1 to {len(names)}. Got {row!r}.")
        if len(found) != 1:
            which = f"{len(found)} rows" if found else "no row"
            refuse(f"--row must be the id of one row. Got {row!r}, the id of {which}.")
        return found[0]

    @cached_property
    def table_model(self) -> Any:
        """The model that was fitted, which takes the table as it is."""
        from probgap.io import load

        with caught_warnings():
            return load(self.folder / "model.probgap")

    @property
    def model(self) -> Any:
        """Its pipeline, which takes ``inputs``."""
        return self.table_model.pipeline_

    def describe(self, row: int) -> dict[str, Any]:
        """Return number, id and cells of a row as text."""
        from probgap.reporting import cell_text

        cells = self.cells.iloc[row].items()
        shown = {str(name): cell_text(value) for name, value in cells}
        return {"row": row + 1, "id": self.ids[row], "cells": shown}

    def correct(self, answers: Mapping[int, bool]) -> CorrectedClassifier:
        """Return the model corrected by answers, by row."""
        from probgap.audit import correct

        rows = list(answers)
        # Of models that have not seen the rows.
        held_out = self.model[-1].posterior_[rows]
        asked, said = self.inputs.iloc[rows], list(answers.values())
        with caught_warnings():
            return correct(self.model, asked, said, probability=held_out)


def _refuse_table(found: str) -> NoReturn:
    refuse(f"--table must name the table that the model was fitted to. Got {found}.")
