"""The numbers that the paper prints."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from probgap.report._rows import Score, Scores, Setting


@cache
def printed_scores() -> Scores:
    """Read the accuracies of the paper's eight tables, in percent."""
    text = files("probgap.report").joinpath("printed.csv").read_text(encoding="utf-8")
    scores: Scores = {}
    for line in csv.DictReader(text.splitlines()):
        setting = Setting(
            line["table"],
            line["dataset"],
            line["mislabelling"],
            _number(line["alpha"]),
            _number(line["beta"]),
        )
        cells = scores.setdefault(setting, {})
        accuracy = _number(line["accuracy"])
        if accuracy is not None:
            cells[line["method"]] = Score(accuracy, _number(line["std"]), None)
    return scores


def _number(text: str) -> float | None:
    return float(text) if text else None
