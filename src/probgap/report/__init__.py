"""Reports: rows of a run in, or the account of a fit; pages and figures out."""

from probgap.report._build import ReportFiles, build_report
from probgap.report._optional import check_libraries
from probgap.report._page import RankedRow, RunRecord, TableRecord, render_page
from probgap.report._summary import summarise

__all__ = [
    "RankedRow",
    "ReportFiles",
    "RunRecord",
    "TableRecord",
    "build_report",
    "check_libraries",
    "render_page",
    "summarise",
]
