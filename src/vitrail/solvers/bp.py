"""Belief propagation with any update: exact or stochastic, flooding or in factor batches."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace

import torch
from torch import Tensor

from vitrail.checks import checked_number
from vitrail.graph import FactorGraph
from vitrail.numerics import EXACT_LIMIT, flags_fit, on_lattice, split_flags, with_flags
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import (
    PER_FACTOR,
    PER_PROBLEM,
    PER_VARIABLE,
    Feedback,
    Info,
    MessagePassing,
    StateT,
)
from vitrail.solvers.damping import Damping, Schedule, as_damping, damping_in_state
from vitrail.solvers.schedules import Batches, Order
from vitrail.updates import Update

PRIOR_SCALE = 0.1  # log-odds; enough to break the symmetry of a graph without information


@dataclass(frozen=True)
class BPState:
    """Only factor→variable messages are stored: a cavity is the belief minus the own message.

    A step in batches consumes the state: it writes rows of updated factors in place, because
    copying all messages would cost more than the step.
    """

    messages: tuple[Tensor, ...] = field(metadata=PER_FACTOR)  # (F, A) per block, on the lattice
    belief: Tensor = field(metadata=PER_VARIABLE)  # (V,) float64: prior + messages, exact
    prior: Tensor = field(metadata=PER_VARIABLE)  # (V,) float64, with symmetry breaking
    gamma: Tensor = field(metadata=PER_PROBLEM)  # (P,) float64: one minus the damping
    order: Order  # current shuffle of the factors


@dataclass(frozen=True)
class DampedSolver(MessagePassing[StateT]):
    """A solver with an update and damping, for all factors at once or in batches."""

    update: Update
    _: KW_ONLY
    damping: Damping | Schedule | float = 0.8
    batch: int | None = None
    prior_scale: float = PRIOR_SCALE

    def __post_init__(self) -> None:
        checked_number("prior_scale", self.prior_scale)
        as_damping(self.damping)
        Batches(self.batch)  # both raise errors

    @property
    def rule(self) -> Damping:
        """The damping as a rule."""
        return as_damping(self.damping)

    @property
    def batches(self) -> Batches:
        """The schedule of factors."""
        return Batches(self.batch)

    def with_damping_in_state(self) -> DampedSolver[StateT]:
        return replace(self, damping=damping_in_state(self.rule))

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


@dataclass(frozen=True)
class BeliefPropagation(DampedSolver[BPState]):
    """Belief propagation on any graph.

    belief = prior + Σ messages; cavity = belief − own message; message = update(cavities):
    equations 1 and 2 of the paper in log-odds. Damping acts on factor→variable messages only; the
    paper damps both directions, but the other one is not stored here.

    Args:
        update: How messages are computed, e.g. `flip(samples=5)` for the paper's SBP.
        damping: Share of the old message that is kept: a number, a function of the step, or
            `adaptive()`.
        batch: Factors updated per step in each problem; None updates all.
        prior_scale: Spread of the random prior (log-odds) that breaks symmetry; 0 for none.

    Examples:
        >>> from vitrail import factor_graph, perceptron, run
        >>> from vitrail.datasets import glass
        >>> from vitrail.updates import exact
        >>> data = glass(5, 11, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> run(belief_propagation(exact(), damping=0.5), graph).best_accuracy
        tensor([1.], dtype=torch.float64)
    """

    over_ranks = True

    def init(self, key: Key, graph: FactorGraph) -> BPState:
        prior = random_prior(key, graph, self.prior_scale)
        none = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        return BPState(
            tuple(
                torch.zeros(block.num_factors, block.arity, device=graph.device)
                for block in graph.blocks
            ),
            prior,
            prior,
            torch.full_like(none, self.rule.at(0)),
            self.batches.start(graph),
        )

    def step(
        self, key: Key, graph: FactorGraph, state: BPState, feedback: Feedback
    ) -> tuple[BPState, Info]:
        selected, order = self.batches.select(key, graph, state.order, feedback)
        gamma = self.rule.next(key.step, state.gamma, feedback.accuracy)
        moved, messages = torch.zeros_like(state.belief), list(state.messages)
        residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        forbidding: list[Tensor] = []
        starved = torch.zeros((), dtype=torch.int64, device=graph.device)
        evaluations = 0
        hits: list[int] = []
        # every block uses the beliefs at the start of the step
        for number, (block, index) in enumerate(zip(graph.blocks, selected, strict=True)):
            if index is not None and len(index) == 0:
                continue
            problem = graph.problem_of_factors[number]
            problem = problem if index is None else problem[index]
            result = self.update.sweep(
                key,
                block,
                state.belief,
                messages[number],
                gamma[problem],
                index,
            )
            moved += result.moved
            messages[number] = (
                result.messages
                if index is None
                else messages[number].index_copy_(0, index, result.messages)
            )
            residual.scatter_reduce_(0, problem, result.change.double(), "amax")
            if result.forbidding is not None:
                forbidding.append(result.forbidding)
            starved += result.starved.sum()
            evaluations += result.evaluations
            if result.min_hits is not None:
                hits.append(result.min_hits)
        info = Info(
            residual,
            evaluations,
            torch.zeros_like(residual, dtype=torch.bool),
            starved,
            min(hits, default=None),
        )
        if self.update.exact:
            ruled_out = sum(forbidding, moved.new_zeros(2, len(moved))) > 0
            moved, ruled_out, info = _reduced(graph, info, moved, ruled_out)
            contradiction = graph.over_variables(ruled_out.all(0)) > 0
            info = replace(info, contradiction=contradiction)
        else:
            (moved,), info = info.reduced(graph.world, moved)
        state = replace(
            state, messages=tuple(messages), belief=state.belief + moved, gamma=gamma, order=order
        )
        return state, info

    def log_odds(self, graph: FactorGraph, state: BPState) -> Tensor:
        return state.belief

    def shift_prior(self, state: BPState, by: Tensor) -> BPState:
        return replace(state, belief=state.belief + by, prior=state.prior + by)


belief_propagation = BeliefPropagation


def random_prior(key: Key, graph: FactorGraph, scale: float) -> Tensor:
    """The graph's prior plus Gaussian noise that breaks symmetry, (V,) float64 on the lattice."""
    noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
    return graph.log_prior + on_lattice(scale * noise)


def _reduced(
    graph: FactorGraph, info: Info, moved: Tensor, ruled_out: Tensor
) -> tuple[Tensor, Tensor, Info]:
    """Sums over ranks: changes of beliefs (V,), values ruled out (2, V), and the diagnostics.

    Ruled-out values are encoded in the bits that a sum of messages does not use, if these suffice.
    """
    world, largest = graph.world, 2 * EXACT_LIMIT * graph.everything.num_factors
    if world.size == 1:
        return moved, ruled_out, info
    if not flags_fit(largest, world.size):
        (moved,), info = info.reduced(world, moved)
        return moved, world.any(ruled_out), info
    (both,), info = info.reduced(world, with_flags(moved, ruled_out, world.size))
    return *split_flags(both, world.size), info
