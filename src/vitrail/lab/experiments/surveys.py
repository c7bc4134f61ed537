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
from vitrail.lab.plots import survey_figure
from vitrail.random import Key
from vitrail.solvers import Feedback, Info, Solver, belief_propagation, s4p
from vitrail.surveys.histogram import Grid, point_mass
from vitrail.updates import closed_form, flip


@dataclass(frozen=True)
class Hopping:
    """What one solver's belief about one variable did."""

    name: str
    surveys: Tensor  # (steps, B) float32: row t is the belief after step t
    accuracy: Tensor  # (steps,) of the decoded configuration
    best: float  # accuracy of the best configuration seen
    draws: int  # configurations drawn a message and step, 0 for exact messages


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
    solvers: list[tuple[str, Solver[Any], int]] = [
        ("BP, exact", belief_propagation(closed_form(), damping=damping), 0),
        (f"SBP, {most} draws", belief_propagation(flip(most), damping=damping), most),
    ]
    for count in survey_samples:
        surveys = s4p(
            flip(samples), survey_samples=count, bins=bins, damping=damping, watch=[variable]
        )
        solvers.append((tracks(count), surveys, samples * count))
    return [
        _watched(name, solver, graph, variable, Grid(bins), steps, draws, seed)
        for name, solver, draws in solvers
    ]


def tracks(survey_samples: int) -> str:
    """What S4P with so many survey samples is called in panels and tables."""
    return f"S4P, {survey_samples} track{'s' if survey_samples > 1 else ''}"


def bin_hopping_figure(panels: Sequence[Hopping]) -> Any:
    """The panels of `bin_hopping` as a figure."""
    titles = [f"{panel.name}\nbest {panel.best:.2f}" for panel in panels]
    return survey_figure([panel.surveys.numpy() for panel in panels], titles)


def _watched(
    name: str,
    solver: Solver[Any],
    graph: FactorGraph,
    variable: int,
    grid: Grid,
    steps: int,
    draws: int,
    seed: int,
) -> Hopping:
    """All steps, whether solved or not, and the belief after each."""
    state = solver.init(Key(seed), graph)
    surveys, accuracies, best = [], [], 0.0
    active = torch.ones(graph.num_problems, dtype=torch.bool)
    accuracy = torch.zeros(graph.num_problems, dtype=torch.float64)
    for step in range(steps):
        state, info = solver.step(Key(seed).at(step), graph, state, Feedback(accuracy, active))
        found = graph.accuracy(solver.candidates(Key(seed).at(step), graph, state))
        accuracy, best = found[0], max(best, float(found.max()))
        surveys.append(_belief(info, solver.log_odds(graph, state)[variable], grid))
        accuracies.append(accuracy[0])
    return Hopping(name, torch.stack(surveys), torch.stack(accuracies), best, draws)


def _belief(info: Info, log_odds: Tensor, grid: Grid) -> Tensor:
    """The watched survey, (B,); for belief propagation a point mass at its belief."""
    if "survey" in info.records:
        return info.records["survey"][0]
    return point_mass(grid, log_odds)
