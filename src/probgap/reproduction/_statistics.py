"""Ranks of the methods, and tests of differences with the usual corrections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from probgap._core.types import Array, Vector
from probgap.reproduction._scores import CLEAN, OURS, Scores, Setting, order_methods

_LEVEL = 0.05
# A method that ran on fewer of the labellings than this does not shrink the comparison.
_LEAST_COVERAGE = 0.5
_DECIMALS = 9

Lines = dict[Setting, dict[str, float]]


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
    adjusted = adjust_by_holm([pair["p"] for pair in pairs])
    return {
        "level": _LEVEL,
        "rankings": _rankings(lines, methods) if lines else [],
        "pairs": [
            pair | {"p_holm": p} for pair, p in zip(pairs, adjusted, strict=True)
        ],
        "settings": len(lines),
        "data_sets": len({setting.data for setting in lines}),
    }


def average_ranks(accuracy: Array) -> Vector:
    """Rank methods (columns) in each labelling (row), 1 for the best, and average."""
    return np.asarray(stats.rankdata(-accuracy, axis=1).mean(axis=0))


def critical_difference(n_methods: int, n_settings: int) -> float:
    """Return Nemenyi's critical difference of average ranks (Demsar 2006)."""
    quantile = stats.studentized_range.ppf(1.0 - _LEVEL, n_methods, np.inf)
    scale = np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_settings))
    return float(quantile / np.sqrt(2.0) * scale)


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method, which scipy does not have."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


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
    ranks = average_ranks(accuracy)
    order = np.argsort(ranks, kind="stable")
    statistic, p_value = None, None
    if len(methods) > 2 and len(lines) > 1 and np.ptp(accuracy, axis=1).any():
        test = stats.friedmanchisquare(*accuracy.T)
        statistic, p_value = float(test.statistic), float(test.pvalue)
    return {
        "methods": [methods[i] for i in order],
        "ranks": [float(ranks[i]) for i in order],
        "settings": len(lines),
        "statistic": statistic,
        "p": p_value,
        "critical_difference": critical_difference(len(methods), len(lines)),
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
