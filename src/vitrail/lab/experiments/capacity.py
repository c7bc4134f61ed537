"""Success rate and time of solvers on random perceptrons against α = M/N.

A random binary perceptron has solutions up to α = 0.833 (Krauth and Mézard 1989); algorithms are
predicted to find them up to 0.776 (arXiv 2511.01037).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from vitrail.baselines.annealing import annealing
from vitrail.datasets import glass
from vitrail.estimator.checks import checked_device
from vitrail.graph import FactorGraph, join
from vitrail.lab.experiments.experiment import column, distinct, pick
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.lab.experiments.units import Row, Rows, Unit, unit
from vitrail.learning.table import ALIASES, SAMPLED_DRAWS, baseline
from vitrail.memory import available_memory, in_gigabytes
from vitrail.solvers import Solution, approximate_message_passing, portfolio, run, run_stages
from vitrail.solvers.portfolio import AMP_SCORE_EVERY
from vitrail.updates import flip

CAPACITY = 0.833
ALGORITHMIC_LIMIT = 0.776
MOST_ALPHAS = 10_000
BYTES = 10  # per example and weight: a message, its copy as it changes, the input
UNLIMITED = 10**9  # steps; the time limit ends these runs

Solve = Callable[[FactorGraph, int, float], Solution[Any]]


def _staged(name: str, graph: FactorGraph, seed: int, seconds: float) -> Solution[Any]:
    """Run the stages of a solver until all problems are solved or time is up."""
    stages = portfolio(graph)
    if name != "messages":
        update = flip(SAMPLED_DRAWS) if name == "sampled" else None
        stages = portfolio(graph, ("reinforced",), update=update)
    return run_stages(stages, graph, seed=seed, max_seconds=seconds)


def _run(name: str, graph: FactorGraph, seed: int, seconds: float) -> Solution[Any]:
    amp = name == "amp"
    solver = approximate_message_passing() if amp else baseline(name)
    limits = {"max_steps": UNLIMITED, "max_seconds": seconds}
    return run(solver, graph, seed=seed, score_every=AMP_SCORE_EVERY if amp else 1, **limits)


def annealing_restarts(graph: FactorGraph, seed: int, seconds: float) -> Iterator[Solution[Any]]:
    """Annealing restarted until all problems are solved or time is up.

    Each solution has the best configuration so far and the seconds of its own run.
    """
    solver, found, spent = annealing(), None, 0.0
    while found is None or (spent < seconds and not bool(found.solved.all())):
        left = max(0.0, seconds - spent)
        found = run(solver, graph, seed=seed, max_steps=solver.steps, max_seconds=left, after=found)
        yield found
        seed, spent = seed + 1, spent + found.seconds


def _annealing(graph: FactorGraph, seed: int, seconds: float) -> Solution[Any]:
    runs = list(annealing_restarts(graph, seed, seconds))
    return replace(runs[-1], seconds=sum(run.seconds for run in runs))


SOLVERS: dict[str, Solve] = {  # by the names of `vitrail.learning`
    **{name: partial(_staged, name) for name in ("messages", "reinforced", "sampled")},
    **{name: partial(_run, name) for name in ("amp", "ste", "bop", "bayesbinn")},
    "annealing": _annealing,
}


def instance(num_inputs: int, alpha: float, seed: int) -> FactorGraph:
    """A random perceptron problem with round(α·N) hard constraints."""
    return linear_graph([glass(round(alpha * num_inputs), num_inputs, seed=seed)])


def _check_size(n: int, alpha: float, instances: int) -> None:
    """Raise, before allocating, if an instance has no examples or does not fit into memory."""
    if alpha * n <= 0.5:  # rounds to 0
        raise ValueError(f"alpha {alpha:g} of {n} weights gives no example; raise one of them")
    needed = int(min(BYTES * n * alpha * n * instances, 2.0**62))
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{alpha * n:,.0f} examples of {n:,} weights need {in_gigabytes(needed)} of "
            f"memory, {in_gigabytes(available)} is available; lower --n, --alpha or --count"
        )


def trials(
    n: int, alpha: float, seeds: Sequence[int], solver: str, max_seconds: float, device: str
) -> Rows:
    """One row per seed; several seeds are solved side by side, as one graph."""
    graph = join([instance(n, alpha, seed) for seed in seeds]).to(device)
    found = SOLVERS[solver](graph, seeds[0], max_seconds * len(seeds))
    missed = (1 - found.best_accuracy.cpu()) * round(alpha * n)
    return [
        {
            "solver": solver,
            "n": n,
            "alpha": alpha,
            "seed": seed,
            "unsatisfied": round(float(left)),
            "steps": found.steps,
            "seconds": found.seconds / len(seeds),
        }
        for seed, left in zip(seeds, missed, strict=True)
    ]


def units(
    n: int,
    alphas: Sequence[float],
    solvers: Sequence[str],
    count: int,
    max_seconds: float,
    device: str = "cpu",
    first_seed: int = 0,
) -> list[Unit]:
    """The units of a sweep for `experiments.units.compute`, which skips finished ones.

    On a CPU a unit is one instance; on other devices it is all instances of one α.
    """
    solvers = [ALIASES.get(name, name) for name in solvers]
    unknown = [name for name in solvers if name not in SOLVERS]
    if unknown or not solvers:
        raise ValueError(f"unknown solvers {unknown}; choose from: {', '.join(SOLVERS)}")
    if n % 2 == 0:
        raise ValueError(f"n must be odd, so that no sum is zero, got {n}; take {n + 1}")
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    checked_device("device", device)
    for alpha in alphas:
        _check_size(n, alpha, 1 if device == "cpu" else count)
    seeds = range(first_seed, first_seed + count)
    groups = [(seed,) for seed in seeds] if device == "cpu" else [tuple(seeds)]
    shared = {"n": n, "max_seconds": max_seconds, "device": device}
    return [
        unit(trials, **shared, alpha=alpha, seeds=group, solver=solver)
        for solver, alpha, group in product(solvers, alphas, groups)
    ]


def alpha_range(text: str) -> list[float]:
    """ "0.5:0.8:0.02" → 0.5, 0.52, …, 0.8; or a list with commas.

    >>> alpha_range("0.5:0.6:0.05")
    [0.5, 0.55, 0.6]
    """
    try:
        if ":" not in text:
            values = [float(part) for part in text.split(",")]
        else:
            low, high, step = (float(part) for part in text.split(":"))
            count = (high - low) / step + 1e-9
            if not 0 <= count < MOST_ALPHAS:
                raise ValueError("no steps lead from low to high, or too many")
            count = math.floor(count) + 1
            values = [round(low + k * step, 6) for k in range(count)]
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(
            f"cannot read {text!r} as at most {MOST_ALPHAS} values of alpha; "
            "write low:high:step or a,b,c"
        ) from error
    if not values or not all(0 < value < math.inf for value in values):
        raise ValueError(f"alpha must be above 0 and finite, got {text!r}")
    return values


def summary(rows: Rows) -> Rows:
    """A row per solver and α: trials, share solved, median seconds of solved trials.

    low and high: the 95 % interval of the share (Wilson 1927).
    """
    from scipy.stats import binomtest

    lines: Rows = []
    for solver, alpha in product(distinct(rows, "solver"), sorted(distinct(rows, "alpha"))):
        group = pick(rows, solver=solver, alpha=alpha)
        if not group:
            continue
        solved = pick(group, unsatisfied=0)
        interval = binomtest(len(solved), len(group)).proportion_ci(method="wilson")
        line: Row = {
            "solver": solver,
            "alpha": alpha,
            "trials": len(group),
            "solved": len(solved) / len(group),
            "low": float(interval.low),
            "high": float(interval.high),
            "seconds": statistics.median(column(solved, "seconds")) if solved else None,
            "unsatisfied": statistics.median(column(group, "unsatisfied")),
        }
        lines.append(line)
    return lines
