"""What a reader must know before believing a number, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probgap.diagnostics._held_out import HeldOutCalibration

Warnings = Iterator[dict[str, str]]

_FEWEST_LABELLED = 30
_MOST_UNDECIDED = 0.8
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
_LOWEST_RECALL = 0.7
# A column that makes up this much of the score above chance, while no other makes up
# this share of that.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2


def find_warnings(
    account: Mapping[str, Any], held_out: HeldOutCalibration | None
) -> list[dict[str, str]]:
    """Look for what speaks against the account, the gravest first."""
    found = [
        *_about_labels(account["found"], held_out),
        *_about_boundary(account),
        *_about_predictions(account, held_out),
    ]
    return sorted(found, key=lambda warning: warning["level"] != "strong")


def part_failed(name: str, error: Exception) -> dict[str, str]:
    """Word the warning that a check could not be made."""
    return _mild(
        f"The check of {name} could not be made: {error}",
        "Read the rest of the page without it. It is often a sign of too few rows or "
        "labels: more of them may bring it back.",
    )


def _strong(what: str, do: str, **sign: str) -> dict[str, str]:
    return {"level": "strong", "what": what, "do": do, **sign}


def _mild(what: str, do: str, **sign: str) -> dict[str, str]:
    """Word a mild warning; ``sign`` names the one of ``fit`` that says the same."""
    return {"level": "mild", "what": what, "do": do, **sign}


def _about_labels(
    found: Mapping[str, Any], held_out: HeldOutCalibration | None
) -> Warnings:
    n = found["labelled"]
    if n < _FEWEST_LABELLED:
        yield _strong(
            f"Only {n} positives are labelled.",
            f"Label at least {_FEWEST_LABELLED - n} more before you trust the count; "
            "until then the ranking is worth more than any number here.",
            sign="few",
        )
    if held_out is not None and held_out.roc_auc < _LOWEST_AUC:
        yield _strong(
            "Labelled rows look like all the others: a held-out labelled row is ranked "
            f"above an unlabelled one in {held_out.roc_auc:.0%} of pairs, where chance "
            "gives 50%.",
            "Do not act on the list. Check that the label column is the right one, and "
            "add columns that could tell a positive from the rest.",
            sign="indistinct",
        )


def _about_boundary(account: Mapping[str, Any]) -> Warnings:
    boundary, read = account["boundary"], account["belief"]["worlds"] is not None
    if boundary["fallback"] is not None:
        yield _mild(boundary["fallback"], "Take the count as a rough guess.")
    share = account["decision"]["undecided_share"]
    if share > _MOST_UNDECIDED and not read:
        yield _mild(
            f"Almost everything is undecided by the gap alone: {share:.0%} of the rows.",
            "Work down the ranking and stop where finds become rare. More labels, or "
            "columns that tell the classes apart, would settle more rows.",
            sign="undecided",
        )


def _about_predictions(
    account: Mapping[str, Any], held_out: HeldOutCalibration | None
) -> Warnings:
    if held_out is None:
        return
    if held_out.recall < _LOWEST_RECALL and held_out.roc_auc >= _LOWEST_AUC:
        yield _mild(
            f"Of the labelled positives held out, only {held_out.recall:.0%} are called "
            "positive.",
            "Expect as many of the hidden ones to be missed. Work by rank beyond the "
            "rows that are called positive.",
        )
    if held_out.roc_auc > _HIGHEST_AUC:
        yield _too_good(account["drivers"])


def _too_good(drivers: Mapping[str, Any] | None) -> dict[str, str]:
    what = "Labelled rows are told from unlabelled ones almost without error"
    if drivers is not None and drivers["columns"]:
        top, *rest = drivers["columns"]
        second = rest[0]["importance"] if rest else 0.0
        if (
            top["importance"] > _ALL_BY_ITSELF * (drivers["score"] - 0.5)
            and second < _NEXT_TO_NOTHING * top["importance"]
        ):
            return _strong(
                f"{what}, by the column {top['column']!r} alone. That is too good to be "
                "true.",
                "Ask whether that column was filled in because a row was labelled. If "
                "so, leave it out and fit again.",
            )
    return _mild(
        f"{what}. Either nothing is hidden, or some columns were filled in because a "
        "row was labelled.",
        "Check where the columns that matter most come from; leave out those that follow "
        "the label.",
    )
