"""Recovered shares: how much each method recovers of what the missing labels cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from probgap.metrics import recovered_share
from probgap.reproduction._scores import (
    BLOCKS,
    CLEAN,
    NAIVE,
    OURS,
    PAPER_METHODS,
    PLAIN,
    Scores,
    block_label,
    order_blocks,
    order_methods,
)

# A share is a ratio: with less than this between clean and naive, in points, it is noise.
SMALLEST_COST = 0.5
# The tables in which the paper prints its own method as the best.
_OWN_TABLES = ("1", "2", "4", "5")
_RIVALS = tuple(method for method in PAPER_METHODS if method != CLEAN)

Line = Mapping[str, float]
Shares = dict[str, Any]


def block_shares(lines: Iterable[Line]) -> Shares:
    """Summarise a block, given each labelling's mean accuracies in percent.

    Only labellings that have both the naive and the clean SVM are used. ``share`` is the
    mean of the labellings' shares where the cost is at least half a point, ``pooled``
    the share of the mean accuracies, ``points`` the mean gain on naive.
    """
    known = [line for line in lines if NAIVE in line and CLEAN in line]
    qualifying = sum(_costs(line[NAIVE], line[CLEAN]) for line in known)
    return {
        "labellings": len(known),
        "qualifying": qualifying,
        "measure": "share" if qualifying else "points" if known else None,
        "naive": _mean([line[NAIVE] for line in known]),
        "clean": _mean([line[CLEAN] for line in known]),
        "methods": {
            method: _method_shares(method, [line for line in known if method in line])
            for method in order_methods({method for line in known for method in line})
        },
    }


def _method_shares(method: str, lines: list[Line]) -> Shares:
    names = (method, NAIVE, CLEAN)
    mean, naive, clean = (float(np.mean([line[n] for line in lines])) for n in names)
    shares = [
        recovered_share(*(line[n] for n in names))
        for line in lines
        if _costs(line[NAIVE], line[CLEAN])
    ]
    return {
        "method": method,
        "labellings": len(lines),
        "share": _mean(shares),
        "pooled": recovered_share(mean, naive, clean) if _costs(naive, clean) else None,
        "points": mean - naive,
        "accuracy": mean,
    }


def summarise_blocks(runs: Scores, printed: Scores) -> list[Shares]:
    """Summarise every block of the run beside what the paper prints for it."""
    present = {setting.block for setting in runs}
    return [
        _summarise_block(block, _lines(runs, block), _lines(printed, block))
        for block in order_blocks(present | set(BLOCKS))
    ]


def count_verdicts(blocks: list[Shares]) -> Shares:
    """Count the paper's blocks in which ours is ahead."""
    known = [block for block in blocks if block["known"]]
    verdicts: Shares = {"blocks": len(known)}
    for name in ("", "_plain", "_printed"):
        found = [block[f"ahead{name}"] for block in known]
        verdicts[f"compared{name}"] = len(found) - found.count(None)
        verdicts[f"ahead{name}"] = found.count(True)
    both = [block for block in known if block["ahead"] and block["ahead_printed"]]
    return verdicts | {
        "ahead_both": len(both),
        "behind": [block["label"] for block in known if block["ahead"] is False],
        "double": [block for block in known if block["table"] in _OWN_TABLES],
    }


def _summarise_block(
    block: tuple[str, str], lines: list[Line], printed_lines: list[Line]
) -> Shares:
    # Where ours did not run everywhere, all are compared where it did.
    run = block_shares([line for line in lines if OURS in line] or lines)
    paper = block_shares(printed_lines)
    ours, plain = run["methods"].get(OURS), run["methods"].get(PLAIN)
    paper_own = paper["methods"].get("PGPU")
    best = _best(run, run["measure"])
    both = "share" if run["measure"] == paper["measure"] == "share" else "points"
    return {
        "table": block[0],
        "data": block[1],
        "label": block_label(block),
        "known": block in BLOCKS,
        "present": bool(lines),
        "run": run,
        "paper": paper,
        "ours": ours,
        "best": best,
        "paper_best": _best(paper, paper["measure"]),
        "paper_own": paper_own,
        "ahead": _exceeds(ours, best, run["measure"]),
        "ahead_plain": _exceeds(plain, best, run["measure"]),
        "ahead_printed": _exceeds(ours, _best(paper, both), both),
        "double": _exceeds(ours, paper_own, "share", twice=True),
        "double_pooled": _exceeds(ours, paper_own, "pooled", twice=True),
    }


def _lines(scores: Scores, block: tuple[str, str]) -> list[Line]:
    return [
        {method: score.mean for method, score in line.items()}
        for setting, line in sorted(scores.items(), key=lambda item: str(item[0]))
        if setting.block == block and line
    ]


def _costs(naive: float, clean: float) -> bool:
    """Return whether missing labels cost enough for a share to mean something."""
    return round(clean - naive, 6) >= SMALLEST_COST


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _best(summary: Shares, by: str | None) -> Shares | None:
    """Return the best method of the paper; the earlier column of two that are equal."""
    found = [summary["methods"][m] for m in _RIVALS if m in summary["methods"]]
    valued = [shares for shares in found if by and shares[by] is not None]
    return max(valued, key=lambda shares: shares[by]) if valued else None


def _exceeds(
    ours: Shares | None, other: Shares | None, by: str | None, *, twice: bool = False
) -> bool | None:
    """Return whether ours is above the other, or at least twice it; None if unknown."""
    if not (ours and other and by) or ours[by] is None or other[by] is None:
        return None
    if twice:
        return bool(ours[by] >= 2.0 * other[by])
    return bool(round(ours[by] - other[by], 9) > 0.0)
