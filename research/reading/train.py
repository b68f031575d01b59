"""Simulate tasks and fit the network to them: what ``make reading`` runs.

    python -m research.reading.train tasks --jobs 2 --out build/tasks.npz
    python -m research.reading.train fit build/tasks.npz --out src/probgap/reading/weights.npz

The second step needs torch.
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

from probgap._core.mixture import fit_mixture
from probgap._core.runtime import one_thread
from probgap._core.types import Vector
from probgap.reading.network import (
    CURVE_SIZE,
    LEAST_CHANCE,
    LEAST_SPREAD,
    MOST_STANDARD,
    calibrated_log_odds,
    summarise,
)
from research.reading.simulator import BELIEF, FAMILIES, SimulatedTask, simulate

N_BINS = 48
# Bins are narrower where scores are high: that is where hidden positives are.
_NARROWING = 1.7


def describe(seed: int) -> dict[str, Any]:
    """Simulate a task, score it as ``fit`` does, and return the network's training data."""
    task = simulate(seed)
    ones, target = np.ones(task.labelled.size), task.labelled.astype(np.float64)
    with one_thread():
        fitted = fit_mixture(task.X, target, ones, task.labelled, seed)
        log_odds = calibrated_log_odds(fitted.held_out, task.labelled, ones)
        summary = summarise(log_odds, task.labelled, ones)
    return {
        "seed": seed,
        "summary": summary.astype(np.float32),
        **_bins(log_odds, task),
        "n_hidden": int((task.positive & ~task.labelled).sum()),
        "family": [list(FAMILIES[k]).index(name) for k, name in task.families.items()],
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
EPOCHS = 25
BATCH = 256
LEARNING_RATE = 2e-3
# Tasks with other rates are simulated rarely and weighted up: intervals must allow for
# steep labelling.
PLAIN_RATES = ("constant", "inverse", "linear", "gap_power", "posterior_power")
OTHERS_COUNT = 3.0
# Most rows that a task counts for: curves are approximations, however large the task.
MOST_ROWS = 100.0
# Every HOLD_OUT-th task is held out, to measure distances of new tasks to those fitted on.
HOLD_OUT = 8
N_AXES = 20
N_PLACES = 400


def fit_networks(tasks: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
    """Fit networks by the likelihoods of the hidden labels and of their number."""
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
    rates = np.array(list(FAMILIES["rate"]))[tasks["family"][:, 2]]
    counts = np.where(np.isin(rates, PLAIN_RATES), 1.0, OTHERS_COUNT)
    nets = [
        _fit_network([array[~held_out] for array in data], counts[~held_out], seed + k)
        for k in range(N_NETWORKS)
    ]
    arrays = {"mean": mean, "deviation": deviation, **_places(standard, held_out, seed)}
    for i in range(3):
        layer = [net[2 * i] for net in nets]  # between them are activations
        weights = [one.weight.detach().numpy().T for one in layer]
        arrays[f"weight_{i}"] = np.stack(weights)
        arrays[f"bias_{i}"] = np.stack([one.bias.detach().numpy() for one in layer])
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _fit_network(data: list[Any], counts: Vector, seed: int) -> Any:
    import torch  # noqa: PLC0415

    torch.manual_seed(seed)
    n_tasks, width = data[0].shape
    first, second = (
        torch.nn.Linear(width, N_HIDDEN),
        torch.nn.Linear(N_HIDDEN, N_HIDDEN),
    )
    last = torch.nn.Linear(N_HIDDEN, N_CURVES * CURVE_SIZE)
    net = torch.nn.Sequential(first, torch.nn.SiLU(), second, torch.nn.SiLU(), last)
    with torch.no_grad():
        net[-1].weight *= 0.3
    optimiser = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=1e-2)
    steps = EPOCHS * (n_tasks // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, LEARNING_RATE, total_steps=steps + 1
    )
    chances = torch.tensor(counts / counts.sum())
    for _ in range(EPOCHS):
        drawn = torch.multinomial(chances, n_tasks // BATCH * BATCH, replacement=True)
        for batch in drawn.split(BATCH):
            loss = _loss(net, *(array[batch] for array in data))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net


def _loss(net: Any, summary: Any, log_odds: Any, rows: Any, positives: Any) -> Any:
    """Return minus the log-likelihood of hidden labels and of their number.

    Both are mixtures over the curves: of the joint likelihood of all labels of a task, and
    of a normal density of the log-odds of the share of positives around that of the curve.
    """
    import torch  # noqa: PLC0415

    numbers = net(summary).view(len(summary), N_CURVES, CURVE_SIZE)
    part = [numbers[..., i, None] for i in range(6)]
    width = [torch.nn.functional.softplus(part[i] + 0.5) + 0.05 for i in (3, 5)]
    z, share = log_odds[:, None, :], torch.sigmoid(part[1])
    value = share * torch.sigmoid((z - 3.0 * part[2]) / width[0])
    value = value + (1.0 - share) * torch.sigmoid((z - 3.0 * part[4] + 1.0) / width[1])
    chance = torch.sigmoid(part[0] + 1.0) * value
    chance = chance.clamp(LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    weights = torch.log_softmax(numbers[..., 6], dim=1)

    n_rows = rows.sum(dim=1)
    counted = n_rows.clamp(max=MOST_ROWS)
    likelihood = positives[:, None] * chance.log()
    likelihood = likelihood + (rows - positives)[:, None] * (1.0 - chance).log()
    tempered = likelihood.sum(dim=2) * (counted / n_rows)[:, None]
    of_labels = torch.logsumexp(weights + tempered, dim=1) / counted.sqrt()

    expected = (chance * rows[:, None]).sum(dim=2) / n_rows[:, None]
    by_luck = 1.0 / (n_rows[:, None] * expected * (1.0 - expected) + 1.0)
    spread = torch.nn.functional.softplus(numbers[..., 7] - 1.0)
    deviation = (spread**2 + LEAST_SPREAD**2 + by_luck).sqrt()
    found = torch.logit((positives.sum(dim=1) + 0.5) / (n_rows + 1.0))
    away = (found[:, None] - torch.logit(expected)) / deviation
    of_number = torch.logsumexp(weights - 0.5 * away**2 - deviation.log(), dim=1)
    return -(of_labels + of_number).mean()


def _places(
    standard: NDArray[np.float64], held_out: NDArray[np.bool_], seed: int
) -> dict[str, NDArray[Any]]:
    """Return positions of some tasks, and quantiles of other tasks' distances to them."""
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


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("tasks", help="simulate tasks")
    step.add_argument("--first", type=int, default=0)
    step.add_argument("--count", type=int, default=10_240)
    step.add_argument("--jobs", type=int, default=2)
    step.add_argument("--seconds", type=float, default=None)
    step.add_argument("--out", type=Path, required=True)
    step = steps.add_parser("fit", help="fit the networks to simulated tasks")
    step.add_argument("tasks", type=Path)
    step.add_argument("--seed", type=int, default=0)
    step.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.step == "tasks":
        limits = options.count, options.jobs, options.seconds
        np.savez_compressed(options.out, **simulate_tasks(options.first, *limits))
        return
    tasks = dict(np.load(options.tasks))
    arrays = fit_networks(tasks, options.seed)
    settings = {
        "first_seed": int(tasks["seed"].min()),
        "n_tasks": len(tasks["seed"]),
        "fit_seed": options.seed,
        "belief": BELIEF,
        "others_count": OTHERS_COUNT,
        "families": {kind: list(known) for kind, known in FAMILIES.items()},
    }
    arrays["settings"] = np.array(json.dumps(settings))
    np.savez_compressed(options.out, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
