"""Answers as people type them, and the file that keeps an audit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from probgap._core.output import whole_file
from probgap.audit import AuditEstimate, Design, estimate
from probgap.cli._labelling import READ, SPOKEN, UNDO, Answer, read_journal
from probgap.cli._terminal import listed, refuse

NAME = "audit.json"
FORMAT = 1
_YES = "y yes ja j oui o si sí s sim da tak 1 1.0 true t x wahr vrai positive pos + ✓ ✔"
_NO = "n no nein non não nao nee nej nie ne 0 0.0 false f falsch faux negative neg -"
_UNKNOWN = (
    "?,??,u,unknown,unsure,unclear,unklar,maybe,cannot tell,can't tell,cant tell,"
    "don't know,dont know,do not know,not sure,weiß nicht,weiss nicht,vielleicht,skip"
)
_WORDS: dict[str, Answer] = {
    **dict.fromkeys(_YES.split(), True),
    **dict.fromkeys(_NO.split(), False),
    **dict.fromkeys(_UNKNOWN.split(","), None),
}


@dataclass(frozen=True)
class AuditFile:
    """An audit as it is kept: its design, the rows as they were shown, and answers.

    ``asked`` has the number (from 1), the id and the cells of each row; ``answers`` are
    by the row's index (from 0); ``others`` are answers about rows that were not drawn.
    ``journal`` is the number of lines of the journal of ``probgap label`` that they
    contain.
    """

    design: Design
    table: Mapping[str, Any]
    asked: Sequence[Mapping[str, Any]]
    answers: Mapping[int, Answer] = field(default_factory=dict)
    others: Mapping[int, Answer] = field(default_factory=dict)
    journal: int = 0

    @classmethod
    def read(cls, folder: Path) -> AuditFile:
        """Return the audit of a folder, or refuse a folder without one."""
        path = folder / NAME
        if not path.is_file():
            refuse(f"{folder} holds no audit yet; begin with probgap audit {folder}.")
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            if plain["format"] > FORMAT:
                refuse(
                    f"{path} was written by a newer version; install a newer probgap."
                )
            answers, others = (
                {entry["row"] - 1: READ[entry["answer"]] for entry in plain[name]}
                for name in ("answers", "others")
            )
            made = Design.from_dict(plain["design"])
            past = int(plain.get("journal", 0))
            state = cls(made, plain["table"], plain["asked"], answers, others, past)
            return state.catch_up(read_journal(folder))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if type(error).__module__.startswith("probgap"):
                raise
            refuse(f"{path} is damaged or was altered; begin again with --force.")

    def catch_up(self, journal: Sequence[Mapping[str, Any]]) -> AuditFile:
        """Return the audit with the answers that a journal has since its last lines."""
        answers, others = dict(self.answers), dict(self.others)
        drawn = set(self.design.rows.tolist())
        for record in filter(None, journal[self.journal :]):
            row = record["row"] - 1
            # Rows that were not chosen by the draw say nothing about the others.
            counts = record["mode"] == self.design.kind and row in drawn
            told = answers if counts else others
            if record["answer"] == UNDO:
                told.pop(row, None)
            else:
                told[row] = READ[record["answer"]]
        return replace(self, answers=answers, others=others, journal=len(journal))

    def write(self, folder: Path) -> None:
        """Write the audit and what it says so far, whole or not at all."""
        with whole_file(folder / NAME) as file:
            plain = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)
            file.write(plain + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        kept = {
            name: [
                {"row": row + 1, "answer": SPOKEN[answer]}
                for row, answer in getattr(self, name).items()
            ]
            for name in ("answers", "others")
        }
        return {
            "format": FORMAT,
            "table": dict(self.table),
            "estimate": describe(estimate(self.design, self.answers)),
            "asked": list(self.asked),
            **kept,
            "journal": self.journal,
            "design": self.design.to_dict(),
        }


def describe(found: AuditEstimate) -> dict[str, Any]:
    """Return an estimate as plain data."""
    names = ("kind", "valid", "n_unlabelled", "n_asked", "n_yes", "n_no", "n_unknown")
    plain: dict[str, Any] = {"headline": found.headline, "kind": found.design.kind}
    plain |= {name: getattr(found, name) for name in names[1:]}
    plain |= {"count": found.count, "count_interval": list(found.count_interval)}
    plain["level"] = 0.9
    if found.valid:
        tops = sorted({min(k, found.n_unlabelled) for k in (20, 50, 100, 200, 500)})
        plain["precision"] = [{"k": k, **found.precision_at(k)._asdict()} for k in tops]
        plain["rows_to_find_80_percent"] = found.rows_to_find(0.8)._asdict()
        plain["calibration"] = [
            {
                "score_low": each.score_low,
                "score_high": each.score_high,
                "rows": each.rows,
                "answered": each.answered,
                "positive": each.positive,
                "unknown": each.unknown,
                "expected": each.expected,
                **{f"share_{n}": v for n, v in each.share._asdict().items()},
                "agrees": each.agrees,
            }
            for each in found.strata
        ]
        plain["model_interval"] = found.design.expected
        plain["model_verdict"] = found.model_verdict
    return plain


@dataclass(frozen=True)
class Told:
    """What was understood of a file of answers."""

    answers: Mapping[int, Answer]
    others: Mapping[int, Answer]
    notes: Sequence[str]


def read_answers(path: Path, audit: AuditFile, positive: str) -> Told:
    """Read answers in any order, with other columns between, as people type them."""
    from probgap.tables import read_table

    frame = read_table(path).frame
    names = {str(name).strip().lower(): name for name in frame.columns}
    answer = names.get("probgap_answer", names.get("answer"))
    if answer is None:
        refuse(f"{path} must have a column 'answer'. It has {listed(list(names), 8)}.")
    cells = {
        name: [_text(value) for value in frame[name].tolist()] for name in frame.columns
    }
    rows, strange = _find_rows(path, names, cells, audit)
    spoken = cells[answer]
    words = _WORDS | {positive.strip().casefold(): True}
    words[f"not {positive.strip().casefold()}"] = False
    read: dict[int, set[Answer]] = {}
    understood: dict[Answer, Counter[str]] = {word: Counter() for word in SPOKEN}
    puzzling: dict[int, str] = {}
    for row, text in zip(rows, spoken, strict=True):
        if row is None or not text:
            continue
        word = text.casefold().strip(" .!'\"")
        meaning = words.get(word)
        if word not in words:
            puzzling[row] = text
        else:
            understood[meaning][text] += 1
        read.setdefault(row, set()).add(meaning)
    notes = [_understood(understood)]
    torn = sorted(row for row, said in read.items() if len(said) > 1)
    # What cannot be used either way counts both ways.
    all_read = {
        r: None if len(said) > 1 else said.copy().pop() for r, said in read.items()
    }
    asked = {entry["row"] - 1: entry for entry in audit.asked}
    answers = {row: said for row, said in all_read.items() if row in asked}
    others = {row: said for row, said in all_read.items() if row not in asked}
    if puzzling:
        shown = [f"row {row + 1}: {text[:30]!r}" for row, text in puzzling.items()]
        notes.append(f"Not understood, and counted as unknown: {listed(shown, 5)}.")
    if torn:
        notes.append(f"Contradictory answers, counted as unknown: {_rows_text(torn)}.")
    if strange:
        notes.append(
            f"Rows that the table does not have, left out: {listed(strange, 5)}."
        )
    if others:
        notes.append(
            "Answers about rows that were not drawn, kept for probgap correct but not "
            f"counted: {_rows_text(sorted(others))}."
        )
    notes += _changes(rows, cells, asked, {answer})
    there = {row for row in rows if row is not None}
    vanished = sorted(set(asked) - there - set(audit.answers))
    if vanished:
        notes.append(
            f"Drawn but not in the file, counted as not answered yet: {_rows_text(vanished)}."
        )
    changed = [r for r, said in answers.items() if audit.answers.get(r, said) != said]
    if changed:
        notes.append(
            f"Answers that replace earlier ones: {_rows_text(sorted(changed))}."
        )
    return Told(answers, others, [note for note in notes if note])


def _text(value: Any) -> str:
    missing = value is None or value != value  # noqa: PLR0124 (NaN)
    return "" if missing or str(value) == "<NA>" else str(value).strip()


def _rows_text(rows: Sequence[int]) -> str:
    return listed([f"row {row + 1}" for row in rows], 5)


def _understood(found: Mapping[Answer, Counter[str]]) -> str:
    parts = []
    for answer, words in found.items():
        if words:
            spelt = [f"{word[:20]!r} ({n})" for word, n in words.most_common()]
            parts.append(f"{SPOKEN[answer]}: {listed(spelt, 6)}")
    return "Understood " + "; ".join(parts) + "." if parts else "No answers yet."


def _find_rows(
    path: Path,
    names: Mapping[str, Any],
    cells: Mapping[Any, list[str]],
    audit: AuditFile,
) -> tuple[list[int | None], list[str]]:
    """Return the index of each line's row, by its number or its id."""
    n_rows = int(audit.table["rows"])
    column = names.get("probgap_row", names.get("row"))
    identity = audit.table.get("id")
    by_id: dict[str, int] = {}
    if column is None:
        if identity is None or identity not in cells:
            refuse(f"{path} must have a column 'row'. It has {listed(list(names), 8)}.")
        by_id = {str(entry["id"]): entry["row"] - 1 for entry in audit.asked}
        column = identity
    rows: list[int | None] = []
    strange: list[str] = []
    for text in cells[column]:
        row = by_id.get(text)
        if not by_id and text:
            try:
                number = float(text)
            except ValueError:
                number = 0.0
            row = int(number) - 1 if number == int(number) else None
            row = row if row is not None and 0 <= row < n_rows else None
        if row is None and text:
            strange.append(repr(text[:30]))
        rows.append(row)
    return rows, strange


def _changes(
    rows: Sequence[int | None],
    cells: Mapping[Any, list[str]],
    asked: Mapping[int, Mapping[str, Any]],
    ours: set[Any],
) -> list[str]:
    """Return a sentence about rows whose cells differ from those that were shown."""
    changed: dict[int, str] = {}
    for at, row in enumerate(rows):
        shown = asked.get(-1 if row is None else row, {"cells": {}})["cells"]
        for name, before in shown.items():
            if name in cells and name not in ours and row not in changed:
                now = cells[name][at]
                if not _same(before, now):
                    changed[row or 0] = f"row {(row or 0) + 1} ({name})"
    if not changed:
        return []
    shown_rows = listed(list(changed.values()), 5)
    return [f"Cells differ from those that were drawn; answers are used: {shown_rows}."]


def _same(before: str, now: str) -> bool:
    if before.strip().lstrip("'") == now.lstrip("'"):
        return True
    try:
        return abs(float(before) - float(now)) <= 1e-6 * abs(float(before))
    except ValueError:
        # Spreadsheets write dates and logical values in their own way.
        return before.casefold() == now.casefold() or now.startswith(before)
