"""Exact quantiles of numbers in blocks, in two passes.

Each block first shows some of its numbers, evenly spread over their order. They tell
between which two numbers the one that is asked for lies, with few others; those are
fetched, equal ones once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap.dask._tasks import Marks, of

Vector = NDArray[np.float64]

_SHOWN = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Some numbers of a block, in ascending order, and their ranks among all of them."""

    size: int
    rank: NDArray[np.intp]
    value: Vector


def show(values: Vector, marks: Marks, labelled: bool) -> Shown:
    """Show some of the numbers of a block, the least and the greatest among them."""
    ordered = np.sort(of(values, marks, labelled))
    n = ordered.size
    rank = np.unique(np.linspace(0, max(n - 1, 0), _SHOWN).astype(np.intp))[:n]
    return Shown(n, rank, ordered[rank])


def bracket(blocks: list[Shown], first: int, last: int) -> tuple[float, float]:
    """Give two numbers between which the first to the last of all, by rank, must lie."""
    shown = np.unique(np.concatenate([block.value for block in blocks]))
    low, high = 0, shown.size - 1
    while low < high:  # the greatest with at most `first` numbers below it, surely
        middle = (low + high + 1) // 2
        if sum(_most_below(block, shown[middle]) for block in blocks) <= first:
            low = middle
        else:
            high = middle - 1
    below = low
    low, high = 0, shown.size - 1
    while low < high:  # the least with more than `last` numbers at or below it, surely
        middle = (low + high) // 2
        if sum(_fewest_up_to(block, shown[middle]) for block in blocks) > last:
            high = middle
        else:
            low = middle + 1
    return float(shown[below]), float(shown[low])


def _most_below(block: Shown, value: float) -> int:
    at = int(np.searchsorted(block.value, value, side="left"))
    return int(block.rank[at]) if at < block.rank.size else block.size


def _fewest_up_to(block: Shown, value: float) -> int:
    at = int(np.searchsorted(block.value, value, side="right"))
    return int(block.rank[at - 1]) + 1 if at > 0 else 0


def between(
    values: Vector, marks: Marks, labelled: bool, low: float, high: float
) -> tuple[int, Vector, NDArray[np.intp]]:
    """Count the numbers below, and give those between, each with how often it occurs."""
    chosen = of(values, marks, labelled)
    inside = chosen[(chosen >= low) & (chosen <= high)]
    found, times = np.unique(inside, return_counts=True)
    return int(np.count_nonzero(chosen < low)), found, times


def pick(blocks: list[tuple[int, Vector, NDArray[np.intp]]], rank: int) -> float:
    """Give the number of a rank among all, which must be one of those fetched."""
    below = sum(block[0] for block in blocks)
    found = np.concatenate([block[1] for block in blocks])
    times = np.concatenate([block[2] for block in blocks])
    order = np.argsort(found, kind="stable")
    at = int(np.searchsorted(np.cumsum(times[order]), rank - below, side="right"))
    return float(found[order][at])


def interpolate(one: float, next_one: float, share: float) -> float:
    """Go from one number towards the next, as numpy does."""
    apart = next_one - one
    if share >= 0.5:
        return next_one - apart * (1.0 - share)
    return one + apart * share
