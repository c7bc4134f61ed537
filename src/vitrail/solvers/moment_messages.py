"""Messages of a batch of examples to independent bits, from the moments of a net.

The probability Z that an example is satisfied is linear in each p = P(w = 1), so its message to a
weight is

    log p̃(1)/p̃(0) = log (1 + (1 − p)·g)/(1 − p·g) ≈ g,      g = ∂ log Z/∂p

and one backward pass through `vitrail.nn.moments` computes the sum of a batch's messages to every
weight of a net of any depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.nn import Program
from vitrail.nn.moments import answers, are_bipolar, log_probability, moments
from vitrail.scopes import Dense
from vitrail.solvers.replay import Replay, replay


@dataclass(frozen=True)
class Batch:
    """Messages and accuracy of a batch."""

    messages: Tensor  # (V,) float32, the sum over its examples
    hits: Tensor  # (P,) float64, weight of the examples that beliefs classify correctly
    mass: Tensor  # (P,) float64, weight of its examples, or their number


def batch_messages(
    graph: FactorGraph,
    factors: Sequence[Factors],
    size: int,
    prior: Tensor,
    field: Tensor,
    beta: Tensor,
) -> Batch:
    """Messages of factors at P(w = 1) = σ(prior + beta·field).

    On a GPU, batches of `size` factors are CUDA graphs.
    """
    numbers = prior, field, beta
    part = replayable(graph, factors, size)
    known = None if part is None else graph.once(_replay, size)
    if part is not None and known is not None:
        return Batch(*known(*batch_tensors(part), *numbers))
    return Batch(*_messages(graph, factors, *numbers))


def messages_at(program: Program, log_odds: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """The sum of the messages of examples (F, …) to the weights of one net, (A,).

    Labels are certain (beta = inf). `torch.vmap` computes them for many nets.
    """

    def likelihood(probability: Tensor) -> Tensor:
        outputs = moments(program, probability, inputs, bipolar=False)
        return log_probability(outputs, labels).sum()

    return torch.func.grad(likelihood)(torch.sigmoid(log_odds))


def _messages(
    graph: FactorGraph, factors: Sequence[Factors], prior: Tensor, field: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The parts of a `Batch`."""
    with torch.enable_grad():
        probability = torch.sigmoid(prior + per_variable(beta, graph) * field).requires_grad_()
        likelihood, hits, mass = _likelihood(graph, factors, probability)
        messages = torch.zeros_like(probability)
        if factors:  # a rank may have no factor of the batch
            (messages,) = torch.autograd.grad(likelihood, probability)
    if graph.world.size > 1:
        summed, hits, mass = graph.world.sum(messages.double(), hits, mass)
        messages = summed.to(torch.float32)
    return messages, hits, mass


def replayable(graph: FactorGraph, factors: Sequence[Factors], size: int | None) -> Network | None:
    """The batch, if a CUDA graph of a batch of `size` factors computes it; None otherwise."""
    same = (
        graph.device.type == "cuda"
        and graph.world.size == graph.num_problems == len(graph.blocks) == len(factors) == 1
        and factors[0].num_factors == size
        and factors[0].origin()[0] is graph.blocks[0]
        and factors[0].scope.shared
    )
    return factors[0] if same and isinstance(factors[0], Network) else None


def first_batch(graph: FactorGraph, size: int) -> Network:
    """Factors whose tensors are the inputs of a CUDA graph."""
    part = graph.blocks[0].select(torch.arange(size, device=graph.device))
    assert isinstance(part, Network)
    return part


def _replay(graph: FactorGraph, size: int) -> Replay | None:
    """The messages of a batch of `size` factors as one CUDA graph."""
    part = first_batch(graph, size)
    prior, field = (torch.zeros_like(graph.log_prior, dtype=torch.float32) for _ in range(2))
    numbers = prior, field, field.new_ones(1)
    return replay(lambda: _messages(graph, [part], *numbers), (*batch_tensors(part), *numbers))


def batch_tensors(part: Network) -> tuple[Tensor, ...]:
    """The tensors of a batch on which its likelihood or loss depends."""
    return part.inputs, part.labels, part.weight, part.beta


def _likelihood(
    graph: FactorGraph, factors: Sequence[Factors], probability: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ log Z over the factors, (); weight of the correctly classified and of all, (P,) float64."""
    likelihood = torch.zeros((), dtype=torch.float64, device=graph.device)
    hits, mass = likelihood.new_zeros((2, graph.num_problems))
    for part in factors:
        assert isinstance(part, Network)
        whole = part.origin()[0]
        bipolar = whole.once(_bipolar)
        starts = part.scope.first()
        shared = part.scope.shared
        for start in (whole.once(_first_variable),) if shared else starts.unique().tolist():
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
    """The layer of each weight: L layers in each of P problems."""

    of: Tensor  # (V,) int64: layer·P + problem
    count: Tensor  # (L, P) float32, weights of each, at least 1
    sizes: tuple[int, ...] | None  # of consecutive layers, if the graph is one net

    def mean_square(self, values: Tensor) -> Tensor:
        """Mean of squares of values (V,) in each layer, (L, P) float32."""
        if self.sizes is not None:  # sums are ten times as fast as index_add
            sums = torch.stack([part.square().sum() for part in values.split(self.sizes)])
        else:
            flat = torch.zeros(self.count.numel(), dtype=torch.float64, device=values.device)
            sums = flat.index_add_(0, self.of, values.double().square()).to(torch.float32)
        return sums.view_as(self.count) / self.count

    def per_weight(self, values: Tensor) -> Tensor:
        """Values (L, P) of layers at their weights, (V,)."""
        return values.flatten()[self.of]


def layers_of(graph: FactorGraph) -> Layers:
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


def guess_accuracy(graph: FactorGraph) -> Tensor:
    """The accuracy of guessing, (P,) float64: 1/C for C classes."""
    found = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
    for block in graph.everything.blocks:
        if isinstance(block, Network):
            found[graph.everything.factor_problem(block)] = 1 / max(2, block.program.num_outputs)
    return found


def _first_variable(factors: Factors) -> int:
    """The first variable of factors that see the same ones."""
    return int(factors.scope.first()[0])


def _bipolar(factors: Network) -> bool:
    return are_bipolar(factors.inputs)


def sum_per_problem(graph: FactorGraph, values: Tensor) -> Tensor:
    """Sums over the variables of each problem, (P,) float64."""
    if graph.num_problems == 1:  # a sum is ten times as fast as index_add
        return values.sum(dtype=torch.float64)[None]
    return graph.over_variables(values.double())


def max_per_problem(graph: FactorGraph, values: Tensor) -> Tensor:
    """The largest value of each problem's variables, at least 0, (P,)."""
    if graph.num_problems == 1:
        return values.amax()[None]
    return values.new_zeros(graph.num_problems).scatter_reduce(0, graph.problem, values, "amax")


def per_variable(values: Tensor, graph: FactorGraph) -> Tensor:
    """(P,) → (V,), the value of each variable's problem; one problem broadcasts."""
    return values if graph.num_problems == 1 else values[graph.problem]


def check_streamable(graph: FactorGraph) -> None:
    """Raise an error for factors without moments."""
    for block in graph.blocks:
        if not isinstance(block, Network) or not isinstance(block.scope, Dense):
            raise TypeError(
                f"streaming by moments needs nets whose weights are consecutive variables, got "
                f"{type(block).__name__} factors of another kind; use belief_propagation"
            )
