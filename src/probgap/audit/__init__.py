"""Audits: ask a person about some rows, and count the hidden positives."""

from probgap.audit._design import Design, design
from probgap.audit._estimate import AuditEstimate, estimate
from probgap.audit._teach import CorrectedClassifier, correct, suggest

__all__ = [
    "AuditEstimate",
    "CorrectedClassifier",
    "Design",
    "correct",
    "design",
    "estimate",
    "suggest",
]
