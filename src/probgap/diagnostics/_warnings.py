"""What a reader must know before believing a number, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from probgap.diagnostics.account import Account, Caution
from probgap.inspection import ColumnImportance

_FEWEST_LABELLED = 30
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
_LOWEST_RECALL = 0.7
# A column that makes up this much of the score above chance, while no other makes up
# this share of that.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2


def find_warnings(account: Account) -> list[Caution]:
    """Return what speaks against the account, the gravest first."""
    return sorted(_find(account), key=lambda caution: caution.level != "strong")


def part_failed(name: str, error: Exception) -> Caution:
    """Word the warning that a check could not be made."""
    return Caution(
        "mild",
        f"The check of {name} could not be made: {error}",
        "Read the rest of the page without it. It is often a sign of too few rows or "
        "labels: more of them may bring it back.",
    )


def _find(account: Account) -> Iterator[Caution]:
    n, held_out, drivers = account.found.labelled, account.held_out, account.drivers
    if n < _FEWEST_LABELLED:
        yield Caution(
            "strong",
            f"Only {n} positives are labelled.",
            f"Label at least {_FEWEST_LABELLED - n} more before you trust the count; "
            "until then the ranking is worth more than any number here.",
            sign="few",
        )
    if account.boundary.fallback is not None:
        rough = "Take the count as a rough guess."
        yield Caution("mild", account.boundary.fallback, rough)
    if held_out is None:
        return
    if held_out.roc_auc < _LOWEST_AUC:
        yield Caution(
            "strong",
            "Labelled rows look like all the others: a held-out labelled row is ranked "
            f"above an unlabelled one in {held_out.roc_auc:.0%} of pairs, where chance "
            "gives 50%.",
            "Do not act on the list. Check that the label column is the right one, and "
            "add columns that could tell a positive from the rest.",
            sign="indistinct",
        )
    elif held_out.recall < _LOWEST_RECALL:
        yield Caution(
            "mild",
            f"Of the labelled positives held out, only {held_out.recall:.0%} are called "
            "positive.",
            "Expect as many of the hidden ones to be missed. Work by rank beyond the "
            "rows that are called positive.",
        )
    if held_out.roc_auc <= _HIGHEST_AUC:
        return
    what = "Labelled rows are told from unlabelled ones almost without error"
    culprit = None if drivers is None else _one_column(drivers)
    if culprit is not None:
        yield Caution(
            "strong",
            f"{what}, by the column {culprit!r} alone. That is too good to be true.",
            "Ask whether that column was filled in because a row was labelled. If so, "
            "leave it out and fit again.",
        )
    else:
        yield Caution(
            "mild",
            f"{what}. Either nothing is hidden, or some columns were filled in because a "
            "row was labelled.",
            "Check where the columns that matter most come from; leave out those that "
            "follow the label.",
        )


def _one_column(drivers: ColumnImportance) -> str | None:
    """Return the column that does it all by itself, if one does."""
    top, second, *_ = [*drivers.importance, 0.0, 0.0]
    enough = top > _ALL_BY_ITSELF * (drivers.score - 0.5)
    alone = enough and second < _NEXT_TO_NOTHING * top
    return str(drivers.columns[0]) if alone else None
