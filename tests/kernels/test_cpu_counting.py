"""Compiled counting against the torch definition, bit for bit."""

import pytest
import torch
from cases_of_kernels import (
    ARITIES,
    NETS,
    extreme_thresholds,
    generator,
    networks,
    perceptrons,
)

from vitrail.factors import network
from vitrail.kernels.cpu import counting as kernels
from vitrail.nn import (
    BinaryConv2d,
    BinaryLinear,
    Flatten,
    MaxPool2d,
    Sequential,
    Sign,
)
from vitrail.random import Key
from vitrail.updates import counting

KEY = Key(seed=99, step=5)


def check(factors, threshold, samples):
    expected = counting(samples, backend="torch")._counts(KEY, factors, threshold, samples)
    found = kernels.counts(KEY, factors, threshold, samples)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine.long(), theirs.long())


def test_outputs_that_read_different_values_are_left_to_torch():
    draw = generator(0)
    inputs = torch.randint(-1, 2, (6, 1, 3, 3), generator=draw)
    labels = torch.randint(0, 4, (6,), generator=draw)
    factors = network(BinaryConv2d(1, 1, 2), inputs, labels, beta=2.0)
    assert not kernels.serves(factors, 8)
    assert kernels.serves(network(BinaryLinear(9, 4), inputs.flatten(1), labels), 8)


@pytest.mark.parametrize("samples", [1, 64, 130])
@pytest.mark.parametrize("num_factors", [1, 35])
@pytest.mark.parametrize("net", NETS)
def test_counts_equal_the_definition(net, num_factors, samples):
    factors = networks(net, num_factors)
    check(factors, extreme_thresholds((num_factors, 2, factors.arity)), samples)


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", ARITIES)
def test_counts_of_perceptrons_equal_the_definition(arity, coding):
    factors = perceptrons(3, arity, coding)
    check(factors, extreme_thresholds((3, 1, arity)), 70)


@pytest.mark.parametrize("least_hits", [0, 20])
def test_estimates_equal_the_definition(least_hits):
    factors = networks("paper-conv", 40)
    cavity = 2 * torch.randn(40, 1, 89, generator=generator(8), dtype=torch.float64)
    one, two = (
        counting(64, backend=backend, least_hits=least_hits).estimate(KEY, factors, cavity)
        for backend in ("torch", "numba")
    )
    assert torch.equal(one.log_one, two.log_one)
    assert torch.equal(one.log_zero, two.log_zero)
    assert (one.evaluations, one.min_hits) == (two.evaluations, two.min_hits)


def test_an_empty_batch_has_no_counts():
    factors = networks("classes", 3).select(torch.empty(0, dtype=torch.int64))
    found = kernels.counts(KEY, factors, torch.empty(0, 1, 65, dtype=torch.int32), 8)
    assert [tuple(part.shape) for part in found] == [(0, 1, 65), (0, 1, 65), (0, 1)]


def test_other_layers_are_left_to_torch():
    net = Sequential(BinaryConv2d(1, 1, 3), Sign(), MaxPool2d(2), Flatten(), BinaryLinear(36, 1))
    factors = network(net, torch.ones(1, 1, 14, 14), torch.ones(1))
    assert not kernels.serves(factors, 64)
