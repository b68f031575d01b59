"""The report: rows of a run in, a page, a Markdown file and figures out."""

from probgap.report._build import ReportFiles, build_report
from probgap.report._summary import summarise

__all__ = ["ReportFiles", "build_report", "summarise"]
