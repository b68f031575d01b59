"""What a reader must know before believing a number, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probgap.diagnostics._held_out import HeldOutCalibration
from probgap.diagnostics._scar import MOST_OVERLAP, ScarTest

Warnings = Iterator[dict[str, str]]

_FEWEST_LABELLED = 30
_MOST_UNDECIDED = 0.8
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
_LOWEST_RECALL = 0.7
# A column that makes up this much of the score above chance, while no other makes up
# this share of that.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2


def find_warnings(
    account: Mapping[str, Any],
    held_out: HeldOutCalibration | None,
    scar: ScarTest | None,
) -> list[dict[str, str]]:
    """Look for what speaks against the account, the gravest first."""
    found = [
        *_about_labels(account["found"], held_out),
        *_about_boundary(account),
        *_about_overlap(scar, held_out),
        *_about_labelling(account["belief"]),
        *_about_predictions(account, held_out),
    ]
    return sorted(found, key=lambda warning: warning["level"] != "strong")


def part_failed(name: str, error: Exception) -> dict[str, str]:
    """Say that a check could not be made, and why."""
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
            f"Label at least {_FEWEST_LABELLED - n} more before you trust the count or "
            "the boundary; until then the ranking is worth more than any number here.",
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
    boundary, found = account["boundary"], account["found"]
    if boundary["stable"] is False:
        counts = account["belief"]["stability"]["hidden"]
        yield _strong(
            "The answer does not hold on other samples of these rows: refits on them "
            f"call {min(counts):.0f} to {max(counts):.0f} unlabelled rows positive, the "
            f"model {found['called_positive']}.",
            "Trust the order of the rows, not the count of hidden positives. Label the "
            "rows suggested below, which lie where the model wavers, and fit again.",
            sign="unstable",
        )
    if boundary["fallback"] is not None:
        yield _mild(boundary["fallback"], "Take the count as a rough guess.")
    interval = found["hidden_interval"]
    if interval is not None and interval[1] - interval[0] > max(found["hidden"], 10.0):
        yield _mild(
            f"The number of hidden positives is uncertain: {interval[0]:.0f} to "
            f"{interval[1]:.0f}.",
            "Plan for the whole range, or label more rows to narrow it.",
        )
    share = account["decision"]["undecided_share"]
    if share > _MOST_UNDECIDED:
        yield _mild(
            f"Almost everything is undecided by the gap alone: {share:.0%} of the rows.",
            "Work down the ranking and stop where finds become rare. More labels, or "
            "columns that tell the classes apart, would settle more rows.",
            sign="undecided",
        )


def _about_overlap(
    scar: ScarTest | None, held_out: HeldOutCalibration | None
) -> Warnings:
    told_apart = held_out is not None and held_out.roc_auc >= _LOWEST_AUC
    if told_apart and scar is not None and scar.overlap > MOST_OVERLAP:
        yield _mild(
            f"{scar.overlap:.0%} of the labelled positives lie where hardly any row is "
            "labelled: positives and negatives seem to overlap. How many are hidden "
            "there cannot be settled by such data, and the interval does not know it.",
            "Expect the count to be off by a factor of two or more. Have some of the "
            "lower ranks checked by hand, drawn at random, and go by what they show.",
        )


def _about_labelling(belief: Mapping[str, Any]) -> Warnings:
    scar, labelling = belief["scar"], belief["labelling"]
    at_random = scar is not None and scar["verdict"] == "random"
    flat = labelling is not None and labelling["rises"] is False
    if at_random and flat:
        yield _mild(
            "Labels look independent of how clearly positive a row is, which is not "
            "what this method was made for.",
            "Look at Elkan-Noto in the comparison, which assumes labels at random: if it "
            "finds about the same, either answer will do.",
            sign="independent",
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
