"""Excel workbooks: the first sheet, with cells as text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from probgap._core.errors import InvalidInputError, MissingLibraryError, load_library
from probgap._core.output import plural
from probgap.tables._base import pa, refuse
from probgap.tables._cells import text_of
from probgap.tables._csv import refuse_numbers, tidy_names
from probgap.tables._source import OpenSource

_BATCH_ROWS = 8_192
_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")


class ExcelRows:
    """The rows of a workbook's first sheet as Arrow batches of strings.

    An empty cell, or one whose formula gives an error, is null; blank rows are skipped.
    """

    def __init__(self, source: OpenSource) -> None:
        self._name = source.name
        with self._explained():
            file = source.as_file()
            if "xl/workbook.xml" not in zipfile.ZipFile(file).namelist():
                source.refuse_format("a zip archive")
            excel = load_library("openpyxl", extra="excel", purpose="Excel files")
            book = excel.load_workbook(file, read_only=True, data_only=True)
            source.on_close(book.close)
            shown = [each for each in book.worksheets if each.sheet_state == "visible"]
            sheet = (shown or book.worksheets)[0]
            if len(book.worksheets) > 1:
                n_sheets = len(book.worksheets)
                source.note(f"the sheet {sheet.title!r}, one of {n_sheets}")
            sheet.reset_dimensions()  # some programs write wrong ones
            self._rows: Iterator[tuple[int, list[str | None]]] = self._read(sheet)
            header = next(self._rows, None)
        if header is None:
            refuse(f"{self._name} is empty; expected a header and rows.")
        given = [cell or "" for cell in header[1]]
        refuse_numbers(given, f"The first row of {self._name}")
        self.columns = tidy_names(given, source)
        with self._explained():
            first = next(self._rows, None)
        if first is None:
            refuse(f"{self._name} has a header but no rows.")
        self._rows = chain([first], self._rows)

    def _read(self, sheet: Any) -> Iterator[tuple[int, list[str | None]]]:
        """Yield the number and the cells of each row, up to the last with a value."""
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            cells = [None if cell in _ERRORS else text_of(cell) for cell in row]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield number, cells

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows, some thousands at a time."""
        places = [self.columns.index(column) for column in columns]
        n_cells = len(self.columns)

        def complete() -> Iterator[list[str | None]]:
            for number, cells in self._rows:
                if len(cells) > n_cells:
                    refuse(
                        f"{self._name} has {plural(len(cells), 'cell')} in row {number}, "
                        f"but {n_cells} in its header; name every column."
                    )
                yield cells + [None] * (n_cells - len(cells))

        every = complete()
        with self._explained():
            while rows := list(islice(every, _BATCH_ROWS)):
                arrays = [pa.array([r[at] for r in rows], pa.string()) for at in places]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (InvalidInputError, MissingLibraryError):
            raise
        except Exception as error:  # noqa: BLE001 (whatever a strange file leads to)
            what = " ".join(str(error).split()).rstrip(".")[:160]
            refuse(f"{self._name} is a damaged Excel workbook or zip archive: {what}.")
