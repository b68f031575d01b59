"""The report of a fit: what was found, whether to believe it, and what to do next."""

from probgap.reporting._page import render_audit as render_audit
from probgap.reporting._report import Report, report
from probgap.reporting._rows import cell_text as cell_text
from probgap.reporting._rows import rank_hidden as rank_hidden
from probgap.reporting._rows import score_rows as score_rows
from probgap.reporting._verdicts import ask as ask
from probgap.reporting._verdicts import describe_looked as describe_looked
from probgap.reporting._verdicts import split_sentence as split_sentence

# Names that are not listed are there for other modules.
__all__ = ["Report", "report"]
