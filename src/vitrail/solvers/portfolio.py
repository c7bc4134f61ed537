"""The portfolio: stages from marginals to the best weights.

    sbp          a few epochs of sampled belief propagation, in batches of factors
    search       a short bit-flip search; it often suffices below 0.6 examples per weight
    amp          reinforced approximate message passing, for random perceptrons
    reinforced   reinforced belief propagation, restarted with a slower schedule where it failed
    s4p          survey propagation with decimation, where surveys fit into memory
    polish       bit-flip search from the configurations of the earlier stages

Each stage runs only on problems that are still unsolved. Where factors are soft, or far outnumber
the variables, only sbp and polish run. Steps, updates and batches depend on the number of factors
and their arity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vitrail.decode import best_of, decoded
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.amp import AMP_MAX_SHARE, approximate_message_passing
from vitrail.solvers.annealed import annealed, geometric
from vitrail.solvers.base import MessagePassing
from vitrail.solvers.bp import belief_propagation
from vitrail.solvers.decimation import decimated, decimation_steps
from vitrail.solvers.flip_search import flip_searches
from vitrail.solvers.polish import Polish, PolishState, polish
from vitrail.solvers.reinforcement import linear, reinforced
from vitrail.solvers.run import Solution
from vitrail.solvers.s4p import s4p
from vitrail.solvers.stages import Stage, Start
from vitrail.solvers.steady import steady
from vitrail.updates import Update, closed_form, counting, flip

NAMES = ("sbp", "search", "amp", "reinforced", "s4p", "polish")

CONVOLUTION_ARITY = 40  # up to this arity the exact distribution of a sum is cheap enough
SURVEY_EDGES = 20_000  # edges with surveys: a step of 100 tracks of 5 draws takes about a second
OVERCONSTRAINED = 256  # factors beyond which nothing commits, where they outnumber the variables
AMP_SCORE_EVERY = 5  # steps between two scorings of all copies, each a third of a step's work
MIN_SBP_STEPS = 20  # few factors make one batch, and beliefs need several steps to converge
CAPACITY = 0.833  # random perceptrons have no solution above (Krauth and Mézard 1989)
SOFT_BETAS = (2.0, 4.0)  # first and last beta where no solution is expected
OVERCONSTRAINED_BETAS = (0.5, 2.0)  # the first batches would otherwise fix every belief
FIRST_BETA_SHARE = 0.1  # initial share of beta, where there are many soft factors
MANY_FACTORS = 4000  # above, larger batches and smaller steps keep beliefs from oscillating
MIN_HITS = 2  # draws behind a counted message; with fewer, flips recompute it
SCORES_PER_EPOCH = 8  # scorings of all factors per epoch: less work than the messages
LINEAR_FLIPS, NETWORK_FLIPS, OTHER_FLIPS = 1_000_000, 200_000, 20_000  # by the cost of a flip
HARD_HEAT = 10.0  # heat of polish where all factors must be satisfied: starts may be lost
SOFT_HEAT = 3.0  # heat where errors are allowed: nets near the marginals generalise best
DECODED_EDGES = 100_000  # above, decoding block by block would cost as much as polishing


def portfolio(
    graph: FactorGraph | Shape,
    stages: Sequence[str] = NAMES,
    *,
    passing: MessageOptions | None = None,
    update: Update | None = None,
    rate: float | None = None,
    attempts: int = 4,
    flips: int | None = None,
    rounds: int = 8,
) -> tuple[Stage, ...]:
    """The stages that suit a graph, or the shape of one, for `run_stages`.

    Args:
        graph: The problems, or their `Shape`.
        stages: Any of "sbp", "search", "amp", "reinforced", "s4p" and "polish"; they run in this
            order, and stages that do not suit the graph are left out.
        passing: Options of the first stage; None is `default_message_options`.
        update: Messages of the reinforced stage; None is the closed form for perceptrons and
            sampled flips or counts for other networks.
        rate: Growth of the share in the first attempts of amp and reinforced; None chooses it by
            the number of factors per variable.
        attempts: Attempts of these stages, each slower than the previous one.
        flips: Proposals of search and of polish, per problem; None is 1,000,000 for perceptrons,
            200,000 for other networks of this package's layers and 20,000 for anything else.
        rounds: Steps they are divided into; budgets and Ctrl-C are checked between steps.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> data = glass(5, 11, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> [stage.name for stage in portfolio(graph)]
        ['sbp', 'search', 'reinforced', 's4p', 'polish']
    """
    unknown = [name for name in stages if name not in NAMES]
    if unknown or not stages:
        raise ValueError(f"stages are any of {', '.join(NAMES)}, got {list(stages)}")
    shape = graph if isinstance(graph, Shape) else Shape.of(graph)
    if flips is None:
        compiled = isinstance(graph, Shape) or all(s.compiled for s in flip_searches(graph))
        network_flips = NETWORK_FLIPS if compiled else OTHER_FLIPS
        flips = LINEAR_FLIPS if shape.linear else network_flips
    made = {
        "sbp": lambda: _sbp(
            shape, passing or default_message_options(shape.factors, shape.cheap_flips)
        ),
        "search": lambda: _search(flips, rounds),
        "amp": lambda: _amp(shape, rate, attempts),
        "reinforced": lambda: reinforced_stage(shape, update, rate, attempts),
        "s4p": lambda: _s4p(shape),
        "polish": lambda: _polish(shape, flips, rounds),
    }
    useful = NAMES if shape.commits else ("sbp", "polish")
    built = [made[name]() for name in NAMES if name in stages and name in useful]
    kept = tuple(stage for stage in built if stage is not None)
    if not kept:
        raise ValueError(
            f"none of the stages {list(stages)} suits this graph of {shape.factors} factors on "
            f"{shape.variables} variables; add sbp or polish"
        )
    return kept


@dataclass(frozen=True)
class MessageOptions:
    """Plain message passing: every factor `epochs` times, all at once or in batches."""

    update: Update  # how messages are computed
    damping: float  # share of the old message that is kept
    batch: int | None  # factors per step; None is all of them
    epochs: int  # updates per factor

    def steps(self, num_factors: int) -> int:
        """Steps in which every factor is updated `epochs` times."""
        return max(1, self.epochs * math.ceil(num_factors / (self.batch or num_factors)))

    def score_every(self, num_factors: int) -> int:
        """Steps between two scorings of all factors."""
        return max(1, self.steps(num_factors) // (self.epochs * SCORES_PER_EPOCH))


def default_message_options(num_factors: int, cheap_flips: bool) -> MessageOptions:
    """Message options for problems with this number of factors.

    Updating many factors at once overshoots, so they are updated in batches. The update samples
    flips where a flip costs O(1), otherwise counts, which are noisier and get more damping for many
    factors.
    """
    if num_factors > MANY_FACTORS:
        counted = MessageOptions(counting(128, least_hits=MIN_HITS), 0.95, 128, 1)
        return MessageOptions(flip(5), 0.9, 128, 1) if cheap_flips else counted
    update = flip(5) if cheap_flips else counting(64, least_hits=MIN_HITS)
    return MessageOptions(
        update, 0.8, 32, max(5, math.ceil(MIN_SBP_STEPS / math.ceil(num_factors / 32)))
    )


@dataclass(frozen=True)
class Shape:
    """Sizes of the largest problem of a graph, by which stages are chosen."""

    factors: int
    variables: int
    edges: int  # of all problems
    arity: int
    weight: float  # of all factors together
    linear: bool  # whether all factors are perceptrons
    cheap_flips: bool
    hard: bool  # whether every factor must be satisfied

    @staticmethod
    def of(graph: FactorGraph) -> Shape:
        return Shape(
            factors=int(graph.factors_per_problem.max()),
            variables=int(graph.variables_per_problem.max()),
            edges=sum(block.num_factors * block.arity for block in graph.blocks),
            arity=max(block.arity for block in graph.blocks),
            weight=float(graph.everything.weight_per_problem.max()),
            linear=all(block.perceptron_low is not None for block in graph.blocks),
            cheap_flips=all(block.cheap_flips for block in graph.blocks),
            hard=all(bool(torch.isinf(block.beta).all()) for block in graph.blocks),
        )

    @property
    def density(self) -> float:
        """Factors per variable."""
        return self.factors / self.variables

    @property
    def overconstrained(self) -> bool:
        """Whether there are too many factors per variable to satisfy nearly all of them."""
        return self.factors > max(OVERCONSTRAINED, 2 * self.variables)

    @property
    def commits(self) -> bool:
        """Whether beliefs should commit: all factors are hard, and nearly all can be satisfied."""
        return self.hard and not self.overconstrained

    def with_annealing(self, solver: MessagePassing[Any], steps: int) -> MessagePassing[Any]:
        """The solver with rising beta, where not all factors can be satisfied.

        At full beta the first batches would fix beliefs before the other factors are seen.
        """
        if not self.hard:
            many = self.weight > max(OVERCONSTRAINED, 2 * self.variables)
            rising = geometric(FIRST_BETA_SHARE, 1.0, steps)
            return annealed(solver, rising, relative=True) if many else solver
        if self.density <= CAPACITY:
            return solver
        return annealed(
            solver,
            geometric(*(OVERCONSTRAINED_BETAS if self.overconstrained else SOFT_BETAS), steps),
        )

    def sampled_update(self, samples: int) -> Update:
        """Flips where one costs O(1), otherwise counts of as many draws as a flip would cost."""
        counted = counting(max(64, 8 * samples), least_hits=MIN_HITS)
        return flip(samples) if self.cheap_flips else counted


def _sbp(shape: Shape, passing: MessageOptions) -> Stage:
    steps, every = passing.steps(shape.factors), passing.score_every(shape.factors)
    solver = belief_propagation(passing.update, damping=passing.damping, batch=passing.batch)
    return Stage("sbp", shape.with_annealing(solver, steps), steps, score_every=every)


def reinforced_stage(
    shape: Shape, update: Update | None = None, rate: float | None = None, attempts: int = 4
) -> Stage:
    """Reinforced belief propagation, restarted with a slower schedule where it failed."""
    if update is None:
        update = shape.sampled_update(16)
        if shape.linear:
            small = shape.arity <= CONVOLUTION_ARITY
            update = closed_form("convolution" if small else "gaussian")
    rate = rate or _rate(shape)
    if shape.density > CAPACITY:
        attempts = 1  # a slower attempt would not satisfy everything either
    elif not update.exact:
        attempts = min(attempts, 2)  # noise leaves a few violations, which polish repairs
    inner = steady(belief_propagation(update, damping=0.0 if update.exact else 0.7))
    share = linear(rate)
    solver = reinforced(shape.with_annealing(inner, share.steps), share, attempts=attempts)
    steps = sum(math.ceil(share.steps * solver.slower**k) for k in range(attempts))
    every = max(1, round(0.005 / rate))
    return Stage("reinforced", solver, steps, score_every=every, marginals=False)


def _amp(shape: Shape, rate: float | None, attempts: int) -> Stage | None:
    """Approximate message passing, where sums are long and a solution is expected."""
    if not shape.linear or shape.arity <= CONVOLUTION_ARITY or shape.density > CAPACITY:
        return None
    share = linear(rate or _rate(shape), most=AMP_MAX_SHARE)
    solver = approximate_message_passing(share)
    steps = sum(math.ceil(share.steps * solver.slower**k) for k in range(attempts))
    return Stage("amp", solver, steps, score_every=AMP_SCORE_EVERY, marginals=False)


def _rate(shape: Shape) -> float:
    """Slower near capacity; tiny problems are solved before that matters."""
    return 0.02 if shape.variables <= 64 else 0.002 if shape.density <= 0.65 else 0.001


def _s4p(shape: Shape) -> Stage | None:
    if shape.edges > SURVEY_EDGES:
        return None
    surveys = s4p(shape.sampled_update(5), survey_samples=50, bins=101)
    solver = decimated(shape.with_annealing(surveys, 20), fraction=0.1, rest=2)
    return Stage("s4p", solver, decimation_steps(solver), marginals=False)


def _search(flips: int, rounds: int) -> Stage:
    """Few long chains: below capacity there are many solutions with nothing in common."""
    solver = polish(-(-flips // rounds), steps=rounds, chains=2, agree=False)
    return Stage("search", solver, rounds, start=from_best(solver), marginals=False)


def _polish(shape: Shape, flips: int, rounds: int) -> Stage:
    """Polish, from a lower temperature where factors are soft."""
    heat = HARD_HEAT if shape.hard else SOFT_HEAT
    solver = polish(-(-flips // rounds), steps=rounds, heat=heat)
    return Stage("polish", solver, rounds, start=from_best(solver), marginals=False)


def from_best(solver: Polish) -> Start:
    """Start of chains at the best configuration, the joint decoding and the last decoding."""

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> PolishState:
        edges = sum(block.num_factors * block.arity for block in graph.blocks)
        decode = decoded if edges <= DECODED_EDGES else best_of
        joint = decode(key, graph, torch.logit(solution.marginals), 16)
        return solver.start(key, graph, torch.stack([solution.best, joint, solution.weights]))

    return start
