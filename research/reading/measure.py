"""Measure how often intervals and probabilities of the estimate hold.

    make reading                                       # tasks.npz and the network, 1 h
    python -m research.reading.measure --count 400     # new tasks, families trained on
    python -m research.reading.measure --tasks build/tasks.npz --leave-out   # needs torch

The first measures the network of the package on tasks with seeds that it was not fitted
to. The second fits networks without some families and measures them on just those.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from probgap._core.types import Mask, Rows
from probgap.reading._hidden_positives import interval_of_share
from probgap.reading.network import as_network, load_network
from research.reading.simulator import FAMILIES
from research.reading.train import fit_networks, simulate_tasks

Tasks = dict[str, Any]

FIRST_SEED = 10_000_000
SHOWN = 0.9
LEFT_OUT = (
    ("rate", ("step", "top_share")),
    ("rate", ("two_labellers", "rank_weight")),
    ("rate", ("rank_sigmoid", "log_odds_sigmoid")),
    ("rate", ("gap_power",)),
    ("rate", ("inverse", "linear")),
    ("truth", ("islands",)),
    ("features", ("heavy_tailed", "binary")),
)


def select(tasks: Tasks, kind: str, names: Iterable[str]) -> Mask:
    """Return which tasks are of the families named."""
    known = list(FAMILIES[kind])
    column = list(FAMILIES).index(kind)
    return np.isin(tasks["family"][:, column], [known.index(name) for name in names])


def measure(network: Any, tasks: Tasks, rows: Rows) -> dict[str, list[Any]]:
    """Return coverage, width, Brier score and the rows shown at 0.9 or more."""
    names = ("covered", "width", "brier", "shown", "right")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        n_rows = tasks["rows"][row].astype(float)
        positives = tasks["positives"][row].astype(float)
        curves = network.curves(tasks["summary"][row].astype(float))
        mean = curves.mean(tasks["log_odds"][row].astype(float))
        scores = np.repeat(tasks["log_odds"][row].astype(float), tasks["rows"][row])
        low, high = n_rows.sum() * interval_of_share(curves, scores, n_rows.sum())
        hidden = tasks["n_hidden"][row]
        found["covered"].append(low - 0.5 <= hidden <= high + 0.5)
        found["width"].append((high - low) / n_rows.sum())
        squares = positives * (1 - mean) ** 2 + (n_rows - positives) * mean**2
        found["brier"].append(squares.sum() / n_rows.sum())
        shown = mean >= SHOWN
        found["shown"].append(n_rows[shown].sum())
        found["right"].append(positives[shown].sum())
    return found


def report(name: str, found: dict[str, list[Any]]) -> None:
    """Print what was measured."""
    shown = np.sum(found["shown"])
    right = np.sum(found["right"]) / shown if shown else np.nan
    print(
        f"{name:44} {len(found['covered']):5} tasks  covered {np.mean(found['covered']):.1%}"
        f"  width {np.mean(found['width']):.1%}  Brier {np.mean(found['brier']):.4f}"
        f"  shown at >= {SHOWN}: {shown:.0f}, right {right:.1%}"
    )


def main() -> None:
    """Measure the network of the package, or networks fitted without some families."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=Path, help="simulated tasks; else new ones")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--leave-out", action="store_true")
    options = parser.parse_args()
    if options.tasks is None:
        tasks = simulate_tasks(FIRST_SEED, options.count, options.jobs)
    else:
        tasks = dict(np.load(options.tasks))
    everything = np.arange(len(tasks["seed"]))
    if not options.leave_out:
        network = load_network()
        report("all families", measure(network, tasks, everything))
        for kind, known in FAMILIES.items():
            for name in known:
                rows = np.flatnonzero(select(tasks, kind, [name]))
                if rows.size:
                    report(f"{kind}: {name}", measure(network, tasks, rows))
        return
    every = []
    for kind, names in LEFT_OUT:
        left_out = select(tasks, kind, names)
        rest = {name: array[~left_out] for name, array in tasks.items()}
        network = as_network(fit_networks(rest, seed=0))
        found = measure(network, tasks, np.flatnonzero(left_out))
        report(f"left out {kind}: {', '.join(names)}", found)
        every.append(np.mean(found["covered"]))
    print(f"mean over the groups: covered {np.mean(every):.1%}")


if __name__ == "__main__":
    main()
