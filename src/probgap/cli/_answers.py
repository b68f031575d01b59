"""Files of answers, as people fill them in."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from probgap._core.errors import refuse
from probgap.cli._questions import AuditFile
from probgap.cli._terminal import first_few

_SPELLINGS = {
    "yes": "y,yes,ja,j,oui,o,si,sí,s,sim,da,tak,1,1.0,true,t,x,wahr,vrai,positive,pos,+,✓,✔",
    "no": "n,no,nein,non,não,nao,nee,nej,nie,ne,0,0.0,false,f,falsch,faux,negative,neg,-",
    "unknown": "?,??,u,unknown,unsure,unclear,unklar,maybe,cannot tell,can't tell,cant tell,"
    "don't know,dont know,do not know,not sure,weiß nicht,weiss nicht,vielleicht,skip",
}
_WORDS = {text: word for word, all_ in _SPELLINGS.items() for text in all_.split(",")}
# A line of a file: the row that it is about, its answer, and its other cells.
_Line = tuple[int, str, Mapping[str, str]]


def read_answer_file(
    path: Path, audit: AuditFile, *, shown: bool
) -> tuple[dict[int, str], list[str]]:
    """Return "yes", "no" or "unknown" by row, and notes on what was understood.

    Answers may come in any order, with other columns between, as people type them.
    """
    lines, strange = _read_lines(path, audit)
    said, spelt, puzzling = _understand(lines, audit.fit.described["positive"])
    # What cannot be used either way counts both ways.
    words = {
        row: min(each) if len(each) == 1 else "unknown" for row, each in said.items()
    }
    asked = {entry["row"] - 1: entry["cells"] for entry in audit.asked}
    before = audit.said
    torn = [row for row, each in said.items() if len(each) > 1]
    missing = set(asked).difference((row for row, *_ in lines), before)
    replaced = [
        row for row in words if row in before and before[row].word != words[row]
    ]
    about = {
        "Not understood, and counted as unknown": puzzling,
        "Contradictory answers, counted as unknown": _rows(torn),
        "Rows that the table does not have, left out": strange,
        "Answers about rows that were not drawn, kept for probgap correct but not "
        "counted": _rows(set(words).difference(asked)),
        "Cells differ from those that were drawn; answers are used": _changes(
            lines, asked
        ),
        "Drawn but not in the file, counted as not answered yet": _rows(missing),
        "Answers that replace earlier ones": _rows(replaced),
    }
    notes = [
        f"{what}: {first_few(which, 5)}." for what, which in about.items() if which
    ]
    notes.insert(0, _understood(spelt))
    for note in notes if shown else ():
        typer.echo(note, err=True)
    return words, notes


def _read_lines(path: Path, audit: AuditFile) -> tuple[list[_Line], list[str]]:
    """Return the lines about rows of the table, and what others say instead of a row."""
    from probgap.tables import read_table

    frame, described = read_table(path).frame, audit.fit.described
    names = {str(name).strip().lower(): name for name in frame.columns}
    answer = names.get("probgap_answer", names.get("answer"))
    column, identity = names.get("probgap_row", names.get("row")), described["id"]
    by_id = {str(entry["id"]): entry["row"] - 1 for entry in audit.asked}
    by_number = column is not None
    if not by_number and identity in frame.columns:
        column = identity
    for name, found in (("answer", answer), ("row", column)):
        if found is None:
            refuse(
                f"{path} must have a column '{name}'. It has {first_few(list(names), 8)}."
            )
    lines: list[_Line] = []
    strange: list[str] = []
    for values in frame.to_dict("records"):
        cells = {name: _plain_cell(value) for name, value in values.items()}
        text = cells[column]
        row = _row_of(text, described["rows"]) if by_number else by_id.get(text)
        if row is not None:
            lines.append((row, cells.pop(answer), cells))
        elif text:
            strange.append(repr(text[:30]))
    return lines, strange


def _plain_cell(value: Any) -> str:
    import pandas as pd

    return "" if pd.isna(value) else str(value).strip()


def _row_of(text: str, n_rows: int) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) - 1 if number.is_integer() and 1 <= number <= n_rows else None


def _understand(
    lines: Iterable[_Line], positive: str
) -> tuple[dict[int, set[str]], dict[str, Counter[str]], list[str]]:
    """Return what was said of each row, the spellings of each word, and the puzzling ones."""
    positive = positive.strip().casefold()
    known = _WORDS | {positive: "yes", f"not {positive}": "no"}
    said: dict[int, set[str]] = {}
    spelt: dict[str, Counter[str]] = {word: Counter() for word in _SPELLINGS}
    puzzling: dict[int, str] = {}
    for row, text, _ in lines:
        if not text:
            continue
        word = known.get(text.casefold().strip(" .!'\""))
        if word is None:
            puzzling[row] = f"row {row + 1}: {text[:30]!r}"
        else:
            spelt[word][text] += 1
        said.setdefault(row, set()).add(word or "unknown")
    return said, spelt, list(puzzling.values())


def _understood(spelt: Mapping[str, Counter[str]]) -> str:
    parts = []
    for word, texts in spelt.items():
        shown = [f"{text[:20]!r} ({n})" for text, n in texts.most_common()]
        if shown:
            parts.append(f"{word}: {first_few(shown, 6)}")
    return f"Understood {'; '.join(parts)}." if parts else "No answers yet."


def _rows(rows: Iterable[int]) -> list[str]:
    return [f"row {row + 1}" for row in sorted(rows)]


def _changes(
    lines: Iterable[_Line], asked: Mapping[int, Mapping[str, str]]
) -> list[str]:
    changed: dict[int, str] = {}
    for row, _, cells in lines:
        for name, shown in asked.get(row, {}).items():
            if name in cells and not _same(shown, cells[name]):
                changed.setdefault(row, f"row {row + 1} ({name})")
    return list(changed.values())


def _same(before: str, now: str) -> bool:
    if before.strip().lstrip("'") == now.lstrip("'"):
        return True
    try:
        return abs(float(before) - float(now)) <= 1e-6 * abs(float(before))
    except ValueError:
        # Spreadsheets write dates and logical values in their own way.
        return before.casefold() == now.casefold() or now.startswith(before)
