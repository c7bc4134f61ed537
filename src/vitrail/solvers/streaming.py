"""Streaming: no message outlives its batch, so the state is one number a weight.

A batch's beliefs are the next batch's prior. The chance Z that an example is met is linear in each
p = P(w = 1), so that its message to a weight is

    log p̃(1)/p̃(0) = log (1 + (1 − p)·g)/(1 − p·g) ≈ g,      g = ∂ log Z/∂p

and one backward pass through `vitrail.nn.moments` gives the sum of a batch's messages to every
weight of a net of any depth. Nets of one layer may take the messages of an `Update` instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.graph import Dense, FactorGraph
from vitrail.nn.moments import log_chance, moments
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, MessagePassing
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order
from vitrail.updates import Update

FIRST_PACE = 0.3  # of the most: a narrow net may overshoot before the first two batches compare
SLACK = 0.2  # of a cosine: batches are small samples, and turn back a little at the best pace too
RESPONSE = 0.2  # how fast the pace follows: five batches that agree wholly make it e times as large
LARGEST_MOVE = 1.0  # log-odds that one batch may move a weight: no batch is a proof


@dataclass(frozen=True)
class StreamState:
    """Beliefs and the order of the epoch: nothing grows with examples times weights."""

    field: Tensor  # (V,) float32 log-odds: the start's noise and the messages of all batches
    prior: Tensor  # (V,) float32 log-odds
    messages: Tensor  # (V,) float32: the sum of the last batch's
    pace: Tensor  # (P,) float32: the share of a batch's messages that is taken
    order: Order  # the shuffle of the factors in force


@dataclass(frozen=True)
class Streaming(MessagePassing[StreamState]):
    """Batch after batch, at P(w = 1) = σ(prior + field),

        field ← (1 − forget·batch/M)·field + pace·Σ messages,     M the number of examples.

    Before each step the field is multiplied by the growth of beta since the last: what earlier
    batches said polarises, new messages count as before.

    The messages of a batch do not know of each other, so that their plain sum overshoots where
    examples are alike or a net is narrow. Each batch shows whether the one before it did: `pace`
    grows while they agree and falls when they turn back,

        pace ← min(most, pace·exp(RESPONSE·(SLACK + cos(Σ messages, Σ messages before)))).

    A step takes `batches` of them, so that what the loop does after a step costs little beside it.
    """

    update: Update | None
    batch: int
    batches: int
    beta: Schedule | None
    most: float
    forget: float
    first: float

    @property
    def over_ranks(self) -> bool:
        return True

    def init(self, key: Key, graph: FactorGraph) -> StreamState:
        if self.update is None:
            _check(graph)
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        field = (self.first * noise).to(torch.float32)
        return StreamState(
            field,
            graph.log_prior.to(torch.float32),
            torch.zeros_like(field),
            field.new_full((graph.num_problems,), FIRST_PACE * self.most),
            self._schedule.start(graph),
        )

    def step(
        self, key: Key, graph: FactorGraph, state: StreamState, feedback: Feedback
    ) -> tuple[StreamState, Info]:
        share = self.forget * (self.batch / graph.factors_per_problem).clamp(max=1.0)
        kept = torch.where(feedback.active, 1 - share, 1.0).to(torch.float32)
        grown = torch.where(feedback.active, self._growth(key.step), 1.0).to(torch.float32)
        field, order = _spread(grown, graph) * state.field, state.order
        last, pace, evaluations = state.messages, state.pace, 0
        for number in range(key.step * self.batches, (key.step + 1) * self.batches):
            now = key.at(number)
            selected, order = self._schedule.select(now, graph, order, feedback)
            log_odds = state.prior + field
            total = torch.zeros_like(field, dtype=torch.float64)
            seen = 0
            for block, index in zip(graph.blocks, selected, strict=True):
                if index is not None and len(index):
                    total += self._messages(now, block.select(index), log_odds)
                    seen += len(index)
            total, count = graph.world.sum(total, torch.tensor(seen))
            messages = total.to(torch.float32)
            evaluations += int(count)
            agreement = _cosine(graph, messages, last, torch.sigmoid(log_odds))
            pace = (pace * torch.exp(RESPONSE * (agreement + SLACK))).clamp(max=self.most)
            moved = (_spread(pace, graph) * messages).clamp(-LARGEST_MOVE, LARGEST_MOVE)
            field = (_spread(kept, graph) * field if self.forget else field) + moved
            last = messages
        after = replace(state, field=field, messages=last, pace=pace, order=order)
        change = (self.marginals(graph, after) - self.marginals(graph, state)).abs()
        residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        residual.scatter_reduce_(0, graph.problem, change, "amax")
        none = torch.zeros_like(residual, dtype=torch.bool)
        return after, Info(residual, evaluations, none, records={"pace": pace})

    def log_odds(self, graph: FactorGraph, state: StreamState) -> Tensor:
        return (state.prior + state.field).double()

    def shifted(self, state: StreamState, by: Tensor) -> StreamState:
        return replace(state, prior=state.prior + by.to(torch.float32))

    def renewed(
        self, graph: FactorGraph, state: StreamState, fresh: StreamState, problems: Tensor
    ) -> StreamState:
        here = problems[graph.problem]
        return replace(
            state,
            field=torch.where(here, fresh.field, state.field),
            prior=torch.where(here, fresh.prior, state.prior),
            messages=torch.where(here, fresh.messages, state.messages),
            pace=torch.where(problems, fresh.pace, state.pace),
        )

    def gamma(self, state: StreamState) -> Tensor:
        return state.pace.double()

    def with_gamma(self, state: StreamState, gamma: Tensor) -> StreamState:
        return replace(state, pace=gamma.to(torch.float32))

    def with_held_damping(self) -> Streaming:
        raise ValueError("streaming sets its own pace, which cannot be held; leave steady out")

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return (self._schedule.epoch_steps(graph) + self.batches - 1) // self.batches

    @property
    def _schedule(self) -> Batches:
        return Batches(self.batch)

    def _growth(self, step: int) -> float:
        """By how much beta has grown since the step before."""
        return self.beta(step) / self.beta(step - 1) if self.beta is not None and step else 1.0

    def _messages(self, key: Key, factors: Factors, log_odds: Tensor) -> Tensor:
        """The sum of all messages to each variable, (V,)."""
        if self.update is None:
            return _by_moments(factors, log_odds)
        none = log_odds.new_zeros(factors.num_factors, factors.arity)
        undamped = none.new_ones(factors.num_factors, dtype=torch.float64)
        swept = self.update.sweep(key, factors, log_odds.double(), none, undamped, False)
        return swept.moved


def _by_moments(factors: Factors, log_odds: Tensor) -> Tensor:
    """Σ ∂ log Z/∂p over the factors, (V,)."""
    assert isinstance(factors, Network)
    total = torch.zeros_like(log_odds)
    starts = factors.scope.first()
    for start in starts[:1].tolist() if factors.scope.shared else starts.unique().tolist():
        mine = (
            factors if factors.scope.shared else factors.select((starts == start).nonzero()[:, 0])
        )
        here = slice(start, start + factors.arity)
        with torch.enable_grad():
            probability = torch.sigmoid(log_odds[here]).requires_grad_()
            outputs = moments(mine.program, probability, mine.inputs)
            log_z = mine.log_potential_mean(log_chance(outputs, mine.labels).double())
            (gradient,) = torch.autograd.grad((mine.weight * log_z).sum(), probability)
        total[here] = gradient
    return total


def _cosine(graph: FactorGraph, one: Tensor, other: Tensor, probability: Tensor) -> Tensor:
    """Cosine in each problem, (P,) float32, each weight counting by its variance; 0 for nothing."""
    variance = probability * (1 - probability)
    dots = [
        _per_problem(graph, a * b * variance) for a, b in ((one, other), (one, one), (other, other))
    ]
    return dots[0] / (dots[1].sqrt() * dots[2].sqrt()).clamp(min=torch.finfo(torch.float32).tiny)


def _per_problem(graph: FactorGraph, values: Tensor) -> Tensor:
    if graph.num_problems == 1:  # a sum is an order faster than adding by index
        return values.sum()[None]
    return graph.over_variables(values).to(torch.float32)


def _spread(values: Tensor, graph: FactorGraph) -> Tensor:
    """(P,) to the variables of each problem, broadcasting."""
    return values if graph.num_problems == 1 else values[graph.problem]


def _check(graph: FactorGraph) -> None:
    for block in graph.blocks:
        if not isinstance(block, Network) or not isinstance(block.scope, Dense):
            raise TypeError(
                f"streaming by moments needs nets whose weights are a run of variables, got "
                f"{type(block).__name__} factors of another kind; pass update=flip() or counting()"
            )


def streaming(
    update: Update | None = None,
    *,
    batch: int = 128,
    batches: int = 16,
    beta: Schedule | None = None,
    step: float = 1.0,
    forget: float = 0.0,
    first: float = 1.0,
) -> Streaming:
    """Message passing for data and nets of any size: beliefs are all that is kept.

    Args:
        update: Where messages come from, e.g. `closed_form("gaussian")` for nets of one layer; None
            is moments, for nets of any depth.
        batch: Examples whose messages are added at once.
        batches: How many batches make a step.
        beta: Inverse temperature that beliefs are annealed by, a function of the step: as it grows,
            so do they. `geometric(1, 5, steps)` serves the posterior and one net alike.
        step: The most of a batch's messages that is taken; 1 is the sum of belief propagation.
        forget: 1 makes beliefs fade so that every example counts about once; 0 adds up all epochs.
        first: Spread of the random start, log-odds; more for few examples.

    Returns:
        The solver, for `run`.

    Examples:
        >>> from vitrail.solvers import geometric
        >>> streaming(beta=geometric(1.0, 5.0, steps=600)).batch
        128
    """
    for name, value in (("batch", batch), ("batches", batches)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not (step > 0 and math.isfinite(step)):
        raise ValueError(f"step must be a positive number, got {step}")
    if not 0 <= forget <= 1:
        raise ValueError(f"forget must be from 0 to 1, got {forget}")
    if first < 0:
        raise ValueError(f"first must be at least 0, got {first}")
    return Streaming(update, batch, batches, beta, step, forget, first)
