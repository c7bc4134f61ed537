"""One variable's survey over the steps: the paper's figure of beliefs that hop between bins.

S4P with 1, 10, 100 and 500 survey samples, from one start, beside exact BP and beside SBP with as
many draws per message as the largest S4P has in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vitrail.datasets import glass
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.random import Key
from vitrail.solvers import Feedback, Solver, belief_propagation, s4p
from vitrail.surveys.histogram import Grid, point_mass
from vitrail.updates import closed_form, flip


@dataclass(frozen=True)
class Hopping:
    """What one solver's belief about one variable did."""

    name: str
    draws: int  # configurations drawn per message and step, 0 for exact messages
    surveys: Tensor  # (steps, B) float32: row t is the belief after step t
    accuracy: Tensor  # (steps,) of the decoded configuration
    best: float  # accuracy of the best configuration seen


def bin_hopping(
    survey_samples: Sequence[int] = (1, 10, 100, 500),
    *,
    num_weights: int = 10,
    num_examples: int = 20,
    steps: int = 20,
    damping: float = 0.5,
    bins: int = 31,
    samples: int = 5,
    variable: int = 0,
    seed: int = 0,
) -> list[Hopping]:
    """The surveys of one variable for each solver; the defaults are the paper's settings.

    Damping, steps, data and prior are the same for all. Runs go on after a problem is solved, so
    that every panel has all its steps.
    """
    data = glass(num_examples, num_weights, seed=seed)
    graph = factor_graph(perceptron(data.inputs, data.labels))
    most = samples * max(survey_samples)
    solvers: list[tuple[str, int, Solver[Any]]] = [
        ("BP, exact", 0, belief_propagation(closed_form(), damping=damping)),
        (f"SBP, {most} draws", most, belief_propagation(flip(most), damping=damping)),
    ]
    for count in survey_samples:
        surveys = s4p(
            flip(samples), survey_samples=count, bins=bins, damping=damping, watch=[variable]
        )
        solvers.append((tracks(count), samples * count, surveys))
    return [
        Hopping(name, draws, *_followed(solver, graph, variable, Grid(bins), steps, seed))
        for name, draws, solver in solvers
    ]


def tracks(survey_samples: int) -> str:
    """The name of S4P with n survey samples in panels and tables."""
    return f"S4P, {survey_samples} track{'s' if survey_samples > 1 else ''}"


def _followed(
    solver: Solver[Any], graph: FactorGraph, variable: int, grid: Grid, steps: int, seed: int
) -> tuple[Tensor, Tensor, float]:
    """Surveys and accuracies of all steps, whether solved or not, and the best accuracy."""
    state = solver.init(Key(seed), graph)
    surveys, accuracies, best = [], [], 0.0
    active = torch.ones(graph.num_problems, dtype=torch.bool)
    accuracy = torch.zeros(graph.num_problems, dtype=torch.float64)
    for step in range(steps):
        key = Key(seed).at(step)
        state, info = solver.step(key, graph, state, Feedback(accuracy, active))
        found = graph.accuracy(solver.candidates(key, graph, state))
        accuracy, best = found[0], max(best, float(found.max()))
        watched = info.records.get("survey")
        belief = solver.log_odds(graph, state)[variable]
        surveys.append(point_mass(grid, belief) if watched is None else watched[0])
        accuracies.append(accuracy[0])
    return torch.stack(surveys), torch.stack(accuracies), best
