"""Warnings of a report, each with what to do about it.

Each has a ``code``. Those that the report finds itself: "few" and "indistinct", which
every measurement of ours supports (with so few labels, or labels that nothing predicts,
counts miss); "leak", a column that gives the label away, which is right by construction;
"boundary", "fast" and "not_run", which state what was done. Warnings that ``fit`` raised
are added with their codes. Anything else that can be measured of a bad fit looks as in a
good one (docs/design/default.md), so there is no warning of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from probgap.reporting._evidence import FITTING, Evidence

_FEWEST_TO_TRUST = 30
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
# One column explains this share of the AUC above chance, and the next less than this
# share of what it explains.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2

_SKIPPED = "This check was skipped, usually because there are too few rows or labels."


def all_warnings(
    evidence: Evidence,
    failures: Mapping[str, str],
    caught: Iterable[Warning],
    *,
    fast: bool,
) -> list[dict[str, str]]:
    """Return the warnings of a report, the gravest first."""
    found = sorted(_find(evidence), key=_is_mild)
    if fast:
        names = f"{', '.join(FITTING[:-1])} and {FITTING[-1]}"
        what = f"Three checks were left out to save time (--fast): {names}."
        do = "Fit again without --fast before you act on the numbers."
        found.append(_warning("mild", "fast", what, do))
    for name, error in failures.items():
        what = f"The check of {name} could not be made: {error}"
        found.append(_warning("mild", "not_run", what, _SKIPPED))
    for raised in caught:
        text = str(raised)
        what, do = split_sentence(text)
        code = getattr(raised, "code", "")
        known = [w for w in found if w["what"] in (what, text)]
        if not known and not (code and any(w["code"] == code for w in found)):
            found.append(_warning("strong" if code else "mild", code, what, do))
    return sorted(found, key=_is_mild)


def split_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence, and the rest."""
    first, *rest = re.split(r"(?<=[.?!]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(rest)


def _warning(level: str, code: str, what: str, do: str) -> dict[str, str]:
    return {"level": level, "code": code, "what": what, "do": do}


def _is_mild(warning: Mapping[str, str]) -> bool:
    return warning["level"] != "strong"


def _find(evidence: Evidence) -> Iterator[dict[str, str]]:
    n, held_out = evidence["found"]["labelled"], evidence["belief"]["held_out"]
    if n < _FEWEST_TO_TRUST:
        yield _warning(
            "strong",
            "few",
            f"Only {n} positives are labelled.",
            f"Wait for at least {_FEWEST_TO_TRUST - n} more labels, collected as these "
            "were, before you trust the count; until then the ranking is worth more than "
            "any number here.",
        )
    if (moved := evidence["boundary"]["fallback"]) is not None:
        rough = "Take the count as a rough guess."
        yield _warning("mild", "boundary", moved, rough)
    if held_out is None:
        return
    if held_out["roc_auc"] < _LOWEST_AUC:
        yield _warning(
            "strong",
            "indistinct",
            "Labelled rows look like all the others: a held-out labelled row is ranked "
            f"above an unlabelled one in {held_out['roc_auc']:.0%} of pairs, where chance "
            "gives 50%.",
            "Do not act on the list. Check that the label column is the right one, and "
            "add columns that could tell a positive from the rest.",
        )
    if held_out["roc_auc"] > _HIGHEST_AUC:
        yield _warn_of_leak(evidence["drivers"])


def _warn_of_leak(drivers: Evidence | None) -> dict[str, str]:
    """Warn that labels are told without error, and name the column that tells them."""
    what = "Labelled rows are told from unlabelled ones almost without error"
    if drivers is not None and (culprit := _one_column(drivers)) is not None:
        return _warning(
            "strong",
            "leak",
            f"{what}, by the column {culprit!r} alone. That is too good to be true.",
            "Ask whether that column was filled in because a row was labelled. If so, "
            "leave it out and fit again.",
        )
    return _warning(
        "mild",
        "leak",
        f"{what}. Either nothing is hidden, or some columns were filled in because "
        "a row was labelled.",
        "Check where the columns that matter most come from; leave out those that "
        "follow the label.",
    )


def _one_column(drivers: Evidence) -> str | None:
    """Return the column that explains the labels by itself, if one does."""
    gains = [each["importance"] for each in drivers["columns"]]
    top, second, *_ = [*gains, 0.0, 0.0]
    enough = top > _ALL_BY_ITSELF * (drivers["score"] - 0.5)
    alone = enough and second < _NEXT_TO_NOTHING * top
    return str(drivers["columns"][0]["column"]) if alone else None
