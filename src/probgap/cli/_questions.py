"""The questions of an audit: how they are drawn, kept, and written for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probgap._core.errors import InvalidInputError, load_library, refuse
from probgap._core.output import whole_file
from probgap.audit import Design, design, estimate
from probgap.cli._fitted import FittedTable
from probgap.cli._journal import ANSWERS, UNDO, Answer, Record, read_journal
from probgap.cli._table import require_column
from probgap.cli._terminal import caught_warnings

NAME = "audit.json"
FORMAT = 2


@dataclass(frozen=True)
class AuditFile:
    """An audit of a fit: how rows were drawn, and the rows as they were shown.

    Answers to it are in the journal, after line ``since``. ``asked`` has the number (from
    1), the id and the cells of each row.
    """

    fit: FittedTable
    design: Design
    asked: Sequence[Mapping[str, Any]]
    since: int

    @classmethod
    def read(cls, fit: FittedTable) -> AuditFile:
        """Return the audit of a fit, or refuse a folder without one."""
        path = fit.folder / NAME
        if not path.is_file():
            refuse(
                f"{fit.folder} holds no audit yet; begin with probgap audit {fit.folder}."
            )
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            drawn = Design.from_dict(plain["design"])
            parts = plain["asked"], int(plain["since"])
            known = plain["format"] == FORMAT
        except (KeyError, TypeError, ValueError, RecursionError):
            known = False
        if not known:
            refuse(
                f"{path} is damaged, or of another version of probgap; begin again with "
                "--force."
            )
        return cls(fit, drawn, *parts)

    @classmethod
    def of(cls, fit: FittedTable, drawn: Design, since: int) -> AuditFile:
        """Return the audit of rows that were drawn from the table of a fit."""
        return cls(
            fit, drawn, [fit.describe(row) for row in drawn.rows.tolist()], since
        )

    def extend(self, n: int) -> AuditFile:
        """Return the audit with further rows, by the answers so far."""
        return self.of(self.fit, self.design.extend(self.answers, n), self.since)

    @property
    def said(self) -> dict[int, Record]:
        """All answers about rows of the table that stand, in the order in which they came."""
        found: dict[int, Record] = {}
        for record in filter(None, read_journal(self.fit.folder)[self.since :]):
            found.pop(record.row, None)
            if record.word != UNDO:
                found[record.row] = record
        return found

    @property
    def counted(self) -> dict[int, Record]:
        """Answers to the questions.

        Rows that were not chosen by the draw say nothing about the others.
        """
        drawn, kind = set(self.design.rows.tolist()), self.design.kind
        said = self.said.items()
        return {row: each for row, each in said if row in drawn and each.mode == kind}

    @property
    def answers(self) -> dict[int, Answer]:
        """What the answers to the questions say."""
        return {row: ANSWERS[each.word] for row, each in self.counted.items()}

    def settled(self, more: Mapping[int, str]) -> dict[int, bool]:
        """Return all answers yes or no, by row, and those among ``more``."""
        words = {row: each.word for row, each in self.said.items()} | dict(more)
        return {
            row: words[row] == "yes" for row in sorted(words) if words[row] != "unknown"
        }

    def write(self) -> dict[str, Any]:
        """Write the audit and what it says so far, whole or not at all; return the latter."""
        counted, found = self.counted, estimate(self.design, self.answers).to_dict()
        said = {
            row: {"row": row + 1, "answer": each.word}
            for row, each in self.said.items()
        }
        plain = {
            "format": FORMAT,
            "estimate": found,
            "asked": self.asked,
            "answers": [said[row] for row in counted],
            "others": [each for row, each in said.items() if row not in counted],
            "since": self.since,
            "design": self.design.to_dict(),
        }
        with whole_file(self.fit.folder / NAME) as file:
            json.dump(plain, file, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        return found


def draw(
    fit: FittedTable,
    kind: Any,
    budget: int,
    seed: int,
    *,
    by: str | None = None,
    before: AuditFile | None = None,
    since: int = 0,
) -> AuditFile:
    """Choose rows to ask about: of kind find or teach, by earlier answers, and none twice.

    Those of an audit from every group of rows that a column (``by``) tells apart; without
    one, that of the columns that say who was looked at which has the lowest rate.
    """
    known, model = fit.known.copy(), fit.model
    if kind != "audit" and before is not None:
        known[list(before.said)] = True
        if before.design.kind == "audit":
            # Left for the audit, whose answers must not depend on the score.
            known[before.design.rows] = True
        if kind == "teach" and (answers := before.settled({})):
            model = fit.correct(answers)
    inputs = fit.inputs if kind == "teach" else None
    how: Any = {"budget": budget, "kind": kind, "random_state": seed}
    labelling, column = fit.model[-1].labelling_, by
    if by is None and kind == "audit" and labelling is not None:
        column = min(labelling.groups, key=lambda group: group.rate).column
    groups = None if column is None else _read_groups(fit, column)
    with caught_warnings():
        try:
            drawn = design(model, inputs, known, groups=groups, **how)
        except InvalidInputError:
            if column == by:
                raise
            drawn = design(model, inputs, known, **how)  # the groups are too small
    return AuditFile.of(fit, drawn, since if before is None else before.since)


def _read_groups(fit: FittedTable, by: str) -> Any:
    """Return what a column tells apart."""
    import pandas as pd

    from probgap.tables import plain_values

    require_column("--by", by, list(fit.cells.columns))
    coded = by in fit.table_model.category
    return pd.Series(plain_values(fit.cells[by], text=coded), name=by)


def write_questions(fit: FittedTable, rows: Sequence[int], target: Path) -> None:
    """Write complete rows, with an empty column to fill in and without their scores."""
    from probgap.tables import write_csv

    frame = fit.cells.iloc[rows].astype(object)
    taken = {str(name).lower() for name in frame.columns}
    for name, values in (("row", [row + 1 for row in rows]), ("answer", "")):
        frame.insert(0, f"probgap_{name}" if name in taken else name, values)
    excel = target.suffix.lower() == ".xlsx"
    with whole_file(target, binary=excel) as file:
        (_write_excel if excel else write_csv)(frame, file)


def _write_excel(frame: Any, file: Any) -> None:
    """Write a workbook in which no text is taken for a formula or a date."""
    import pandas as pd

    load_library("openpyxl", extra="excel", purpose="Excel files")
    plain = frame.map(
        lambda value: value if isinstance(value, int | float) else str(value),
        na_action="ignore",
    )
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        plain.to_excel(writer, index=False)
        for row in writer.book.active.iter_rows():
            for cell in row:
                if isinstance(cell.value, str):
                    cell.data_type = "s"
