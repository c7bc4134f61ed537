"""Shapes on which kernels are held against their definitions."""

from dataclasses import replace
from typing import TypeVar

import torch

from vitrail.factors import Factors, Network, network, perceptron
from vitrail.graph import indexed
from vitrail.nn import (
    BinaryConv1d,
    BinaryConv2d,
    BinaryLinear,
    Coding,
    Flatten,
    Sequential,
    Sign,
    Threshold,
    paper_conv,
    paper_mlp,
)
from vitrail.random import THRESHOLD_ONE

FactorsT = TypeVar("FactorsT", bound=Factors)

ARITIES = [1, 7, 196, 1000, 4097]


NETS = {
    "paper-conv": (paper_conv, (1, 14, 14), 2),
    "paper-mlp": (paper_mlp, (196,), 2),
    "deep": (
        lambda: Sequential(
            BinaryLinear(6, 5),
            Sign(),
            BinaryLinear(5, 4, "binary"),
            Threshold(),
            BinaryLinear(4, 3),
            Threshold(),
            BinaryLinear(3, 1, "binary"),
        ),
        (6,),
        2,
    ),
    "classes": (
        lambda: Sequential(BinaryLinear(9, 5), Threshold(), BinaryLinear(5, 4)),
        (9,),
        4,
    ),
    "linear-classes": (lambda: BinaryLinear(11, 3), (11,), 3),
    "series": (
        lambda: Sequential(
            BinaryConv1d(2, 3, 3, stride=2, padding=1),
            Threshold(),
            Flatten(),
            BinaryLinear(12, 1, "binary"),
        ),
        (2, 7),
        2,
    ),
    "padded-conv": (
        lambda: Sequential(
            BinaryConv2d(2, 3, 3, padding=1, coding="binary"),
            Sign(),
            Flatten(),
            BinaryLinear(27, 3),
        ),
        (2, 3, 3),
        3,
    ),
}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def perceptrons(
    num_factors: int,
    arity: int,
    coding: Coding = "bipolar",
    beta: float | torch.Tensor = 2.0,
    seed: int = 0,
) -> Network:
    draw = generator(seed)
    inputs = torch.randint(-1, 2, (num_factors, arity), generator=draw)
    labels = torch.randint(0, 2, (num_factors,), generator=draw)
    return perceptron(inputs, labels, beta, coding)


def renumbered(factors: FactorsT, seed: int = 1) -> FactorsT:
    """The factors with ids out of order and far apart, as in a batch of a large graph."""
    ids = torch.randint(0, 2**32, (factors.num_factors,), generator=generator(seed))
    return replace(factors, ids=ids)


def scattered(factors: Network, num_variables: int, seed: int = 2) -> Network:
    """The factors on variables in no order."""
    rows = [
        torch.randperm(num_variables, generator=generator(seed + row))[: factors.arity]
        for row in range(factors.num_factors)
    ]
    return replace(factors, scope=indexed(torch.stack(rows)))


def beliefs(num_variables: int, seed: int = 3) -> torch.Tensor:
    return 2 * torch.randn(num_variables, generator=generator(seed), dtype=torch.float64)


def last_messages(num_factors: int, arity: int, seed: int = 4) -> torch.Tensor:
    messages = torch.randn(num_factors, arity, generator=generator(seed), dtype=torch.float64)
    return (torch.round(messages * 2**19) / 2**19).float()


def extreme_thresholds(shape: tuple[int, ...], seed: int = 5) -> torch.Tensor:
    """0, 1, 65535 and 65536 among the ordinary ones."""
    draw = generator(seed)
    ends = torch.tensor([0, 1, THRESHOLD_ONE - 1, THRESHOLD_ONE])
    ordinary = torch.randint(0, THRESHOLD_ONE + 1, shape, generator=draw)
    pick = torch.randint(0, 8, shape, generator=draw)
    return torch.where(pick < 4, ends[pick.clamp(max=3)], ordinary).to(torch.int32)


def networks(net: str, num_factors: int) -> Network:
    """Factors of the net of that name, on random inputs in {−1, 0, 1}."""
    module, shape, classes = NETS[net]
    draw = generator(num_factors)
    inputs = torch.randint(-1, 2, (num_factors, *shape), generator=draw)
    labels = torch.randint(0, classes, (num_factors,), generator=draw)
    return renumbered(network(module(), inputs, labels, beta=2.0))
