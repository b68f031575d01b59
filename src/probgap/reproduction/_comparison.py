"""Who is ahead: recovered shares by block, average ranks, and tests with corrections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from probgap.metrics import recovered_share
from probgap.reproduction._scores import (
    BLOCKS,
    CLEAN,
    NAIVE,
    OURS,
    PAPER_METHODS,
    PLAIN,
    Scores,
    Setting,
    block_label,
    order_blocks,
    order_methods,
)

# A share is a ratio: with less than this between clean and naive, in points, it is noise.
_SMALLEST_COST = 0.5
# The tables in which the paper prints its own method as the best.
_OWN_TABLES = ("1", "2", "4", "5")
_RIVALS = tuple(method for method in PAPER_METHODS if method != CLEAN)

_LEVEL = 0.05
# A method that ran on fewer of the labellings than this does not shrink the comparison.
_LEAST_COVERAGE = 0.5
_DECIMALS = 9

Line = Mapping[str, float]
Lines = dict[Setting, dict[str, float]]
Shares = dict[str, Any]


def _block_shares(lines: Iterable[Line]) -> Shares:
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
    run = _block_shares([line for line in lines if OURS in line] or lines)
    paper = _block_shares(printed_lines)
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
    return round(clean - naive, 6) >= _SMALLEST_COST


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


def summarise_statistics(scores: Scores) -> dict[str, Any]:
    """Rank the methods over labellings, and test ours against each other one."""
    lines = {
        setting: {m: round(s.mean, _DECIMALS) for m, s in line.items() if m != CLEAN}
        for setting, line in sorted(scores.items(), key=lambda item: str(item[0]))
    }
    lines = {setting: line for setting, line in lines.items() if line}
    methods = order_methods(method for line in lines.values() for method in line)
    found = [_compare(lines, method) for method in methods if method != OURS]
    pairs = [pair for pair in found if pair is not None]
    # Holm's step-down method, which scipy does not have.
    adjusted = 0.0
    for place, pair in enumerate(sorted(pairs, key=lambda pair: pair["p"])):
        adjusted = max(adjusted, min(1.0, (len(pairs) - place) * pair["p"]))
        pair["p_holm"] = adjusted
    return {
        "level": _LEVEL,
        "rankings": _rankings(lines, methods) if lines else [],
        "pairs": pairs,
        "settings": len(lines),
        "data_sets": len({setting.data for setting in lines}),
    }


def _rankings(lines: Lines, methods: list[str]) -> list[dict[str, Any]]:
    """Rank on all labellings, and where that leaves methods out, with them on fewer."""
    counts = {m: sum(m in line for line in lines.values()) for m in methods}
    everywhere = [m for m in methods if counts[m] == len(lines)]
    most = [m for m in methods if counts[m] >= _LEAST_COVERAGE * len(lines)]
    choices = [(everywhere, lines)]
    if len(most) > len(everywhere):
        shared = {s: line for s, line in lines.items() if all(m in line for m in most)}
        choices.append((most, shared))
    data_sets = {setting.data for setting in lines}
    return [
        _rank(chosen, list(used.values()))
        | {
            "left_out": [method for method in methods if method not in chosen],
            "without": sorted(data_sets - {setting.data for setting in used}),
        }
        for chosen, used in choices
        if len(chosen) > 1 and used
    ]


def _rank(methods: list[str], lines: list[dict[str, float]]) -> dict[str, Any]:
    accuracy = np.array([[line[method] for method in methods] for line in lines])
    ranks = stats.rankdata(-accuracy, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    statistic, p_value = None, None
    if len(methods) > 2 and len(lines) > 1 and np.ptp(accuracy, axis=1).any():
        test = stats.friedmanchisquare(*accuracy.T)
        statistic, p_value = float(test.statistic), float(test.pvalue)
    # Nemenyi's critical difference of average ranks (Demsar 2006).
    k = len(methods)
    quantile = stats.studentized_range.ppf(1.0 - _LEVEL, k, np.inf)
    return {
        "methods": [methods[i] for i in order],
        "ranks": [float(ranks[i]) for i in order],
        "settings": len(lines),
        "statistic": statistic,
        "p": p_value,
        "critical_difference": float(
            quantile * np.sqrt(k * (k + 1) / (12.0 * len(lines)))
        ),
    }


def _compare(lines: Lines, other: str) -> dict[str, Any] | None:
    """Compare ours with another method, on the labellings that both ran on."""
    blocks: dict[tuple[str, str], list[float]] = {}
    for setting, line in lines.items():
        if OURS in line and other in line:
            gain = round(line[OURS] - line[other], _DECIMALS)
            blocks.setdefault(setting.block, []).append(gain)
    if not blocks:
        return None
    gains = np.array([gain for block in blocks.values() for gain in block])
    by_block = np.array([np.mean(block) for block in blocks.values()])
    return {
        "method": other,
        "settings": gains.size,
        "median": float(np.median(gains)),
        "wins": int(np.sum(gains > 0)),
        "ties": int(np.sum(gains == 0)),
        "losses": int(np.sum(gains < 0)),
        "p": float(stats.wilcoxon(gains[gains != 0]).pvalue) if gains.any() else 1.0,
        "blocks": by_block.size,
        "block_wins": int(np.sum(by_block > 0)),
    }
