"""Files of answers, as people fill them in, and answers for the fit to another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from probgap._core.errors import refuse
from probgap._core.output import plural
from probgap.cli._fitted import FittedTable
from probgap.cli._journal import JOURNAL
from probgap.cli._questions import AuditFile
from probgap.cli._terminal import first_few

if TYPE_CHECKING:
    from probgap.cli._table import Options
    from probgap.tables import LabelColumn, Table
    from probgap.tables._cells import Frame

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
    answer, column = _find_columns(path, frame)
    identity = described["id"]
    by_id = {str(entry["id"]): entry["row"] - 1 for entry in audit.asked}
    by_number = column is not None
    if not by_number and identity in frame.columns:
        column = identity
    if column is None:
        _refuse_file(path, "row", frame)
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


def _find_columns(path: Path, frame: Frame) -> tuple[str, str | None]:
    """Return the columns of the answers, and of the numbers of rows if there is one."""
    names = {str(name).strip().lower(): name for name in frame.columns}
    answer = names.get("probgap_answer", names.get("answer"))
    if answer is None:
        _refuse_file(path, "answer", frame)
    return answer, names.get("probgap_row", names.get("row"))


def _refuse_file(path: Path, name: str, frame: Frame) -> NoReturn:
    has = first_few([str(column) for column in frame.columns], 8)
    refuse(f"{path} must have a column '{name}'. It has {has}.")


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


# Answers that a fit takes along.


class _Told(NamedTuple):
    """An answer: the row of the table that was asked about (from 0), its cells, the text."""

    row: int | None
    cells: Mapping[str, str]
    text: str


def take_along(
    table: Table, options: Options, path: Path, *, shown: bool
) -> tuple[Table, Options, dict[str, Any]]:
    """Return a table whose label column has the answers of a file, and how to read it.

    Then which rows they changed, by their numbers. What the table itself says stands.
    """
    from probgap.tables import read_labels

    if not path.is_file():
        refuse(f"--answers must name a file. Got {path}.")
    cells = table.frame[options.label]
    labels = read_labels(cells, options.positive, options.negative)
    words, notes = _match_answers(path, table, options, labels)
    value = labels.find_kinds(cells)
    checked, no = labels.find_negatives(cells), str(labels.values[0])
    no = next(iter(labels.negatives), no)
    value[checked] = no
    free = {row: word for row, word in words.items() if not value[row]}
    # An answer does not say of which kind a positive is: with --kinds it is one of its own.
    yes = "answered yes" if options.kinds else next(iter(labels.kinds))
    for row, word in free.items():
        value[row] = {"yes": yes, "no": no}.get(word, "")
    found = {
        word: sorted(row + 1 for row, said in free.items() if said == word)
        for word in ("yes", "no")
    }
    notes.insert(
        0,
        f"Answers of {path}: {plural(len(found['yes']), 'row')} more labelled positive, "
        f"{len(found['no']):,} more checked and negative.",
    )
    for note in notes if shown else ():
        typer.echo(note, err=True)
    value[value == ""] = None
    frame = table.frame.assign(**{options.label: value})
    negative = no if (value == no).any() else None
    positive = list(dict.fromkeys([*labels.kinds, *([yes] if found["yes"] else [])]))
    read = replace(options, positive=positive, negative=negative)
    return replace(table, frame=frame), read, {"file": str(path), **found}


def _match_answers(
    path: Path, table: Table, options: Options, labels: LabelColumn
) -> tuple[dict[int, str], list[str]]:
    """Return what answers say of rows of a table, and notes on those of other rows."""
    same = False
    if path.suffix == ".jsonl":
        told, same = _read_told(path, table.sha256, options.id)
    else:
        told = _read_filled(path)
    told = [each for each in told if each.text]
    places = _find_rows(told, table.frame, options, same=same)
    lines = [
        (at, each.text, each.cells)
        for at, each in zip(places, told, strict=True)
        if at is not None
    ]
    said, _, puzzling = _understand(lines, labels.positive)
    words = {row: min(each) for row, each in said.items() if len(each) == 1}
    torn = [row for row, each in said.items() if len(each) > 1]
    lost = [
        each.cells.get(
            options.id or "", "row" if each.row is None else f"row {each.row + 1}"
        )
        for at, each in zip(places, told, strict=True)
        if at is None
    ]
    about = {
        "Answered rows that this table does not have, left out": lost,
        "Answers not understood, left out": puzzling,
        "Contradictory answers, left out": _rows(torn),
    }
    return words, [f"{k}: {first_few(v, 5)}." for k, v in about.items() if v]


def _read_told(
    path: Path, sha256: str, id_column: str | None
) -> tuple[list[_Told], bool]:
    """Return the answers of an audit of a fit, and whether that was to the same table."""
    if path.name != JOURNAL:
        refuse(f"--answers must name {JOURNAL} of a fit, or a table. Got {path}.")
    fit = FittedTable(path.parent, None)
    audit = AuditFile.read(fit)
    cells = {entry["row"] - 1: entry["cells"] for entry in audit.asked}
    named: Mapping[int, str] = {}
    if id_column is not None and id_column == fit.described["id"]:
        named = fit.scored_ids
    told = [
        _Told(row, cells.get(row, {}) | _one(id_column, named.get(row)), record.word)
        for row, record in audit.said.items()
    ]
    return told, fit.described["sha256"] == sha256


def _one(name: str | None, value: str | None) -> dict[str, str]:
    return {} if name is None or value is None else {name: value}


def _read_filled(path: Path) -> list[_Told]:
    """Return the answers of a table of questions that was filled in."""
    from probgap.tables import read_table

    frame = read_table(path).frame
    answer, number = _find_columns(path, frame)
    told = []
    for values in frame.to_dict("records"):
        cells = {str(name): _plain_cell(value) for name, value in values.items()}
        text = cells.pop(answer)
        row = None if number is None else _row_of(cells.pop(number), 10**15)
        told.append(_Told(row, cells, text))
    return told


def _find_rows(
    told: Sequence[_Told], frame: Frame, options: Options, *, same: bool
) -> list[int | None]:
    """Return which rows of a table answers are about: by id, else by number and cells."""
    if options.id is not None and any(options.id in each.cells for each in told):
        return _find_ids(
            [each.cells.get(options.id, "") for each in told], frame[options.id]
        )
    if same:
        return [each.row for each in told]
    names = frame.columns.difference([options.label])
    found = [
        each.row if each.row is not None and _is_row(each, frame[names]) else None
        for each in told
    ]
    if told and 2 * found.count(None) > len(told):
        refuse(
            "--answers must be about rows that can be found again, by the column of --id. "
            f"Got {plural(len(told), 'answer')}, of which {found.count(None):,} are about "
            "rows with other cells in this table."
        )
    return found


def _find_ids(ids: Iterable[str], column: Any) -> list[int | None]:
    names = [_plain_cell(value) for value in column]
    counts = Counter(names)
    places = {name: at for at, name in enumerate(names) if name and counts[name] == 1}
    return [places.get(each) for each in ids]


def _is_row(told: _Told, frame: Frame) -> bool:
    """Return whether a table has the same cells in the same row."""
    from probgap.reporting import cell_text

    shared = [name for name in told.cells if name in frame.columns]
    if told.row is None or told.row >= len(frame) or not shared:
        return False
    now = frame.iloc[told.row]
    return all(
        _same(told.cells[name], _plain_cell(now[name]))
        or _same(told.cells[name], cell_text(now[name]))
        for name in shared
    )
