"""A fit in a folder, opened again: its table, its model, and a model corrected by answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap.cli._run import read_run, request_again
from probgap.cli._terminal import caught_warnings

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from probgap._core.types import Mask
    from probgap.audit import CorrectedClassifier
    from probgap.cli._prepare import Prepared


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
    def _prepared(self) -> Prepared:
        from probgap.cli._prepare import Request, prepare

        return prepare(Request(**request_again(self.described, self._source)))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """All columns but the label, as they were read."""
        return self._prepared.table.frame.drop(columns=self.described["label"])

    @property
    def inputs(self) -> pd.DataFrame:
        """What the model learns from."""
        return self._prepared.inputs

    @property
    def labelled(self) -> Mask:
        """Which rows are known positives."""
        return self._prepared.labels.labelled

    @property
    def positive(self) -> str:
        """The value of the label column that marks them."""
        return self._prepared.labels.positive

    @property
    def ids(self) -> NDArray[Any]:
        """The user's names of the rows; None where no column holds them."""
        return self._prepared.ids

    @cached_property
    def model(self) -> Any:
        """The pipeline that was fitted."""
        from probgap.io import load

        with caught_warnings():
            return load(self.folder / "model.skops")

    def describe(self, row: int) -> dict[str, Any]:
        """Return number, id and cells of a row as text."""
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


def cell_text(value: Any) -> str:
    """Return a cell as text, at most 200 characters."""
    from probgap import reporting

    return reporting.cell_text(value)
