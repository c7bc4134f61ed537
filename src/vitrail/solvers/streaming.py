"""Streaming: no message outlives its batch, so the state is one number per weight.

A batch's beliefs are the next batch's prior. The probability Z that an example is met is linear in
each p = P(w = 1), so that its message to a weight is

    log p̃(1)/p̃(0) = log (1 + (1 − p)·g)/(1 − p·g) ≈ g,      g = ∂ log Z/∂p

and one backward pass through `vitrail.nn.moments` gives the sum of a batch's messages to every
weight of a net of any depth. Nets of one layer may take the messages of an `Update` instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.nn.moments import are_bipolar, log_probability, moments
from vitrail.random import Key, Stream, normal
from vitrail.scopes import Dense
from vitrail.solvers.base import Feedback, Info, MessagePassing
from vitrail.solvers.damping import Schedule
from vitrail.solvers.replay import Replay, replay
from vitrail.solvers.schedules import Batches, Order
from vitrail.updates import Update

Part = tuple[Factors, Tensor | None]
"""Factors, and which of them (f,) int64; None is all."""

REACH = 0.5  # log-odds that the likelihood is looked ahead for its curvature, at most


@dataclass(frozen=True)
class StreamState:
    """Beliefs and the order of the epoch: nothing grows with examples times weights."""

    field: Tensor  # (V,) float32 log-odds: the start's noise and the messages of all batches
    prior: Tensor  # (V,) float32 log-odds
    beta: Tensor  # (P,) float32: the inverse temperature of the last step
    pace: Tensor  # (P,) float32: the share of the last batch's messages that was taken
    order: Order  # the shuffle of the factors in force


@dataclass(frozen=True)
class Streaming(MessagePassing[StreamState]):
    """Batch after batch, at P(w = 1) = σ(prior + beta·field),

        field ← (1 − forget·batch/M)·field + pace·Σ messages,     M the number of examples.

    The messages of a batch do not know of each other, so that their plain sum overshoots where
    examples are alike or a net is narrow. The batch itself says how far its move is right: with
    L(t) the log-likelihood of its examples when a share t of the move is made,

        L(t) ≈ L(0) + L'(0)·t − c·t²,      pace = step·min(1, L'(0)/(2c)).

    L'(0) follows from the messages; c takes one forward pass at a small t. The messages of an
    `Update` come without a likelihood, and are taken as they are: pace = step.

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
            field.new_full((graph.num_problems,), self._beta(0)),
            field.new_full((graph.num_problems,), self.most),
            self._schedule.start(graph),
        )

    def step(
        self, key: Key, graph: FactorGraph, state: StreamState, feedback: Feedback
    ) -> tuple[StreamState, Info]:
        share = self.forget * (self.batch / graph.factors_per_problem).clamp(max=1.0)
        kept = torch.where(feedback.active, 1 - share, 1.0).to(torch.float32)
        now = replace(state, beta=torch.where(feedback.active, self._beta(key.step), state.beta))
        evaluations = 0
        some = feedback.all_active() or bool(feedback.active.any())
        for number in range(key.step * self.batches, (key.step + some) * self.batches):
            selected, order = self._schedule.select(key.at(number), graph, now.order, feedback)
            parts = [
                (block, index)
                for block, index in zip(graph.blocks, selected, strict=True)
                if index is None or len(index)
            ]
            after = self._moved(key.at(number), graph, parts, now)
            if self.forget:
                faded = after.field - (1 - _spread(kept, graph)) * now.field
                after = replace(after, field=faded)
            now = replace(after, order=order)
            evaluations += sum(
                block.num_factors if index is None else len(index) for block, index in parts
            )
        if graph.world.size > 1:
            evaluations = int(graph.world.sum(torch.tensor(evaluations))[0])
        change = (self.marginals(graph, now) - self.marginals(graph, state)).abs()
        residual = _largest(graph, change)
        none = torch.zeros_like(residual, dtype=torch.bool)
        return now, Info(residual, evaluations, none, records={"pace": now.pace})

    def absorb(
        self, key: Key, graph: FactorGraph, factors: Sequence[Factors], state: StreamState
    ) -> StreamState:
        """The state after one batch of factors that need not be of a larger graph.

        For rows that are read as they come: `key.step` numbers the batches, and beta follows it.
        `graph` says which variables there are. Nothing is forgotten.
        """
        now = replace(state, beta=torch.full_like(state.beta, self._beta(key.step)))
        return self._moved(key, graph, [(part, None) for part in factors], now)

    def _moved(
        self, key: Key, graph: FactorGraph, parts: Sequence[Part], now: StreamState
    ) -> StreamState:
        if self.update is None:
            factors = [block if rows is None else block.select(rows) for block, rows in parts]
            messages, pace = self._by_moments(graph, factors, now)
        else:
            pace = torch.full_like(now.pace, self.most)
            messages = self._by_update(key, graph, parts, now)
        return replace(now, field=now.field + _spread(pace, graph) * messages, pace=pace)

    def log_odds(self, graph: FactorGraph, state: StreamState) -> Tensor:
        return (state.prior + _spread(state.beta, graph) * state.field).double()

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
            beta=torch.where(problems, fresh.beta, state.beta),
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

    def _beta(self, step: int) -> float:
        return 1.0 if self.beta is None else self.beta(step)

    def _by_moments(
        self, graph: FactorGraph, factors: Sequence[Factors], now: StreamState
    ) -> tuple[Tensor, Tensor]:
        """Σ ∂ log Z/∂p over the batch, (V,), and the share of it that is right, (P,)."""
        numbers = now.prior, now.field, now.beta
        if _replayable(graph, factors, self.batch):
            (part,) = factors
            assert isinstance(part, Network)
            known = graph.once(_replay, self.most, self.batch)
            if known is not None:
                messages, pace = known(*_batch(part), *numbers)
                return messages, pace.clone()  # the state keeps the pace
        return _messages(graph, factors, self.most, *numbers)

    def _by_update(
        self, key: Key, graph: FactorGraph, parts: Sequence[Part], now: StreamState
    ) -> Tensor:
        """The sum of an update's messages to each variable, (V,) float32."""
        assert self.update is not None
        log_odds = self.log_odds(graph, now)
        total = torch.zeros_like(now.field, dtype=torch.float64)
        for block, rows in parts:
            total += self.update.total(key, block, log_odds, rows)
        (total,) = graph.world.sum(total)
        return total.to(torch.float32)


def _messages(
    graph: FactorGraph,
    factors: Sequence[Factors],
    most: float,
    prior: Tensor,
    field: Tensor,
    beta: Tensor,
) -> tuple[Tensor, Tensor]:
    """Σ ∂ log Z/∂p over the factors, (V,), and at most `most`, the pace, (P,)."""
    beta = _spread(beta, graph)
    with torch.enable_grad():
        probability = torch.sigmoid(prior + beta * field).requires_grad_()
        here = _log_likelihood(graph, factors, probability)
        messages = torch.zeros_like(probability)
        if factors:  # a rank may have none of the batch
            (messages,) = torch.autograd.grad(here.sum(), probability)
    with torch.no_grad():
        probability, here = probability.detach(), here.detach()
        if graph.world.size > 1:
            summed, here = graph.world.sum(messages.double(), here)
            messages = summed.to(torch.float32)
        change = beta * most * messages
        reach = REACH / _largest(graph, change.abs()).clamp(min=REACH)
        towards = probability * (1 - probability) * change
        slope = reach * _per_problem(graph, messages * towards)
        there = probability + _spread(reach, graph) * towards
        (ahead,) = graph.world.sum(_log_likelihood(graph, factors, there))
        fall = here + slope - ahead
        share = reach * slope / (2 * fall).clamp(min=torch.finfo(torch.float32).tiny)
        pace = most * share.masked_fill(~(fall > 0), 1.0).clamp(max=1.0)
    return messages, pace.to(torch.float32)


def _replayable(graph: FactorGraph, factors: Sequence[Factors], size: int) -> bool:
    """Whether the batch is the same kernels on other numbers as all of its size."""
    return (
        graph.device.type == "cuda"
        and graph.world.size == graph.num_problems == len(graph.blocks) == len(factors) == 1
        and factors[0].num_factors == size
        and factors[0].origin()[0] is graph.blocks[0]
        and factors[0].scope.shared
    )


def _replay(graph: FactorGraph, most: float, size: int) -> Replay | None:
    """The messages of a batch of `size` factors as one CUDA graph."""
    part = graph.blocks[0].select(torch.arange(size, device=graph.device))
    assert isinstance(part, Network)
    prior, field = (torch.zeros_like(graph.log_prior, dtype=torch.float32) for _ in range(2))
    numbers = prior, field, field.new_ones(1)
    return replay(lambda: _messages(graph, [part], most, *numbers), (*_batch(part), *numbers))


def _batch(part: Network) -> tuple[Tensor, ...]:
    """All of a batch that its likelihood depends on."""
    return part.inputs, part.labels, part.weight, part.beta


def _log_likelihood(graph: FactorGraph, factors: Sequence[Factors], probability: Tensor) -> Tensor:
    """Σ log Z over the factors of each problem, (P,) float64."""
    total = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
    for part in factors:
        assert isinstance(part, Network)
        whole = part.origin()[0]
        bipolar = whole.once(_bipolar)
        starts = part.scope.first()
        shared = part.scope.shared
        for start in (whole.once(_start),) if shared else starts.unique().tolist():
            mine = part if shared else part.select((starts == start).nonzero()[:, 0])
            weights = probability[start : start + part.arity]
            outputs = moments(mine.program, weights, mine.inputs, bipolar)
            log_z = mine.log_potential_mean(log_probability(outputs, mine.labels).double())
            sum_here = (mine.weight * log_z).sum()[None]
            if graph.num_problems == 1:
                total = total + sum_here
            else:
                total = total.index_add(0, graph.problem[start : start + 1], sum_here)
    return total


def _start(factors: Factors) -> int:
    """The first variable of factors that see the same ones."""
    return int(factors.scope.first()[0])


def _bipolar(factors: Network) -> bool:
    return are_bipolar(factors.inputs)


def _per_problem(graph: FactorGraph, values: Tensor) -> Tensor:
    """Sums over the variables of each problem, (P,) float64."""
    if graph.num_problems == 1:  # a sum is an order faster than adding by index
        return values.sum(dtype=torch.float64)[None]
    return graph.over_variables(values.double())


def _largest(graph: FactorGraph, values: Tensor) -> Tensor:
    """The largest value of each problem's variables, at least 0, (P,)."""
    if graph.num_problems == 1:
        return values.amax()[None]
    return values.new_zeros(graph.num_problems).scatter_reduce(0, graph.problem, values, "amax")


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
        beta: Inverse temperature, a function of the step; P(w = 1) = σ(prior + beta·field).
            `geometric(1, 10, steps)` serves the posterior and one net alike.
        step: The most of a batch's messages that is taken; 1 is the sum of belief propagation.
        forget: 1 makes beliefs fade so that every example counts about once; 0 adds up all epochs.
        first: Spread of the random start, log-odds; more for few examples.

    Returns:
        The solver, for `run`.

    Examples:
        >>> from vitrail.solvers import geometric
        >>> streaming(beta=geometric(1.0, 10.0, steps=600)).batch
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
