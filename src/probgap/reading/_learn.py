"""Simulate tasks, and fit the network that reads them: what ``make reading`` runs.

    python -m probgap.reading._learn tasks --jobs 2 --out build/tasks.npz
    python -m probgap.reading._learn fit build/tasks.npz --out src/probgap/reading/weights.npz

Needs torch for the second step; nothing else imports this module.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import ndtr

from probgap._core.learners import fit_usual
from probgap._core.threads import one_thread
from probgap.reading._curves import (
    CURVE_SIZE,
    LEAST_CHANCE,
    MOST_STANDARD,
    Network,
    as_network,
)
from probgap.reading._reading import INTERVAL
from probgap.reading._simulator import (
    BELIEF,
    FAMILIES,
    LUMPY,
    SimulatedTask,
    simulate,
)
from probgap.reading._summary import calibrate, summarise

Vector = NDArray[np.float64]

N_BINS = 48
# Bins are narrower where scores are high: that is where hidden positives are.
_NARROWING = 1.7


def describe(seed: int) -> dict[str, Any]:
    """Simulate a task, score it as a fit does, and keep what the network learns from."""
    task = simulate(seed)
    with one_thread():
        n = task.labelled.size
        ones = np.ones(n)
        target = task.labelled.astype(np.float64)
        fitted = fit_usual(task.X, target, ones, task.labelled, seed)
        log_odds = calibrate(fitted.held_out, task.labelled, ones)
        summary = summarise(log_odds, task.labelled, ones)
    return {
        "seed": seed,
        "summary": summary.astype(np.float32),
        **_bins(log_odds, task),
        "n_hidden": int((task.positive & ~task.labelled).sum()),
        "class_prior": float(task.posterior.mean()),
        "overlap": task.overlap,
        "family": [
            list(known).index(task.families[kind]) for kind, known in FAMILIES.items()
        ],
    }


def _bins(log_odds: Vector, task: SimulatedTask) -> dict[str, Any]:
    """Sort unlabelled rows into bins: mean log-odds, rows and positives of each."""
    hidden = ~task.labelled
    order = np.argsort(log_odds[hidden], kind="stable")
    values, positive = log_odds[hidden][order], task.positive[hidden][order]
    edges = 1.0 - (1.0 - np.arange(N_BINS + 1) / N_BINS) ** _NARROWING
    edges = np.round(edges * values.size).astype(np.intp)
    rows = np.diff(edges)
    sums = [np.append(0.0, np.cumsum(column))[edges] for column in (values, positive)]
    mean = np.diff(sums[0]) / np.maximum(rows, 1)
    return {
        "log_odds": mean.astype(np.float16),
        "rows": rows.astype(np.uint16),
        "positives": np.diff(sums[1]).astype(np.uint16),
    }


def simulate_tasks(
    first: int, count: int, jobs: int, seconds: float | None = None
) -> dict[str, Any]:
    """Describe the tasks of consecutive seeds, as many as time allows."""
    started, found, batch = time.monotonic(), [], 32 * jobs
    for start in range(first, first + count, batch):
        if seconds is not None and time.monotonic() - started > seconds:
            break
        seeds = range(start, min(start + batch, first + count))
        found += Parallel(jobs)(delayed(describe)(seed) for seed in seeds)
    return {name: np.array([task[name] for task in found]) for name in found[0]}


# --- the network ------------------------------------------------------------------------

N_NETWORKS = 4
N_CURVES = 12
N_HIDDEN = 128
EPOCHS = 40
BATCH = 256
LEARNING_RATE = 2e-3
# Rows that a task counts for at most: no curve is exact, however many rows it has.
MOST_ROWS = 1000.0
# Every so many-th task is held out, to measure how far intervals have to reach.
HOLD_OUT = 8
COVERAGE = 0.88
N_AXES = 20
N_PLACES = 400


def fit_networks(tasks: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
    """Fit networks by the joint likelihood of the hidden labels of each task."""
    import torch  # noqa: PLC0415 (nothing else here needs it)

    torch.set_num_threads(1)
    summary = tasks["summary"].astype(np.float64)
    held_out = np.arange(len(summary)) % HOLD_OUT == 0
    mean, deviation = summary.mean(axis=0), summary.std(axis=0) + 1e-6
    standard = np.clip((summary - mean) / deviation, -MOST_STANDARD, MOST_STANDARD)
    data = [
        torch.tensor(array.astype(np.float32))
        for array in (standard, tasks["log_odds"], tasks["rows"], tasks["positives"])
    ]
    belief = plausibility(tasks)
    nets = [
        _fit_network([array[~held_out] for array in data], belief[~held_out], seed + k)
        for k in range(N_NETWORKS)
    ]
    layers = [[net[i] for net in nets] for i in (0, 2, 4)]
    arrays: dict[str, NDArray[Any]] = {"mean": mean, "deviation": deviation}
    for i, layer in enumerate(layers):
        arrays[f"weight_{i}"] = np.stack(
            [one.weight.detach().numpy().T for one in layer]
        )
        arrays[f"bias_{i}"] = np.stack([one.bias.detach().numpy() for one in layer])
    arrays |= _places(standard, held_out, seed)
    arrays["spread"] = np.array(_choose_spread(arrays, tasks, np.flatnonzero(held_out)))
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def plausibility(tasks: dict[str, NDArray[Any]]) -> Vector:
    """Weight the tasks by how likely they are beside what the simulator draws.

    Rare classes are likelier than common ones, and so is a table in which nothing is
    hidden. Labels at random on overlapping classes are as plausible as the labels by ease
    that they look like, most of all where many rows share one posterior.
    """
    family = {
        kind: np.array(list(known))[tasks["family"][:, k]]
        for k, (kind, known) in enumerate(FAMILIES.items())
    }
    at_random = (family["rate"] == "constant") & (tasks["overlap"] > 0.55)
    lumpy = np.isin(family["features"], LUMPY) | np.isin(family["truth"], LUMPY)
    nothing = tasks["n_hidden"] < 0.01 * tasks["rows"].sum(axis=1)
    weight = (1.0 - tasks["class_prior"]) ** 0.4
    weight = weight * np.where(nothing, 2.0, 1.0) * np.where(at_random, 1.25, 1.0)
    return np.asarray(weight * np.where(at_random & lumpy, 3.0, 1.0))


def _fit_network(data: list[Any], belief: Vector, seed: int) -> Any:
    import torch  # noqa: PLC0415

    torch.manual_seed(seed)
    n_tasks, width = data[0].shape
    net = torch.nn.Sequential(
        torch.nn.Linear(width, N_HIDDEN),
        torch.nn.SiLU(),
        torch.nn.Linear(N_HIDDEN, N_HIDDEN),
        torch.nn.SiLU(),
        torch.nn.Linear(N_HIDDEN, N_CURVES * (CURVE_SIZE + 1)),
    )
    with torch.no_grad():
        net[-1].weight *= 0.3
    optimiser = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=1e-3)
    steps = EPOCHS * (n_tasks // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, LEARNING_RATE, total_steps=steps + 1
    )
    chances = torch.tensor(belief / belief.sum())
    for _ in range(EPOCHS):
        drawn = torch.multinomial(chances, n_tasks // BATCH * BATCH, replacement=True)
        for batch in drawn.split(BATCH):
            loss = _joint_loss(net, *(array[batch] for array in data))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net


def _joint_loss(
    net: Any, summary: Any, log_odds: Any, rows: Any, positives: Any
) -> Any:
    """Return minus the log of the mixture of the likelihoods of all labels of a task."""
    import torch  # noqa: PLC0415

    numbers = net(summary).view(len(summary), N_CURVES, CURVE_SIZE + 1)
    part = [numbers[..., i, None] for i in range(CURVE_SIZE)]
    width = [torch.nn.functional.softplus(part[i] + 0.5) + 0.05 for i in (3, 5)]
    z, share = log_odds[:, None, :], torch.sigmoid(part[1])
    value = share * torch.sigmoid((z - 3.0 * part[2]) / width[0])
    value = value + (1.0 - share) * torch.sigmoid((z - 3.0 * part[4] + 1.0) / width[1])
    chance = torch.sigmoid(part[0] + 1.0) * value
    chance = chance.clamp(LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    likelihood = positives[:, None] * chance.log()
    likelihood = likelihood + (rows - positives)[:, None] * (1.0 - chance).log()
    n_rows = rows.sum(dim=1)
    counted = n_rows.clamp(max=MOST_ROWS)
    tempered = likelihood.sum(dim=2) * (counted / n_rows)[:, None]
    weights = torch.log_softmax(numbers[..., -1], dim=1)
    return -(torch.logsumexp(weights + tempered, dim=1) / counted.sqrt()).mean()


def _places(
    standard: NDArray[np.float64], held_out: NDArray[np.bool_], seed: int
) -> dict[str, NDArray[Any]]:
    """Keep where some tasks lie, and how far from the nearest of these others are."""
    _, scale, axes = np.linalg.svd(standard, full_matrices=False)
    axes = axes[:N_AXES] / (scale[:N_AXES, None] / np.sqrt(len(standard)))
    place = standard @ axes.T
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(~held_out)
    places = place[rng.choice(known, min(N_PLACES, known.size), replace=False)]
    others = place[held_out]
    squares = ((others[:, None, :] - places) ** 2).sum(axis=2)
    nearest = np.sqrt(squares.min(axis=1))
    distances = np.quantile(nearest, np.arange(1, 1001) / 1001)
    return {"axes": axes, "places": places, "distances": distances}


def _choose_spread(
    arrays: dict[str, NDArray[Any]],
    tasks: dict[str, NDArray[Any]],
    rows: NDArray[np.intp],
) -> float:
    """Choose how far counts stray from their curves: intervals hold as often as said."""
    belief = plausibility(tasks)[rows]
    for spread in np.arange(0.0, 0.5, 0.01):
        network = as_network({**arrays, "spread": np.array(spread)})
        held = [covers(network, tasks, row) for row in rows]
        covered = np.average(held, weights=belief)
        if covered >= COVERAGE:
            break
    return float(spread)


def count_hidden(
    network: Network, tasks: dict[str, NDArray[Any]], row: int
) -> tuple[Vector, Vector]:
    """Return the number of hidden positives of a task by each curve, and deviations."""
    curves = network.curves(tasks["summary"][row].astype(np.float64))
    rows = tasks["rows"][row].astype(np.float64)
    each = curves.each(tasks["log_odds"][row].astype(np.float64))
    counts = each @ rows
    by_luck = (each * (1.0 - each)) @ rows
    off = network.spread * np.minimum(counts, rows.sum() - counts)
    return counts, np.sqrt(by_luck + off**2 + 0.25)


def covers(network: Network, tasks: dict[str, NDArray[Any]], row: int) -> bool:
    """Tell whether the 90% interval of a task holds its number of hidden positives."""
    counts, deviations = count_hidden(network, tasks, row)
    weights = network.curves(tasks["summary"][row].astype(np.float64)).weights
    level = weights @ ndtr((tasks["n_hidden"][row] - counts) / deviations)
    return bool(INTERVAL[0] < level < INTERVAL[1])


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("tasks", help="simulate tasks")
    step.add_argument("--first", type=int, default=0)
    step.add_argument("--count", type=int, default=11_776)
    step.add_argument("--jobs", type=int, default=2)
    step.add_argument("--seconds", type=float, default=None)
    step.add_argument("--out", type=Path, required=True)
    step = steps.add_parser("fit", help="fit the networks to simulated tasks")
    step.add_argument("tasks", type=Path)
    step.add_argument("--seed", type=int, default=0)
    step.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.step == "tasks":
        found = simulate_tasks(
            options.first, options.count, options.jobs, options.seconds
        )
        np.savez_compressed(options.out, **found)
        return
    tasks = dict(np.load(options.tasks))
    arrays = fit_networks(tasks, options.seed)
    settings = {
        "first_seed": int(tasks["seed"].min()),
        "n_tasks": len(tasks["seed"]),
        "fit_seed": options.seed,
        "belief": BELIEF,
        "families": {kind: list(known) for kind, known in FAMILIES.items()},
    }
    arrays["settings"] = np.array(json.dumps(settings))
    np.savez_compressed(options.out, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
