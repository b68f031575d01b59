"""Is a difference more than chance? Ranks, and tests with the usual corrections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from probgap.report._rows import CLEAN, OURS, Scores, Setting, order_methods

LEVEL = 0.05
# A method that ran on fewer of the labellings than this does not shrink the comparison.
_LEAST_COVERAGE = 0.5
_DECIMALS = 9


def average_ranks(accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank methods (columns) in each labelling (row), 1 for the best, and average."""
    ranks = stats.rankdata(-accuracy.round(_DECIMALS), axis=1)
    return np.asarray(ranks.mean(axis=0))


def critical_difference(
    n_methods: int, n_settings: int, *, level: float = LEVEL
) -> float:
    """Nemenyi's critical difference of average ranks (Demsar 2006)."""
    quantile = stats.studentized_range.ppf(1.0 - level, n_methods, np.inf)
    scale = np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_settings))
    return float(quantile / np.sqrt(2.0) * scale)


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def summarise_statistics(scores: Scores) -> dict[str, Any]:
    """Rank the methods over labellings, and test ours against each other one."""
    ours = _without_clean(scores)
    return {
        "level": LEVEL,
        "rankings": _rankings(ours),
        "pairs": _pairs(ours),
        "settings": len(ours),
        "data_sets": len({setting.data for setting in ours}),
    }


def _without_clean(scores: Scores) -> dict[Setting, dict[str, float]]:
    lines = {
        setting: {m: score.mean for m, score in line.items() if m != CLEAN}
        for setting, line in sorted(scores.items(), key=lambda item: str(item[0]))
    }
    return {setting: line for setting, line in lines.items() if line}


def _rankings(lines: dict[Setting, dict[str, float]]) -> list[dict[str, Any]]:
    """Rank on all labellings, and where that leaves methods out, with them on fewer."""
    if not lines:
        return []
    counts = {
        method: sum(method in line for line in lines.values())
        for method in order_methods({m for line in lines.values() for m in line})
    }
    everywhere = [method for method, n in counts.items() if n == len(lines)]
    most = [m for m, n in counts.items() if n >= _LEAST_COVERAGE * len(lines)]
    shared = {s: line for s, line in lines.items() if all(m in line for m in most)}
    choices = [(everywhere, lines)]
    if len(most) > len(everywhere):
        choices.append((most, shared))
    data_sets = {setting.data for setting in lines}
    return [
        _rank(methods, list(chosen.values()))
        | {
            "left_out": [method for method in counts if method not in methods],
            "without": sorted(data_sets - {setting.data for setting in chosen}),
        }
        for methods, chosen in choices
        if len(methods) > 1 and chosen
    ]


def _rank(methods: list[str], lines: list[dict[str, float]]) -> dict[str, Any]:
    accuracy = np.array([[line[method] for method in methods] for line in lines])
    ranks = average_ranks(accuracy)
    order = np.argsort(ranks, kind="stable")
    statistic, p_value = _friedman(accuracy)
    return {
        "methods": [methods[i] for i in order],
        "ranks": [float(ranks[i]) for i in order],
        "settings": len(lines),
        "statistic": statistic,
        "p": p_value,
        "critical_difference": critical_difference(len(methods), len(lines)),
    }


def _friedman(accuracy: NDArray[np.float64]) -> tuple[float | None, float | None]:
    n_settings, n_methods = accuracy.shape
    rounded = accuracy.round(_DECIMALS)
    tied = bool(np.all(rounded == rounded[:, :1]))
    if n_methods < 3 or n_settings < 2 or tied:
        return None, None
    result = stats.friedmanchisquare(*rounded.T)
    return float(result.statistic), float(result.pvalue)


def _pairs(lines: dict[Setting, dict[str, float]]) -> list[dict[str, Any]]:
    """Compare ours with each other method, on the labellings that both ran on."""
    others = {m for line in lines.values() for m in line} - {OURS}
    pairs = [
        pair for m in order_methods(others) if (pair := _pair(lines, m)) is not None
    ]
    adjusted = adjust_by_holm([pair["p"] for pair in pairs])
    return [pair | {"p_holm": p} for pair, p in zip(pairs, adjusted, strict=True)]


def _pair(lines: dict[Setting, dict[str, float]], other: str) -> dict[str, Any] | None:
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
