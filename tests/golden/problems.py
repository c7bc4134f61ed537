"""The fixed data of the golden table: bits cut from a hash, so that nothing else decides them."""

import hashlib

import numpy as np
import torch
from torch import Tensor, nn

from vitrail import FactorGraph, blackbox, factor_graph, join, network, perceptron, table
from vitrail.graph import indexed
from vitrail.nn import BinaryConv2d, BinaryLinear, Coding, Sign, Threshold, mlp, paper_conv


def bits(seed: int, *shape: int) -> Tensor:
    """Fair bits (*shape) int64 of 0/1."""
    count = int(np.prod(shape))
    raw = hashlib.shake_256(f"golden {seed}".encode()).digest(-(-count // 8))
    flat = np.unpackbits(np.frombuffer(raw, np.uint8), count=count)
    return torch.from_numpy(flat.astype(np.int64)).view(*shape)


def signs(seed: int, *shape: int) -> Tensor:
    """Fair signs (*shape) int64 of ±1."""
    return 2 * bits(seed, *shape) - 1


def classes(seed: int, count: int) -> Tensor:
    """Labels (count,) int64 of 0, 1 and 2."""
    return bits(seed, count, 2).sum(1)


def linear(
    seed: int, num_examples: int, num_inputs: int, beta: float, coding: Coding = "bipolar"
) -> FactorGraph:
    """One unit on random labels, as perceptron factors."""
    inputs, labels = signs(seed, num_examples, num_inputs), bits(seed + 1, num_examples)
    return factor_graph(perceptron(inputs, labels, beta, coding))


def weighted_linear(seed: int, num_examples: int, num_inputs: int, beta: float) -> FactorGraph:
    """The same with examples that count once, twice or three times."""
    inputs, labels = signs(seed, num_examples, num_inputs), bits(seed + 1, num_examples)
    weight = 1.0 + classes(seed + 2, num_examples).double()
    return factor_graph(perceptron(inputs, labels, beta * weight, "bipolar", weight=weight))


def unequal(seed: int, beta: float) -> FactorGraph:
    """Three linear problems of different sizes in one graph."""
    return join([linear(seed + 10 * k, 6 + 4 * k, 7 + 2 * k, beta) for k in range(3)])


def net(
    module: nn.Module, seed: int, shape: tuple[int, ...], num_examples: int, beta: float
) -> FactorGraph:
    """A network on random labels: two classes for one output, three for three."""
    inputs = signs(seed, num_examples, *shape)
    outputs = module(inputs[:1].float()).numel()
    labels = bits(seed + 1, num_examples) if outputs == 1 else classes(seed + 1, num_examples)
    return factor_graph(network(module, inputs, labels, beta))


def spelled_linear(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """One unit of 11 inputs as a network."""
    return net(mlp(11, (), 1, "bipolar"), seed, (11,), num_examples, beta)


def linear_classes(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """Three units of 7 inputs, of which the largest wins."""
    return net(mlp(7, (), 3, "bipolar"), seed, (7,), num_examples, beta)


def one_hidden(
    seed: int, num_examples: int, beta: float, coding: Coding = "bipolar"
) -> FactorGraph:
    """9 inputs, 3 hidden units: 30 weights."""
    return net(mlp(9, (3,), 1, coding), seed, (9,), num_examples, beta)


def tiny_hidden(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """4 inputs, 2 hidden units: 10 weights, few enough to enumerate."""
    return net(mlp(4, (2,), 1, "bipolar"), seed, (4,), num_examples, beta)


def one_hidden_classes(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """7 inputs, 3 hidden units, 3 classes: 30 weights."""
    return net(mlp(7, (3,), 3, "bipolar"), seed, (7,), num_examples, beta)


def two_hidden(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """7 inputs, 4 and 3 hidden units: 43 weights."""
    return net(mlp(7, (4, 3), 1, "bipolar"), seed, (7,), num_examples, beta)


def two_hidden_classes(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """Layers of both codings and both steps, 3 classes: 41 weights."""
    module = nn.Sequential(
        BinaryLinear(5, 4, "bipolar"),
        Sign(window=2.0),
        BinaryLinear(4, 3, "binary"),
        Threshold(window=2.0),
        BinaryLinear(3, 3, "bipolar"),
    )
    return net(module, seed, (5,), num_examples, beta)


def conv(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """The paper's convolutional net: 89 weights on 14×14 images."""
    return net(paper_conv(), seed, (1, 14, 14), num_examples, beta)


def small_conv(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """Two channels in, padded, 0/1 weights, three classes: 90 weights on 3×3 images."""
    module = nn.Sequential(
        BinaryConv2d(2, 2, 3, stride=1, padding=1, coding="binary"),
        Sign(window=3.0),
        nn.Flatten(),
        BinaryLinear(18, 3, "bipolar"),
    )
    return net(module, seed, (2, 3, 3), num_examples, beta)


def torch_relu(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """A plain torch net with biases: 19 weights."""
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    return net(module, seed, (4,), num_examples, beta)


def torch_tanh(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """A plain torch net with real activations and three classes: 21 weights."""
    module = nn.Sequential(nn.Linear(5, 2), nn.Tanh(), nn.Linear(2, 3))
    return net(module, seed, (5,), num_examples, beta)


class Halves(nn.Module):
    """A module with code of its own: two linear maps of one input, one of them rectified."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.value = nn.Linear(6, 3, bias=False)
        self.out = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(rows, 6) → (rows, 1)."""
        return self.out(torch.relu(self.gate(x)) + self.value(x))


def own_module(seed: int, num_examples: int, beta: float) -> FactorGraph:
    """A module whose forward is the user's own."""
    return net(Halves(), seed, (6,), num_examples, beta)


def tables(seed: int, beta: float) -> FactorGraph:
    """8 variables under 14 random tables of three, and a prior."""
    potentials = (bits(seed, 14, 8) + bits(seed + 1, 14, 8)).clamp(max=1).double()
    scope = indexed([[i % 8, (i + 1 + i // 8) % 8, (i + 4) % 8] for i in range(14)])
    prior = (signs(seed + 2, 8) * 0.25).double()
    return factor_graph(table(potentials, scope, beta), num_variables=8, log_prior=prior)


def _parity(states: Tensor, which: Tensor) -> Tensor:
    return (states.sum(-1) + which[:, None]) % 2 == 1


def parities(beta: float) -> FactorGraph:
    """Odd and even sums of three of six variables."""
    scope = indexed([[0, 1, 2], [2, 3, 4], [1, 4, 5], [0, 3, 5], [1, 3, 5], [0, 1, 4], [2, 3, 5]])
    return factor_graph(blackbox(_parity, 7, 3, beta, scope=scope))
