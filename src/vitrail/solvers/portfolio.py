"""The portfolio: from marginals to the best weights anyone can find.

    sbp          a few epochs of sampled belief propagation: easy problems end here
    search       a short bit-flip search from there: below 0.6 examples a weight it often suffices
    reinforced   belief propagation that commits, restarted more slowly where it failed
    s4p          surveys with decimation, where they fit into memory
    polish       bit-flip search from everything the others have found

Each stage works only on the problems that are still unsatisfied. How long each may take, the
update and the batches are chosen from the number of factors and their arity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from vitrail.decode import best_of, decoded
from vitrail.factors import Perceptron
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.annealed import annealed, geometric
from vitrail.solvers.base import Solver
from vitrail.solvers.bp import belief_propagation
from vitrail.solvers.damping import held
from vitrail.solvers.decimation import decimated, decimation_steps
from vitrail.solvers.flip_search import flip_searches
from vitrail.solvers.polish import Polish, PolishState, polish
from vitrail.solvers.reinforcement import linear, reinforced
from vitrail.solvers.run import Solution
from vitrail.solvers.s4p import s4p
from vitrail.solvers.stages import Stage, Start
from vitrail.solvers.steady import steady
from vitrail.updates import Update, closed_form, counting, flip

NAMES = ("sbp", "search", "reinforced", "s4p", "polish")

CONVOLUTION_ARITY = 40  # up to here the exact law of a sum costs no more than its Gaussian saves
SURVEY_EDGES = 20_000  # edges with surveys: 100 tracks of 5 draws each a step is a second's work
CROWDED = 256  # factors beyond which all at once overshoot, where they outnumber the variables
CAPACITY = 0.833  # random perceptrons have no solution beyond (Krauth and Mézard 1989)
SOFT = (2.0, 4.0)  # beta to work at where no solution is to be expected, from first to last step
SOFTER = (0.5, 2.0)  # the same in batches, whose first factors would otherwise settle everything
MOST_BATCHES = 64  # by then marginals of crowded problems know what polish needs as a start
LINEAR_FLIPS, NETWORK_FLIPS, OTHER_FLIPS = 1_000_000, 200_000, 20_000  # by what a flip costs
SEARCH_STEPS = 8  # between them the clock, the budget and Ctrl-C are looked at
DECODED_EDGES = 100_000  # beyond, decoding block after block would cost as much as polishing


def portfolio(
    graph: FactorGraph,
    stages: Sequence[str] = NAMES,
    *,
    update: Update | None = None,
    rate: float | None = None,
    attempts: int = 4,
    flips: int | None = None,
) -> tuple[Stage, ...]:
    """The stages for a graph, for `run_stages`.

    stages: which of them, in this order. update: messages of the second stage; None takes the
    closed form for perceptrons and sampled flips or counts for other networks. rate: how fast
    the first reinforced attempt commits; None follows the crowding. flips: proposals of search
    and polish each, for every problem; None takes 1,000,000 for perceptrons, 200,000 for other
    networks of this package's layers and 20,000 for anything else.
    """
    unknown = [name for name in stages if name not in NAMES]
    if unknown or not stages:
        raise ValueError(f"stages are any of {', '.join(NAMES)}, got {list(stages)}")
    shape = Shape(graph)
    if flips is None:
        compiled = all(search.compiled for search in flip_searches(graph))
        network_flips = NETWORK_FLIPS if compiled else OTHER_FLIPS
        flips = LINEAR_FLIPS if shape.linear else network_flips
    made = {
        "sbp": lambda: _sbp(shape),
        "search": lambda: None if shape.batch else _search("search", shape, flips),
        "reinforced": lambda: _reinforced(shape, update, rate, attempts),
        "s4p": lambda: _s4p(shape),
        "polish": lambda: _search("polish", shape, flips),
    }
    built = [made[name]() for name in NAMES if name in stages]
    return tuple(stage for stage in built if stage is not None)


class Shape:
    """What the choices look at: the largest problem of a graph."""

    def __init__(self, graph: FactorGraph) -> None:
        counts = torch.stack(
            [
                torch.bincount(graph.factor_problem(block), minlength=graph.num_problems)
                for block in graph.blocks
            ]
        ).sum(0)
        self.factors = int(counts.max())
        self.variables = int(torch.bincount(graph.problem).max())
        self.edges = sum(block.num_factors * block.arity for block in graph.blocks)
        self.arity = max(block.arity for block in graph.blocks)
        self.linear = all(isinstance(block, Perceptron) for block in graph.blocks)
        self.cheap_flips = all(block.cheap_flips for block in graph.blocks)
        self.hard = all(bool(torch.isinf(block.beta).all()) for block in graph.blocks)

    @property
    def crowding(self) -> float:
        """Factors per variable."""
        return self.factors / self.variables

    @property
    def batch(self) -> int | None:
        """Factors a step: all of them, or few enough that their messages do not overshoot."""
        crowded = self.factors > max(CROWDED, 2 * self.variables)
        return (128 if self.factors > 4096 else 64) if crowded else None

    def softened(self, solver: Solver[Any], steps: int) -> Solver[Any]:
        """The solver, at a finite beta where hard factors are too many to be satisfied."""
        if not self.hard or self.crowding <= CAPACITY:
            return solver
        return annealed(solver, geometric(*(SOFT if self.batch is None else SOFTER), steps))

    @property
    def epoch_steps(self) -> int:
        return 1 if self.batch is None else math.ceil(self.factors / self.batch)

    @property
    def score_every(self) -> int:
        """Steps between scorings, so that scoring costs about as much as stepping."""
        return max(1, min(self.epoch_steps, MOST_BATCHES) // 16)

    def sampled(self, samples: int) -> Update:
        """Flips where they cost O(1), else counts of as many draws as a flip would cost."""
        return flip(samples) if self.cheap_flips else counting(max(64, 8 * samples), least_hits=2)


def _sbp(shape: Shape) -> Stage | None:
    if shape.batch is not None:
        return None  # the second stage does the same in batches
    solver = shape.softened(belief_propagation(shape.sampled(5), damping=0.2), 20)
    return Stage("sbp", solver, 20)


def _reinforced(shape: Shape, update: Update | None, rate: float | None, attempts: int) -> Stage:
    if update is None:
        update = shape.sampled(16)
        if shape.linear:
            small = shape.arity <= CONVOLUTION_ARITY
            update = closed_form("convolution" if small else "gaussian")
    if shape.batch is not None:
        # marginals of so many factors commit by themselves, and batches keep them from jumping
        steps = min(4 * shape.epoch_steps, MOST_BATCHES)
        solver = belief_propagation(update, damping=0.05, batch=shape.batch)
        return Stage(
            "reinforced", shape.softened(solver, steps), steps, score_every=shape.score_every
        )
    rate = rate or _rate(shape)
    if shape.crowding > CAPACITY:
        attempts = 1  # a slower one would not satisfy everything either
    elif not update.exact:
        attempts = min(attempts, 2)  # noise leaves a violation or two, which polish repairs
    inner = steady(belief_propagation(update, damping=held(1.0 if update.exact else 0.3)))
    share = linear(rate)
    solver = reinforced(shape.softened(inner, share.steps), share, attempts=attempts)
    steps = sum(math.ceil(share.steps * solver.slower**k) for k in range(attempts))
    return Stage("reinforced", solver, steps, score_every=max(1, round(0.005 / rate)))


def _rate(shape: Shape) -> float:
    """Slower the closer to capacity; tiny problems are over before that matters."""
    return 0.02 if shape.variables <= 64 else 0.002 if shape.crowding <= 0.65 else 0.001


def _s4p(shape: Shape) -> Stage | None:
    if shape.edges > SURVEY_EDGES:
        return None
    surveys = s4p(shape.sampled(5), survey_samples=50, bins=101)
    solver = decimated(shape.softened(surveys, 20), fraction=0.1, rest=2)
    return Stage("s4p", solver, decimation_steps(solver))


def _search(name: str, shape: Shape, flips: int) -> Stage:
    """Chains that agree in the end, or, where solutions have nothing in common, few long ones."""
    agree = shape.crowding > CAPACITY
    solver = polish(
        -(-flips // SEARCH_STEPS), steps=SEARCH_STEPS, chains=6 if agree else 2, agree=agree
    )
    return Stage(name, solver, SEARCH_STEPS, start=from_best(solver))


def from_best(solver: Polish) -> Start:
    """Chains begin at the best of what was found and what the marginals decode to together."""

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> PolishState:
        edges = sum(block.num_factors * block.arity for block in graph.blocks)
        decode = decoded if edges <= DECODED_EDGES else best_of
        joint = decode(key, graph, torch.logit(solution.marginals), 16)
        return solver.start(key, graph, torch.stack([solution.best, joint, solution.weights]))

    return start
