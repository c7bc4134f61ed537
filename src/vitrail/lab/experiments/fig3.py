"""Figure 3: how the survey of one weight evolves, by the number of survey samples.

Glass, 10 weights, 20 examples, 20 steps, as in the paper's appendix C.2. The panels show one
variable of one problem, by S4P, by exact BP, and by SBP with as many draws per message as the
largest S4P has in total; the table is over many problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.datasets import glass
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.claims import Claim, found_or_decoded, mean
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    cells,
    column,
    difference,
    distinct,
    pick,
)
from vitrail.lab.experiments.methods import S4P, SBP
from vitrail.lab.experiments.tasks import linear_graph, solve_linear
from vitrail.lab.experiments.units import Rows, Unit, unit
from vitrail.lab.plots import Figure, survey_figure
from vitrail.random import Key
from vitrail.solvers import Feedback, Solver, belief_propagation, s4p
from vitrail.surveys.histogram import Grid, point_mass
from vitrail.updates import closed_form, flip

EXACT, FAMILY = "BP, exact", "glass"


@dataclass(frozen=True)
class Config:
    """The paper's settings; it does not say which problem or variable it shows.

    The panels show the first problem, and of its variables one that surveys keep undecided.
    """

    num_inputs: int = 10
    size: int = 20
    steps: int = 20
    damping: float = 0.5
    bins: int = 31
    samples: int = 5
    survey_samples: tuple[int, ...] = (1, 10, 100, 500)
    shown_problem: int = 0
    shown_variable: int = 2
    repeats: int = 100
    seed: int = 1

    @property
    def sampled(self) -> str:
        return f"SBP, {self.samples} draws"


FULL = Config()
QUICK = Config(repeats=20)


def units(config: Config) -> Sequence[Unit]:
    """The panels, and one unit per method for the numbers."""
    shared = {
        "family": FAMILY,
        "sizes": ((config.num_inputs, config.size),),
        "repeats": config.repeats,
        "epochs": config.steps,
        "seed": config.seed,
    }
    methods = [
        SBP(EXACT, update="closed_form", samples=0, damping=config.damping),
        SBP(config.sampled, damping=config.damping, samples=config.samples),
        *(
            S4P(tracks(draws), config.samples, draws, config.bins, config.damping)
            for draws in config.survey_samples
        ),
    ]
    runs = [unit(solve_linear, **shared, method=method) for method in methods]
    return [unit(survey_panels, config=config), *runs]


def survey_panels(config: Config) -> Rows:
    """The belief about one variable at each step, one row per bin with mass."""
    return [
        {
            "method": panel.name,
            "step": step,
            "bin": place,
            "mass": round(mass, 6),
            "best": panel.best,
        }
        for panel in belief_paths(config)
        for step, survey in enumerate(panel.surveys.tolist())
        for place, mass in enumerate(survey)
        if mass > 0
    ]


@dataclass(frozen=True)
class BeliefPath:
    """One solver's belief about one variable, step by step."""

    name: str
    surveys: Tensor  # (steps, B) float32: row t is the belief after step t
    best: float  # accuracy of the best configuration seen


def belief_paths(config: Config) -> list[BeliefPath]:
    """The beliefs about the variable shown, for each solver; the default config is the paper's.

    Damping, steps, data and prior are the same for all. Runs continue after a problem is solved, so
    every panel has all steps.
    """
    graph = linear_graph([glass(config.size, config.num_inputs, seed=config.shown_problem)])
    settings: dict[str, Any] = {"damping": config.damping}
    most = config.samples * max(config.survey_samples)
    solvers: dict[str, Solver[Any]] = {
        EXACT: belief_propagation(closed_form(), **settings),
        f"SBP, {most} draws": belief_propagation(flip(most), **settings),
    }
    settings |= {"bins": config.bins, "watch": [config.shown_variable]}
    for count in config.survey_samples:
        solvers[tracks(count)] = s4p(flip(config.samples), survey_samples=count, **settings)
    return [BeliefPath(name, *_path(solver, graph, config)) for name, solver in solvers.items()]


def tracks(survey_samples: int) -> str:
    """The name of S4P with n survey samples in panels and tables."""
    return f"S4P, {survey_samples} track{'s' if survey_samples > 1 else ''}"


def _path(solver: Solver[Any], graph: FactorGraph, config: Config) -> tuple[Tensor, float]:
    """Beliefs of all steps, whether solved or not, and the best accuracy."""
    start, grid = Key(config.shown_problem), Grid(config.bins)
    state = solver.init(start, graph)
    surveys, best = [], 0.0
    active = torch.ones(graph.num_problems, dtype=torch.bool)
    accuracy = torch.zeros(graph.num_problems, dtype=torch.float64)
    for step in range(config.steps):
        key = start.at(step)
        state, info = solver.step(key, graph, state, Feedback(accuracy, active))
        found = graph.accuracy(solver.candidates(key, graph, state))
        accuracy, best = found[0], max(best, float(found.max()))
        watched = info.records.get("survey")
        belief = solver.log_odds(graph, state)[config.shown_variable]
        surveys.append(point_mass(grid, belief) if watched is None else watched[0])
    return torch.stack(surveys), best


def draw(config: Config, rows: Rows, columns: int) -> Figure:
    """One panel per method."""
    surveys = {}
    shown = [row for row in rows if "bin" in row]
    for name in distinct(shown, "method"):
        mine = pick(shown, method=name)
        image = np.zeros((config.steps, config.bins))
        steps, bins = (np.array(column(mine, part), dtype=int) for part in ("step", "bin"))
        image[steps, bins] = column(mine, "mass")
        surveys[f"{name}\nbest {column(mine, 'best')[0]:.2f}"] = image
    return survey_figure(surveys, columns)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Mean over problems, with the standard deviation."""
    numbers = pick(rows, family=FAMILY)
    lines = [
        (name, *cells(pick(numbers, method=name), ("best", "decoded", "last"), 3))
        for name in distinct(numbers, "method")
    ]
    title = f"Accuracy on {config.repeats} problems of glass: mean ± standard deviation"
    return [ResultTable(title, ("method", "best", "best decoded", "last"), tuple(lines))]


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """Better configurations by more survey samples, with and without scoring more often."""
    numbers = pick(rows, family=FAMILY)
    counts = sorted(config.survey_samples)
    few, many = (pick(numbers, survey_samples=count) for count in (counts[0], counts[-1]))
    best, decoded = (difference(few, many, ("repeat",), part) for part in ("best", "decoded"))
    rivals = {"BP": EXACT, "SBP": config.sampled}
    over, decoded_over = (
        {
            name: difference(pick(numbers, method=rival), many, ("repeat",), part)
            for name, rival in rivals.items()
        }
        for part in ("best", "decoded")
    )
    means = [mean(column(pick(numbers, survey_samples=count), "best")) for count in counts]
    ladder = ", ".join(f"{m:.3f} ({c})" for m, c in zip(means, counts, strict=True))
    words = "; ".join(
        f"minus {name} {over[name]} for the best of its tracks, {decoded_over[name]} with one "
        "score per step for both"
        for name in rivals
    )
    return [
        Claim(
            "As the number of survey samples grows, S4P finds better configurations.",
            f"Best accuracy by survey samples: {ladder}. From {counts[0]} to {counts[-1]} the best "
            f"gains {best}; the decoded configuration alone, with one score per step, {decoded}.",
            found_or_decoded(best, decoded),
        ),
        Claim(
            "As the number of survey samples grows, S4P can find better configurations which are "
            "inaccessible to BP.",
            f"S4P with {counts[-1]} survey samples, same steps: {words}.",
            found_or_decoded(over["SBP"], decoded_over["SBP"]),
        ),
    ]


EXPERIMENT = Experiment(
    "fig3",
    "Evolution of a survey",
    "The belief about one weight of one problem: steps from left to right, P(w = 1) from bottom to "
    "top, dark where the survey has its mass. Above each panel is the best training accuracy on "
    "this problem; the table has many problems.",
    FULL,
    QUICK,
    units,
    draw,
    tables,
    claims,
    columns=6,
    narrow=2,
)
