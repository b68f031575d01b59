"""Excel workbooks: the first sheet, with cells as text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from probgap._core.errors import (
    load_library,
    refuse,
)
from probgap._core.output import plural
from probgap.tables._cells import Frame, pa, pd, text_of
from probgap.tables._csv import refuse_numbers, tidy_names

if TYPE_CHECKING:
    from probgap.tables._read import TableReader


class ExcelRows:
    """The rows of a workbook's first sheet as Arrow batches of strings.

    An empty cell, or one whose formula gives an error, is null; blank rows are skipped.
    """

    def __init__(self, source: TableReader) -> None:
        with source.explaining("damaged Excel workbook or zip archive", Exception):
            cells = _read_first_sheet(source)
        cells = cells[cells.notna().any(axis=1)]
        if cells.empty:
            refuse(f"{source.name} is empty; expected a header and rows.")
        header, self._rows = cells.iloc[0], cells.iloc[1:]
        n_cells = int(header.notna().to_numpy().nonzero()[0][-1]) + 1
        given = ["" if pd.isna(cell) else cell for cell in header[:n_cells]]
        refuse_numbers(given, f"The first row of {source.name}")
        self.columns = tidy_names(given, source)
        if self._rows.empty:
            refuse(f"{source.name} has a header but no rows.")
        beyond = self._rows.iloc[:, n_cells:].notna()
        for row, cell in zip(*beyond.to_numpy().nonzero(), strict=True):
            refuse(
                f"{source.name} has {plural(n_cells + cell + 1, 'cell')} in row "
                f"{beyond.index[row] + 1}, but {n_cells} in its header; name every column."
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows at once."""
        cells = (self._rows[self.columns.index(column)] for column in columns)
        how: Any = {"type": pa.string(), "from_pandas": True}
        arrays = [pa.array(column, **how) for column in cells]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _read_first_sheet(source: TableReader) -> Frame:
    file = source.as_file()
    if "xl/workbook.xml" not in zipfile.ZipFile(file).namelist():
        source.refuse_format("a zip archive")
    load_library("openpyxl", extra="excel", purpose="Excel files")
    with pd.ExcelFile(file, engine="openpyxl") as excel:
        sheets = excel.book.worksheets
        sheet = next((s for s in sheets if s.sheet_state == "visible"), sheets[0])
        if len(sheets) > 1:
            source.note(f"the sheet {sheet.title!r}, one of {len(sheets)}")
        how: Any = {"header": None, "dtype": object, "na_filter": False}
        cells = pd.read_excel(excel, sheet.title, **how)
    return cells.map(lambda cell: text_of(cell) or None).astype(object)
