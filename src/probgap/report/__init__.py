"""The report: rows of a run in, a page, a Markdown file and figures out."""

from probgap.report._build import ReportFiles, build_report
from probgap.report._optional import check_libraries
from probgap.report._summary import summarise

__all__ = ["ReportFiles", "build_report", "check_libraries", "summarise"]
