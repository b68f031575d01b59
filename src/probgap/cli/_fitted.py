"""A fit in a folder, opened again: its table, its model, and a model corrected by answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap._core.errors import refuse
from probgap.cli._run import read_run, read_same
from probgap.cli._terminal import caught_warnings

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap._core.types import Mask
    from probgap.audit import CorrectedClassifier


class FittedTable:
    """The table of a fit, which is read again when it is asked for.

    Parameters
    ----------
    folder : Path
        A folder that fit wrote; any other is refused.
    source : str or None
        Where the table is now, if not where it was.
    """

    def __init__(self, folder: Path, source: str | None) -> None:
        self.folder, self._source = folder, source
        self.described: dict[str, Any] = read_run(folder, "table")

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return read_same(self.described, self._source)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """All columns but the label, as they were read."""
        return self._frame.drop(columns=self.described["label"])

    @cached_property
    def inputs(self) -> pd.DataFrame:
        """What the model learns from."""
        inputs: pd.DataFrame = self.table_model.read_inputs(self._frame)
        return inputs

    @cached_property
    def labelled(self) -> Mask:
        """Which rows are known positives."""
        labels = self.table_model.labels_
        known: Mask = labels.find(self._frame[self.described["label"]])
        return known

    @property
    def positive(self) -> str:
        """The value of the label column that marks them."""
        positive: str = self.described["positive"]
        return positive

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The user's names of the rows; None where no column holds them."""
        from probgap.tables import ids_of

        return ids_of(self._frame, self.described["id"])

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
