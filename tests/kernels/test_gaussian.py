"""The compiled Gaussian sweep is the one that torch defines, to a stated tolerance."""

import math

import pytest
import torch

from vitrail.factors import perceptron
from vitrail.graph import dense
from vitrail.numerics import LATTICE
from vitrail.random import Key
from vitrail.updates import closed_form
from vitrail.updates.base import Update

TOLERANCE = 1e-5  # of the message, absolute below 1 and relative above


def problem(arity: int, factors: int, beta: float, coding, zeros: float = 0.0):
    draws = torch.Generator().manual_seed(arity + factors)
    inputs = torch.randint(0, 2, (factors, arity), generator=draws) * 2 - 1
    inputs[torch.rand(factors, arity, generator=draws) < zeros] = 0
    labels = torch.randint(0, 2, (factors,), generator=draws)
    starts = torch.arange(factors) % 2 * arity
    block = perceptron(inputs, labels, beta, coding, dense(factors, arity, starts))
    return block, draws


def start(arity: int, factors: int, scale: float, draws: torch.Generator):
    belief = torch.randn(2 * arity, generator=draws, dtype=torch.float64) * scale
    message = torch.randn(factors, arity, generator=draws) * 0.2
    return belief, torch.round(message * LATTICE) / LATTICE


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("beta", [math.inf, 40.0, 1.5])
@pytest.mark.parametrize(("arity", "zeros"), [(7, 0.0), (64, 0.3), (501, 0.0)])
@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_the_compiled_sweep_is_the_torch_one(coding, beta, arity, zeros, scale):
    update = closed_form("gaussian")
    block, draws = problem(arity, 40, beta, coding, zeros)
    belief, message = start(arity, 40, scale, draws)
    gamma = torch.ones(40, dtype=torch.float64)
    got = update.sweep(Key(0), block, belief, message, gamma)
    defined = Update.sweep(update, Key(0), block, belief, message, gamma)
    error = (got.messages.double() - defined.messages.double()).abs()
    assert float((error / defined.messages.double().abs().clamp(min=1.0)).max()) < TOLERANCE
    assert float((got.change - defined.change).abs().max()) < TOLERANCE


def test_the_compiled_sweep_damps_as_defined():
    update = closed_form("gaussian")
    block, draws = problem(101, 30, math.inf, "bipolar")
    belief, message = start(101, 30, 3.0, draws)
    gamma = torch.linspace(0.05, 1.0, 30, dtype=torch.float64)
    got = update.sweep(Key(0), block, belief, message, gamma)
    defined = Update.sweep(update, Key(0), block, belief, message, gamma)
    assert float((got.messages - defined.messages).abs().max()) < TOLERANCE


def test_the_sum_of_changes_is_exact_and_on_the_lattice():
    update = closed_form("gaussian")
    block, draws = problem(33, 50, math.inf, "bipolar")
    belief, message = start(33, 50, 1.0, draws)
    swept = update.sweep(Key(0), block, belief, message, torch.full((50,), 0.5))
    change = swept.messages.double() - message.double()
    assert torch.equal(swept.moved, block.scope.total(change, 66))
    assert torch.equal((swept.messages * LATTICE).round(), swept.messages * LATTICE)


def test_the_number_of_threads_does_not_show():
    update = closed_form("gaussian")
    block, draws = problem(501, 1200, math.inf, "bipolar")
    belief, message = start(501, 1200, 1.0, draws)
    gamma = torch.full((1200,), 0.7)
    one = update.sweep(Key(0), block, belief, message, gamma)
    try:
        torch.set_num_threads(3)
        three = update.sweep(Key(0), block, belief, message, gamma)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(one.messages, three.messages)
    assert torch.equal(one.moved, three.moved)
