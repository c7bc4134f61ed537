"""Streaming: messages are not stored, so the state is one number per weight.

The beliefs after a batch are the prior of the next one. Messages come from the moments of a net of
any depth (`vitrail.solvers.moment_messages`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from vitrail.checks import checked_count, checked_number, checked_positive
from vitrail.factors import Factors
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import PER_PROBLEM, PER_VARIABLE, Feedback, Info, MessagePassing
from vitrail.solvers.damping import Schedule
from vitrail.solvers.moment_messages import (
    Batch,
    batch_messages,
    check_streamable,
    guess_accuracy,
    layers_of,
    max_per_problem,
    per_variable,
    sum_per_problem,
)
from vitrail.solvers.schedules import Batches, Order

MEMORY = 0.01  # weight of a batch in the running mean square of messages
MIN_SQUARE = 1e-24  # of messages, so that those of a certain layer are not amplified
RATE, LARGEST_RATE = 0.1, 0.3  # log-odds per batch, usually and for few batches
FEW_BATCHES, MANY_BATCHES = 300, 3600  # below and above them the rate is higher and lower
WARM_RATE_SHARE = 1 / 3  # share of the rate, where training continues from earlier beliefs
MAX_LOSS = 0.5  # divergence: loss of this share of the accuracy gained over guessing
GOOD_LOSS = 0.25  # beliefs are good if they have lost at most this share of it
STANDARD_ERRORS = 4.0  # smaller losses of accuracy are noise
PATIENCE = 2  # consecutive steps with such a loss
MAX_RESTORES = 8  # restorations at half the rate, after which the problem is given up


@dataclass(frozen=True)
class Falling:
    """A schedule that falls evenly, to `first / steps` at the last of the steps and beyond.

    Args:
        first: The number at step 0.
        steps: Steps of the run.

    Examples:
        >>> [falling(0.5, steps=4)(step) for step in range(4)]
        [0.5, 0.375, 0.25, 0.125]
    """

    first: float
    steps: int

    def __post_init__(self) -> None:
        if not (self.first > 0 and math.isfinite(self.first)) or self.steps < 1:
            raise ValueError(
                f"a positive number falls over at least one step, got {self.first} and {self.steps}"
            )

    def __call__(self, step: int) -> float:
        return self.first * max(1, self.steps - step) / self.steps


falling = Falling


def usual_rate(batches: int) -> float:
    """The initial rate of a run of `streaming`, which is higher for short runs.

    Args:
        batches: Batches of all steps together.

    Examples:
        >>> usual_rate(100), usual_rate(1000), usual_rate(14400)
        (0.3, 0.1, 0.05)
    """
    short = min(LARGEST_RATE / RATE, FEW_BATCHES / max(1, batches))
    return RATE * max(1.0, short) * min(1.0, math.sqrt(MANY_BATCHES / max(1, batches)))


def faded(rows: Tensor, memory: float | Tensor | None) -> Tensor:
    """The weight of evidence after this number of further rows: exp(−rows/memory)."""
    return torch.ones_like(rows) if memory is None else torch.exp(-rows / memory)


@dataclass(frozen=True)
class StreamState:
    """Beliefs, the scale of messages, the last good beliefs, and the order of factors."""

    field: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32: noise + messages
    prior: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32 log-odds
    beta: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, of the last step
    rate: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, of the last step
    squares: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (L, P) float32, running mean
    seen: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, total weight of the mean
    good: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32, the last good field
    best: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float64, best accuracy of a step
    worse: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, consecutive bad steps
    undone: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, number of restorations
    order: Order  # current shuffle of the factors


@dataclass(frozen=True)
class Streaming(MessagePassing[StreamState]):
    """Message passing for data and nets of any size: only beliefs are kept.

    For every batch, at P(w = 1) = σ(prior + beta·field),

        field ← exp(−batch/memory)·field + rate/(beta·scale)·Σ messages.

    Without a rate the messages are added as they are, which is Bayes' rule. The scale of a layer is
    the root mean square of its sums of messages, in this batch or on average over all, whichever is
    larger. So a batch changes the log-odds of every layer by `rate`, whatever inputs, depth, beta
    and the size of the batch are; `rate` falls with the steps.

    A run diverges where a number is not finite, or where the accuracy of the step's examples has
    clearly fallen in `PATIENCE` consecutive steps: the last good beliefs are restored and the rate
    is halved.

    Args:
        batch: Examples whose messages are added at once.
        batches: Batches per step.
        beta: Inverse temperature, a function of the step. `geometric(1, 10, steps)` suits both the
            posterior and one net.
        rate: Root mean square by which a batch changes the log-odds of a layer: a number, or a
            function of the step such as `falling(usual_rate(steps * batches), steps)`. None adds
            messages as they are.
        memory: Examples after which evidence weighs 1/e; None keeps its weight.
        first: Standard deviation of the random initial log-odds; larger for few examples.

    Examples:
        >>> from vitrail.solvers import geometric
        >>> streaming(beta=geometric(1.0, 10.0, steps=600), rate=falling(0.1, steps=600)).batch
        128
    """

    _: KW_ONLY
    batch: int = 128
    batches: int = 16
    beta: Schedule | None = None
    rate: Schedule | float | None = 0.1
    memory: float | None = None
    first: float = 1.0

    def __post_init__(self) -> None:
        for name in ("batch", "batches"):
            checked_count(name, getattr(self, name), 1)
        if self.rate is not None and not callable(self.rate):
            checked_positive("rate", self.rate)
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"memory must be a positive number of examples, got {self.memory}")
        checked_number("first", self.first)

    over_ranks = True

    def init(self, key: Key, graph: FactorGraph) -> StreamState:
        check_streamable(graph)
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        field = (self.first * noise).to(torch.float32)
        ones = field.new_ones(graph.num_problems)
        none = torch.zeros_like(ones, dtype=torch.int64)
        return StreamState(
            field,
            graph.log_prior.to(torch.float32),
            self._beta(0) * ones,
            self._rate(0) * ones,
            torch.zeros_like(graph.once(layers_of).count),
            0 * ones,
            field,
            graph.once(guess_accuracy),
            none,
            none,
            self._schedule.start(graph),
        )

    def step(
        self, key: Key, graph: FactorGraph, state: StreamState, feedback: Feedback
    ) -> tuple[StreamState, Info]:
        rows = graph.factors_per_problem.clamp(max=self.batch)
        kept = torch.where(feedback.active, faded(rows.double(), self.memory), 1.0)
        now = self._at(key.step, state, feedback.active)
        hits = mass = torch.zeros_like(state.best)
        evaluations = 0
        some = feedback.all_active() or bool(feedback.active.any())
        for number in range(key.step * self.batches, (key.step + some) * self.batches):
            selected, order = self._schedule.select(key.at(number), graph, now.order, feedback)
            factors = [
                block if index is None else block.select(index)
                for block, index in zip(graph.blocks, selected, strict=True)
                if index is None or len(index)
            ]
            after, found = self._after_batch(graph, factors, now)
            if self.memory is not None:
                gone = (1 - kept).to(torch.float32)
                after = replace(after, field=after.field - per_variable(gone, graph) * now.field)
            now = replace(after, order=order)
            hits, mass = hits + found.hits, mass + found.mass
            evaluations += sum(part.num_factors for part in factors)
        if graph.world.size > 1:
            evaluations = int(graph.world.sum(torch.tensor(evaluations))[0])
        now = self._restored_if_diverged(graph, state, now, hits, mass, feedback.active)
        change = (self.marginals(graph, now) - self.marginals(graph, state)).abs()
        # a problem that may be restored has not converged
        residual = max_per_problem(graph, change).masked_fill(now.worse > 0, 1.0)
        none = torch.zeros_like(residual, dtype=torch.bool)
        records = {"rate": now.rate, "undone": now.undone}
        return now, Info(
            residual, evaluations, none, diverged=now.undone >= MAX_RESTORES, records=records
        )

    def absorb(
        self, key: Key, graph: FactorGraph, factors: Sequence[Factors], state: StreamState
    ) -> StreamState:
        """The state after one batch of any factors, such as rows of a stream.

        `key.step` is the number of the batch, on which beta and rate depend. Earlier evidence fades
        with the number of rows, and beliefs that are not finite are restored.
        """
        active = torch.ones_like(state.worse, dtype=torch.bool)
        now = self._at(key.step, state, active)
        after, _ = self._after_batch(graph, factors, now)
        if self.memory is not None:
            rows = torch.tensor(float(sum(part.num_factors for part in factors)))
            gone = 1 - float(faded(rows, self.memory))
            after = replace(after, field=after.field - gone * now.field)
        none = torch.zeros_like(state.best)
        return self._restored_if_diverged(graph, state, after, none, none, active)

    def log_odds(self, graph: FactorGraph, state: StreamState) -> Tensor:
        return (state.prior + per_variable(state.beta, graph) * state.field).double()

    def shift_prior(self, state: StreamState, by: Tensor) -> StreamState:
        return replace(state, prior=state.prior + by.to(torch.float32))

    def with_damping_in_state(self) -> Streaming:
        raise ValueError("streaming sets its own rate, which cannot be held; leave steady out")

    def from_earlier(self) -> Streaming:
        """The solver for training that continues, with earlier beliefs as the prior.

        There is no random start, beta keeps its last value, and the initial rate is lower.
        """
        rate = self.rate
        if isinstance(rate, Falling):
            rate = replace(rate, first=WARM_RATE_SHARE * rate.first)
        elif rate is not None and not callable(rate):
            rate = WARM_RATE_SHARE * rate
        return replace(self, first=0.0, beta=None, rate=rate)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return (self._schedule.epoch_steps(graph) + self.batches - 1) // self.batches

    @property
    def _schedule(self) -> Batches:
        return Batches(self.batch)

    def _beta(self, step: int) -> float:
        return 1.0 if self.beta is None else self.beta(step)

    def _rate(self, step: int) -> float:
        if self.rate is None:
            return 1.0
        return self.rate(step) if callable(self.rate) else self.rate

    def _at(self, step: int, state: StreamState, active: Tensor) -> StreamState:
        """The state with beta and rate of a step for active problems."""
        rate = self._rate(step) * 0.5 ** state.undone.to(torch.float32)
        return replace(
            state,
            beta=torch.where(active, self._beta(step), state.beta),
            rate=torch.where(active, rate, state.rate),
        )

    def _after_batch(
        self, graph: FactorGraph, factors: Sequence[Factors], now: StreamState
    ) -> tuple[StreamState, Batch]:
        """The state after a batch, and the messages of the batch."""
        found = batch_messages(graph, factors, self.batch, now.prior, now.field, now.beta)
        if self.rate is None:
            move = per_variable(now.rate / now.beta, graph) * found.messages
            return replace(now, field=now.field + move), found
        layers = graph.once(layers_of)
        square = layers.mean_square(found.messages)
        weight = torch.where(found.mass > 0, MEMORY, 0.0).to(torch.float32)
        seen = now.seen + weight * (1 - now.seen)
        squares = now.squares + weight * (square - now.squares)
        scale = torch.maximum(square, squares / seen.clamp(min=MEMORY)).clamp(min=MIN_SQUARE)
        move = layers.per_weight(now.rate / now.beta * scale.rsqrt()) * found.messages
        return replace(now, field=now.field + move, squares=squares, seen=seen), found

    def _restored_if_diverged(
        self,
        graph: FactorGraph,
        before: StreamState,
        now: StreamState,
        hits: Tensor,
        mass: Tensor,
        active: Tensor,
    ) -> StreamState:
        """The state after a step, restored to the last good one at half the rate on divergence.

        Accuracies of the step are those of beliefs from `before` on, so `before` is the good one.
        """
        finite = sum_per_problem(graph, ~torch.isfinite(now.field)) == 0
        measured = mass > 0
        accuracy = torch.where(measured, hits / mass.clamp(min=1e-300), now.best)
        error = (accuracy * (1 - accuracy) + now.best * (1 - now.best)).clamp(min=0).sqrt()
        examples = graph.everything.factors_per_problem.clamp(1, self.batch * self.batches)
        fallen = now.best - accuracy
        gained = now.best - graph.once(guess_accuracy)
        bad = (fallen > MAX_LOSS * gained) & (fallen > STANDARD_ERRORS * error * examples.rsqrt())
        worse = torch.where(active, torch.where(bad, now.worse + 1, 0), now.worse)
        diverged = active & (~finite | (worse >= PATIENCE))
        good = active & ~bad & (fallen <= GOOD_LOSS * gained.clamp(min=0))
        last_good = torch.where(per_variable(good, graph), before.field, now.good)
        field = torch.where(per_variable(diverged, graph), last_good, now.field)
        return replace(
            now,
            field=field,
            squares=now.squares.masked_fill(diverged, 0.0),
            seen=now.seen.masked_fill(diverged, 0.0),
            good=last_good,
            best=torch.where(active, torch.maximum(now.best, accuracy), now.best),
            worse=worse.masked_fill(diverged, 0),
            undone=now.undone + diverged,
        )


streaming = Streaming
