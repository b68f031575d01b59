"""Warnings of a report, each with what to do about it; ``sentences.toml`` has the words.

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
from probgap.reporting._text import sentences

_FEWEST_TO_TRUST = 30
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
# One column explains this share of the AUC above chance, and the next less than this
# share of what it explains.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2


def all_warnings(
    tree: Evidence,
    failures: Mapping[str, str],
    caught: Iterable[Warning],
    *,
    fast: bool,
) -> list[dict[str, str]]:
    """Return the warnings of a report, the gravest first."""
    found = list(_find(tree))
    if fast:
        names = f"{', '.join(FITTING[:-1])} and {FITTING[-1]}"
        found.append(_warning("fast", names=names))
    for name, error in failures.items():
        found.append(_warning("not_run", name=name, error=error))
    for raised in caught:
        text, code = str(raised), getattr(raised, "code", "")
        what, do = split_sentence(text)
        if any(w["what"] in (what, text) or w["code"] == (code or None) for w in found):
            continue
        level = "strong" if code else "mild"
        found.append({"level": level, "code": code, "what": what, "do": do})
    return sorted(found, key=lambda warning: warning["level"] != "strong")


def split_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence, and the rest."""
    first, *rest = re.split(r"(?<=[.?!]) (?=[A-Z])", text, maxsplit=1)
    return first, "".join(rest)


def _warning(code: str, kind: str = "", **words: object) -> dict[str, str]:
    known = sentences()["warnings"][kind or code]
    return {"code": code} | {key: text.format(**words) for key, text in known.items()}


def _find(tree: Evidence) -> Iterator[dict[str, str]]:
    n, held_out = tree["found"]["labelled"], tree["belief"]["held_out"]
    if n < _FEWEST_TO_TRUST:
        yield _warning("few", n=n, more=_FEWEST_TO_TRUST - n)
    auc = (
        0.5 * (_LOWEST_AUC + _HIGHEST_AUC) if held_out is None else held_out["roc_auc"]
    )
    if auc < _LOWEST_AUC:
        yield _warning("indistinct", auc=f"{auc:.0%}")
    if auc > _HIGHEST_AUC:
        culprit = _one_column(tree["drivers"])
        kind = "leak" if culprit is None else "leak by one column"
        yield _warning("leak", kind, culprit=culprit)
    if (moved := tree["boundary"]["fallback"]) is not None:
        yield _warning("boundary", moved=moved)


def _one_column(drivers: Evidence | None) -> str | None:
    """Return the column that explains the labels by itself, if one does."""
    if drivers is None:
        return None
    gains = [each["importance"] for each in drivers["columns"]]
    top, second, *_ = [*gains, 0.0, 0.0]
    enough = top > _ALL_BY_ITSELF * (drivers["score"] - 0.5)
    alone = enough and second < _NEXT_TO_NOTHING * top
    return str(drivers["columns"][0]["column"]) if alone else None
