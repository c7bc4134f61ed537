"""Streaming: messages are dropped after their batch, so the state is one number per weight.

A batch's beliefs are the next batch's prior. The probability Z that an example is satisfied is
linear in each p = P(w = 1), so that its message to a weight is

    log p̃(1)/p̃(0) = log (1 + (1 − p)·g)/(1 − p·g) ≈ g,      g = ∂ log Z/∂p

and one backward pass through `vitrail.nn.moments` gives the sum of a batch's messages to every
weight of a net of any depth. Nets of one layer may take the messages of an `Update` instead.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.nn.moments import answers, are_bipolar, log_probability, moments
from vitrail.random import Key, Stream, normal
from vitrail.scopes import Dense
from vitrail.solvers.base import PER_PROBLEM, PER_VARIABLE, Feedback, Info, MessagePassing
from vitrail.solvers.damping import Schedule
from vitrail.solvers.replay import Replay, replay
from vitrail.solvers.schedules import Batches, Order
from vitrail.updates import Update

Part = tuple[Factors, Tensor | None]
"""Factors, and which of them (f,) int64; None is all."""

MEMORY = 0.01  # weight of a batch in the running mean square of messages
LEAST_SQUARE = 1e-24  # of messages: those of a layer that is certain are not blown up
RATE, LARGEST_RATE = 0.1, 0.3  # log-odds per batch, and of few batches
FEW_BATCHES, MANY_BATCHES = 300, 3600  # below and above which the rate is another
AGAIN = 1 / 3  # of the rate, where beliefs of earlier rows go on
LOST = 0.5  # share of what accuracy had gained over guessing, whose loss is divergence
KEPT = 0.25  # share of it that the last good beliefs may be below the best
SPREADS = 4.0  # standard errors of a step's accuracy, below which nothing is said to be lost
PATIENCE = 2  # steps in a row that have lost it
TRIES = 8  # how often beliefs are undone and the rate halved before the problem is given up


@dataclass(frozen=True)
class Falling:
    """first·(1 − step/steps), and first/steps from the last step on."""

    first: float
    steps: int

    def __call__(self, step: int) -> float:
        return self.first * max(1, self.steps - step) / self.steps


def falling(first: float, steps: int) -> Falling:
    """A schedule that falls evenly, to `first / steps` at the last of the steps.

    Args:
        first: The number at step 0.
        steps: Steps of the run.

    Examples:
        >>> [falling(0.5, steps=4)(step) for step in range(4)]
        [0.5, 0.375, 0.25, 0.125]
    """
    if not (first > 0 and math.isfinite(first)) or steps < 1:
        raise ValueError(f"a positive number falls over at least one step, got {first} and {steps}")
    return Falling(first, steps)


def usual_rate(batches: int) -> float:
    """The first rate of a run of `streaming`: short runs take large steps, long runs small ones.

    Args:
        batches: Batches of all steps together.

    Examples:
        >>> usual_rate(100), usual_rate(1000), usual_rate(14400)
        (0.3, 0.1, 0.05)
    """
    short = min(LARGEST_RATE / RATE, FEW_BATCHES / max(1, batches))
    return RATE * max(1.0, short) * min(1.0, math.sqrt(MANY_BATCHES / max(1, batches)))


@dataclass(frozen=True)
class StreamState:
    """Beliefs, the scale of messages, the last good beliefs, and the order of the epoch."""

    field: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32: noise + messages
    prior: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32 log-odds
    beta: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, of the last step
    rate: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, of the last step
    squares: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (L, P) float32, running mean
    seen: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float32, its weight so far
    good: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float32, the last good field
    best: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) float64, accuracy of a step
    worse: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, bad steps in a row
    undone: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, how often
    order: Order  # the shuffle of the factors in force


@dataclass(frozen=True)
class Batch:
    """What a batch says."""

    messages: Tensor  # (V,) float32, the sum over its examples
    hits: Tensor  # (P,) float64, weight of the examples that beliefs get right
    mass: Tensor  # (P,) float64, weight of its examples, or their number


@dataclass(frozen=True)
class Streaming(MessagePassing[StreamState]):
    """Batch after batch, at P(w = 1) = σ(prior + beta·field),

        field ← (1 − forget·batch/M)·field + rate/(beta·scale)·Σ messages,   M examples in all.

    The scale of each layer is the root mean square of its sums of messages, that of this batch or
    the running one of all, whichever is larger. So the log-odds of every layer move by `rate` per
    batch, whatever inputs, depth, beta or the size of a batch are; `rate` falls with the steps.

    A step whose examples are answered clearly worse than before, for `PATIENCE` steps in a row, or
    a number that is not finite, is divergence: the last good beliefs come back and the rate is
    halved. Messages of an `Update` come without answers, so that only the latter is seen. A step
    takes `batches` batches.
    """

    update: Update | None
    batch: int
    batches: int
    beta: Schedule | None
    rate: Schedule | float
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
        ones = field.new_ones(graph.num_problems)
        none = torch.zeros_like(ones, dtype=torch.int64)
        return StreamState(
            field,
            graph.log_prior.to(torch.float32),
            self._beta(0) * ones,
            self._rate(0) * ones,
            torch.zeros_like(graph.once(_layers).count),
            0 * ones,
            field,
            graph.once(_guessing),
            none,
            none,
            self._schedule.start(graph),
        )

    def step(
        self, key: Key, graph: FactorGraph, state: StreamState, feedback: Feedback
    ) -> tuple[StreamState, Info]:
        share = self.forget * (self.batch / graph.factors_per_problem).clamp(max=1.0)
        kept = torch.where(feedback.active, 1 - share, 1.0).to(torch.float32)
        now = self._at(key.step, state, feedback.active)
        hits = mass = torch.zeros_like(state.best)
        evaluations = 0
        some = feedback.all_active() or bool(feedback.active.any())
        for number in range(key.step * self.batches, (key.step + some) * self.batches):
            selected, order = self._schedule.select(key.at(number), graph, now.order, feedback)
            parts = [
                (block, index)
                for block, index in zip(graph.blocks, selected, strict=True)
                if index is None or len(index)
            ]
            after, found = self._moved(key.at(number), graph, parts, now)
            if self.forget:
                faded = after.field - (1 - _spread(kept, graph)) * now.field
                after = replace(after, field=faded)
            now = replace(after, order=order)
            if self.update is None:
                hits, mass = hits + found.hits, mass + found.mass
            evaluations += sum(
                block.num_factors if index is None else len(index) for block, index in parts
            )
        if graph.world.size > 1:
            evaluations = int(graph.world.sum(torch.tensor(evaluations))[0])
        now = self._guarded(graph, state, now, hits, mass, feedback.active)
        change = (self.marginals(graph, now) - self.marginals(graph, state)).abs()
        # what is about to be undone has not settled, even if it is frozen
        residual = _largest(graph, change).masked_fill(now.worse > 0, 1.0)
        none = torch.zeros_like(residual, dtype=torch.bool)
        records = {"rate": now.rate, "undone": now.undone}
        return now, Info(residual, evaluations, none, diverged=now.undone >= TRIES, records=records)

    def absorb(
        self, key: Key, graph: FactorGraph, factors: Sequence[Factors], state: StreamState
    ) -> StreamState:
        """The state after one batch of factors that need not be of the graph, for rows of a stream.

        `key.step` numbers the batches; beta and rate follow it. Nothing is forgotten, and what is
        not finite is undone.
        """
        active = torch.ones_like(state.worse, dtype=torch.bool)
        now = self._at(key.step, state, active)
        after, _ = self._moved(key, graph, [(part, None) for part in factors], now)
        none = torch.zeros_like(state.best)
        return self._guarded(graph, state, after, none, none, active)

    def log_odds(self, graph: FactorGraph, state: StreamState) -> Tensor:
        return (state.prior + _spread(state.beta, graph) * state.field).double()

    def shift_prior(self, state: StreamState, by: Tensor) -> StreamState:
        return replace(state, prior=state.prior + by.to(torch.float32))

    def gamma(self, state: StreamState) -> Tensor:
        return state.rate.double()

    def with_gamma(self, state: StreamState, gamma: Tensor) -> StreamState:
        return replace(state, rate=gamma.to(torch.float32))

    def with_damping_in_state(self) -> Streaming:
        raise ValueError("streaming sets its own rate, which cannot be held; leave steady out")

    def from_earlier(self) -> Streaming:
        """The solver where the prior is what earlier rows have taught, at its last beta.

        There is no random start, beta does not rise again, and the rate begins lower.
        """
        rate = self.rate
        if isinstance(rate, Falling):
            rate = replace(rate, first=AGAIN * rate.first)
        elif not callable(rate):
            rate = AGAIN * rate
        return replace(self, first=0.0, beta=None, rate=rate)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return (self._schedule.epoch_steps(graph) + self.batches - 1) // self.batches

    @property
    def _schedule(self) -> Batches:
        return Batches(self.batch)

    def _beta(self, step: int) -> float:
        return 1.0 if self.beta is None else self.beta(step)

    def _rate(self, step: int) -> float:
        return self.rate(step) if callable(self.rate) else self.rate

    def _at(self, step: int, state: StreamState, active: Tensor) -> StreamState:
        """The state with beta and rate of a step where problems are active."""
        rate = self._rate(step) * 0.5 ** state.undone.to(torch.float32)
        return replace(
            state,
            beta=torch.where(active, self._beta(step), state.beta),
            rate=torch.where(active, rate, state.rate),
        )

    def _moved(
        self, key: Key, graph: FactorGraph, parts: Sequence[Part], now: StreamState
    ) -> tuple[StreamState, Batch]:
        """The state after a batch, and what the batch said."""
        if self.update is None:
            factors = [block if rows is None else block.select(rows) for block, rows in parts]
            found = self._by_moments(graph, factors, now)
        else:
            found = self._by_update(key, graph, parts, now)
        layers = graph.once(_layers)
        square = layers.mean_square(found.messages)
        weight = torch.where(found.mass > 0, MEMORY, 0.0).to(torch.float32)
        seen = now.seen + weight * (1 - now.seen)
        squares = now.squares + weight * (square - now.squares)
        scale = torch.maximum(square, squares / seen.clamp(min=MEMORY)).clamp(min=LEAST_SQUARE)
        move = layers.spread(now.rate / now.beta * scale.rsqrt()) * found.messages
        return replace(now, field=now.field + move, squares=squares, seen=seen), found

    def _guarded(
        self,
        graph: FactorGraph,
        before: StreamState,
        now: StreamState,
        hits: Tensor,
        mass: Tensor,
        active: Tensor,
    ) -> StreamState:
        """The state after a step, or the last good one at half the rate where it has diverged.

        The step's examples were asked with beliefs from `before` on, which are what is good.
        """
        finite = _per_problem(graph, ~torch.isfinite(now.field)) == 0
        measured, guessing = mass > 0, graph.once(_guessing)
        accuracy = torch.where(measured, hits / mass.clamp(min=1e-300), now.best)
        error = (accuracy * (1 - accuracy) + now.best * (1 - now.best)).clamp(min=0).sqrt()
        examples = graph.everything.factors_per_problem.clamp(1, self.batch * self.batches)
        fallen = now.best - accuracy
        gained = now.best - guessing
        bad = (fallen > LOST * gained) & (fallen > SPREADS * error * examples.rsqrt())
        worse = torch.where(active, torch.where(bad, now.worse + 1, 0), now.worse)
        diverged = active & (~finite | (worse >= PATIENCE))
        good = active & ~bad & (fallen <= KEPT * gained.clamp(min=0))
        last_good = torch.where(_spread(good, graph), before.field, now.good)
        field = torch.where(_spread(diverged, graph), last_good, now.field)
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

    def _by_moments(
        self, graph: FactorGraph, factors: Sequence[Factors], now: StreamState
    ) -> Batch:
        """Σ ∂ log Z/∂p over the batch, and which of its examples are answered rightly."""
        numbers = now.prior, now.field, now.beta
        if _replayable(graph, factors, self.batch):
            (part,) = factors
            assert isinstance(part, Network)
            known = graph.once(_replay, self.batch)
            if known is not None:
                return Batch(*known(*_batch(part), *numbers))
        return Batch(*_messages(graph, factors, *numbers))

    def _by_update(
        self, key: Key, graph: FactorGraph, parts: Sequence[Part], now: StreamState
    ) -> Batch:
        """The sum of an update's messages to each variable; it does not say what is right."""
        assert self.update is not None
        log_odds = self.log_odds(graph, now)
        total = torch.zeros_like(now.field, dtype=torch.float64)
        mass = torch.zeros_like(now.best)
        for block, rows in parts:
            total += self.update.total(key, block, log_odds, rows)
            first = block.scope.first() if rows is None else block.scope.first()[rows]
            mass += torch.bincount(graph.problem[first], minlength=graph.num_problems)
        total, mass = graph.world.sum(total, mass)
        return Batch(total.to(torch.float32), torch.zeros_like(mass), mass)


def _messages(
    graph: FactorGraph, factors: Sequence[Factors], prior: Tensor, field: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The parts of a `Batch`."""
    with torch.enable_grad():
        probability = torch.sigmoid(prior + _spread(beta, graph) * field).requires_grad_()
        likelihood, hits, mass = _asked(graph, factors, probability)
        messages = torch.zeros_like(probability)
        if factors:  # a rank may have none of the batch
            (messages,) = torch.autograd.grad(likelihood, probability)
    if graph.world.size > 1:
        summed, hits, mass = graph.world.sum(messages.double(), hits, mass)
        messages = summed.to(torch.float32)
    return messages, hits, mass


def _replayable(graph: FactorGraph, factors: Sequence[Factors], size: int) -> bool:
    """Whether the batch is the same kernels on other numbers as all of its size."""
    return (
        graph.device.type == "cuda"
        and graph.world.size == graph.num_problems == len(graph.blocks) == len(factors) == 1
        and factors[0].num_factors == size
        and factors[0].origin()[0] is graph.blocks[0]
        and factors[0].scope.shared
    )


def _replay(graph: FactorGraph, size: int) -> Replay | None:
    """The messages of a batch of `size` factors as one CUDA graph."""
    part = graph.blocks[0].select(torch.arange(size, device=graph.device))
    assert isinstance(part, Network)
    prior, field = (torch.zeros_like(graph.log_prior, dtype=torch.float32) for _ in range(2))
    numbers = prior, field, field.new_ones(1)
    return replay(lambda: _messages(graph, [part], *numbers), (*_batch(part), *numbers))


def _batch(part: Network) -> tuple[Tensor, ...]:
    """All of a batch that its likelihood depends on."""
    return part.inputs, part.labels, part.weight, part.beta


def _asked(
    graph: FactorGraph, factors: Sequence[Factors], probability: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ log Z over the factors, (); weight of those answered rightly and of all, (P,) float64."""
    likelihood = torch.zeros((), dtype=torch.float64, device=graph.device)
    hits, mass = likelihood.new_zeros((2, graph.num_problems))
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
            likelihood = likelihood + (mine.weight * log_z).sum()
            right = (answers(outputs) == mine.labels).double() * mine.weight
            sums = (right.sum()[None], mine.weight.sum(dtype=torch.float64)[None])
            if graph.num_problems == 1:
                hits, mass = hits + sums[0], mass + sums[1]
            else:
                here = graph.problem[start : start + 1]
                hits, mass = hits.index_add(0, here, sums[0]), mass.index_add(0, here, sums[1])
    return likelihood, hits, mass


@dataclass(frozen=True)
class Layers:
    """Which layer each weight belongs to: L layers of each of P problems."""

    of: Tensor  # (V,) int64: layer·P + problem
    count: Tensor  # (L, P) float32, weights of each, at least 1
    sizes: tuple[int, ...] | None  # of layers that lie one after another, where one net is all

    def mean_square(self, values: Tensor) -> Tensor:
        """Mean of squares of values (V,) in each layer, (L, P) float32."""
        if self.sizes is not None:  # sums are an order faster than adding by index
            sums = torch.stack([part.square().sum() for part in values.split(self.sizes)])
        else:
            flat = torch.zeros(self.count.numel(), dtype=torch.float64, device=values.device)
            sums = flat.index_add_(0, self.of, values.double().square()).to(torch.float32)
        return sums.view_as(self.count) / self.count

    def spread(self, values: Tensor) -> Tensor:
        """Values (L, P) of each layer at its weights, (V,)."""
        return values.flatten()[self.of]


def _layers(graph: FactorGraph) -> Layers:
    """The layers of a graph's nets; weights of other factors are one layer."""
    blocks, problems = graph.everything.blocks, graph.num_problems
    layer = torch.zeros_like(graph.problem)
    sizes = None
    for block in blocks:
        if isinstance(block, Network) and isinstance(block.scope, Dense) and block.num_factors:
            bits = tuple(node.num_bits for node in block.program.nodes if node.num_bits)
            mine = torch.arange(len(bits)).repeat_interleave(torch.tensor(bits)).to(layer.device)
            starts = block.scope.first()
            for start in (starts[:1] if block.scope.shared else starts.unique()).tolist():
                layer[start : start + block.arity] = mine
            if len(blocks) == problems == 1 and sum(bits) == len(layer):
                sizes = bits
    of = layer * problems + graph.problem
    count = torch.bincount(of, minlength=(int(layer.max()) + 1) * problems).view(-1, problems)
    return Layers(of, count.clamp(min=1).to(torch.float32), sizes)


def _guessing(graph: FactorGraph) -> Tensor:
    """The accuracy of a guess, (P,) float64: 1/C of C classes."""
    found = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
    for block in graph.everything.blocks:
        if isinstance(block, Network):
            found[graph.everything.factor_problem(block)] = 1 / max(2, block.program.num_outputs)
    return found


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
    rate: Schedule | float = 0.1,
    forget: float = 0.0,
    first: float = 1.0,
) -> Streaming:
    """Message passing for data and nets of any size: beliefs are all that is kept.

    Args:
        update: Where messages come from, e.g. `closed_form("gaussian")` for nets of one layer; None
            is moments, for nets of any depth.
        batch: Examples whose messages are added at once.
        batches: Batches per step.
        beta: Inverse temperature, a function of the step; P(w = 1) = σ(prior + beta·field).
            `geometric(1, 10, steps)` serves the posterior and one net alike.
        rate: How far a batch moves the log-odds of a layer, root mean square: a number, or a
            function of the step such as `falling(usual_rate(steps * batches), steps)`.
        forget: 1 makes beliefs fade so that every example counts about once; 0 adds up all epochs.
        first: Spread of the random start, log-odds; more for few examples.

    Examples:
        >>> from vitrail.solvers import geometric
        >>> streaming(beta=geometric(1.0, 10.0, steps=600), rate=falling(0.1, steps=600)).batch
        128
    """
    for name, value in (("batch", batch), ("batches", batches)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not callable(rate) and not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"rate must be a positive number or a schedule, got {rate}")
    if not 0 <= forget <= 1:
        raise ValueError(f"forget must be from 0 to 1, got {forget}")
    if first < 0:
        raise ValueError(f"first must be at least 0, got {first}")
    return Streaming(update, batch, batches, beta, rate, forget, first)
