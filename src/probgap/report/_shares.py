"""Recovered shares: what each method wins back of what the missing labels cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from probgap.metrics import recovered_share
from probgap.report._rows import (
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
# Where twice the paper's own share is the goal.
DOUBLE_TABLES = ("1", "2", "4", "5")
_RIVALS = tuple(method for method in PAPER_METHODS if method != CLEAN)


def block_shares(lines: Iterable[Mapping[str, float]]) -> dict[str, Any]:
    """Summarise a block, given each labelling's mean accuracies in percent.

    Only labellings that have both the naive and the clean machine are used. ``share``
    is the mean of the labellings' shares where the cost is at least half a point,
    ``pooled`` the share of the mean accuracies, ``points`` the mean gain on naive.
    """
    known = [line for line in lines if NAIVE in line and CLEAN in line]
    worth = [line for line in known if _is_worth(line[NAIVE], line[CLEAN])]
    names = {method for line in known for method in line}
    return {
        "labellings": len(known),
        "qualifying": len(worth),
        "measure": "share" if worth else "points" if known else None,
        "naive": _mean(line[NAIVE] for line in known),
        "clean": _mean(line[CLEAN] for line in known),
        "methods": {
            method: _method_shares(method, known, worth)
            for method in order_methods(names)
        },
    }


def summarise_blocks(runs: Scores, printed: Scores) -> list[dict[str, Any]]:
    """Summarise every block of the run beside what the paper prints for it."""
    present = {setting.block for setting in runs}
    return [
        _summarise_block(block, _lines(runs, block), _lines(printed, block))
        for block in order_blocks(present | set(BLOCKS))
    ]


def count_verdicts(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the paper's blocks in which ours is ahead."""
    ours = [block for block in blocks if block["known"]]
    return {
        "blocks": len(ours),
        "compared": sum(block["ahead"] is not None for block in ours),
        "ahead": sum(block["ahead"] is True for block in ours),
        "compared_plain": sum(block["ahead_plain"] is not None for block in ours),
        "ahead_plain": sum(block["ahead_plain"] is True for block in ours),
        "compared_printed": sum(block["ahead_printed"] is not None for block in ours),
        "ahead_printed": sum(block["ahead_printed"] is True for block in ours),
        "ahead_both": sum(
            block["ahead"] is True and block["ahead_printed"] is True for block in ours
        ),
        "behind": [block["label"] for block in ours if block["ahead"] is False],
        "double": [block for block in ours if block["table"] in DOUBLE_TABLES],
    }


def _summarise_block(
    block: tuple[str, str],
    lines: list[dict[str, float]],
    printed_lines: list[dict[str, float]],
) -> dict[str, Any]:
    # Where ours did not run everywhere, all are compared where it did.
    ran = [line for line in lines if OURS in line] or lines
    run, paper = block_shares(ran), block_shares(printed_lines)
    ours = run["methods"].get(OURS)
    best = _best(run, _RIVALS)
    paper_best = _best(paper, _RIVALS)
    paper_own = paper["methods"].get("PGPU")
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
        "paper_best": paper_best,
        "paper_own": paper_own,
        "ahead": _is_ahead(ours, best, run["measure"]),
        "ahead_plain": _is_ahead(run["methods"].get(PLAIN), best, run["measure"]),
        "ahead_printed": _is_ahead(ours, _best(paper, _RIVALS, both), both),
        "double": _is_double(ours, paper_own, "share"),
        "double_pooled": _is_double(ours, paper_own, "pooled"),
    }


def _lines(scores: Scores, block: tuple[str, str]) -> list[dict[str, float]]:
    return [
        {method: score.mean for method, score in line.items()}
        for setting, line in sorted(scores.items(), key=lambda item: str(item[0]))
        if setting.block == block and line
    ]


def _is_worth(naive: float, clean: float) -> bool:
    return round(clean - naive, 6) >= SMALLEST_COST


def _method_shares(
    method: str, known: list[Mapping[str, float]], worth: list[Mapping[str, float]]
) -> dict[str, Any]:
    mine = [line for line in known if method in line]
    mean, naive, clean = (
        float(np.mean([line[name] for line in mine])) for name in (method, NAIVE, CLEAN)
    )
    return {
        "method": method,
        "labellings": len(mine),
        "share": _mean(
            recovered_share(line[method], line[NAIVE], line[CLEAN])
            for line in worth
            if method in line
        ),
        "pooled": (
            recovered_share(mean, naive, clean) if _is_worth(naive, clean) else None
        ),
        "points": mean - naive,
        "accuracy": mean,
    }


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else None


def _best(
    summary: dict[str, Any], methods: tuple[str, ...], measure: str | None = None
) -> dict[str, Any] | None:
    """Give the best of the methods; the earlier column of two that are equal."""
    by = measure or summary["measure"]
    found = [summary["methods"][m] for m in methods if m in summary["methods"]]
    valued = [shares for shares in found if by and shares[by] is not None]
    return max(valued, key=lambda shares: shares[by]) if valued else None


def _is_ahead(
    ours: dict[str, Any] | None, other: dict[str, Any] | None, by: str | None
) -> bool | None:
    if not (ours and other and by) or ours[by] is None or other[by] is None:
        return None
    return bool(round(ours[by] - other[by], 9) > 0.0)


def _is_double(
    ours: dict[str, Any] | None, paper_own: dict[str, Any] | None, by: str
) -> bool | None:
    if not (ours and paper_own) or ours[by] is None or paper_own[by] is None:
        return None
    return bool(ours[by] >= 2.0 * paper_own[by])
