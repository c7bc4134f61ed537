"""Compiled flips against the torch definition, bit for bit."""

import math
from dataclasses import replace

import pytest
import torch
from cases_of_kernels import (
    ARITIES,
    beliefs,
    extreme_thresholds,
    generator,
    last_messages,
    perceptrons,
    renumbered,
    scattered,
)

from vitrail.factors import network
from vitrail.kernels.cpu import flip as kernels
from vitrail.kernels.cpu.rows import find_thresholds
from vitrail.nn import BinaryLinear, Sequential, Sign, Threshold, mlp
from vitrail.random import Key, Stream, threshold_edges, thresholds
from vitrail.updates import flip

KEY = Key(seed=(3 << 33) | 7, step=2**32 - 1)


def definition(samples):
    return flip(samples, backend="torch")


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("samples", [1, 5, 33])
@pytest.mark.parametrize("arity", ARITIES)
def test_hits_equal_the_definition_on_extreme_thresholds(arity, samples, coding):
    factors = renumbered(perceptrons(3, arity, coding))
    threshold = extreme_thresholds((3, 2, arity))
    expected = definition(samples)._hits(KEY, factors, threshold, samples)
    for mine, theirs in zip(kernels.hits(KEY, factors, threshold, samples), expected, strict=True):
        assert torch.equal(mine.long(), theirs)


@pytest.mark.parametrize("beta", [0.5, math.inf])
@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", ARITIES)
def test_messages_equal_the_definition(arity, coding, beta):
    factors = renumbered(perceptrons(9, arity, coding, beta))
    belief, message = beliefs(arity), last_messages(9, arity)
    one, two = (
        flip(5, backend=backend).messages(KEY, factors, belief, message)
        for backend in ("torch", "numba")
    )
    assert torch.equal(one.log_odds, two.log_odds)
    assert torch.equal(one.starved, two.starved)
    assert (one.evaluations, one.min_hits) == (two.evaluations, two.min_hits)


def test_estimates_equal_the_definition_on_many_tracks():
    factors = perceptrons(6, 21, beta=torch.linspace(0.5, 3, 6))
    cavity = 3 * torch.randn(6, 4, 21, dtype=torch.float64)
    one, two = (
        flip(9, backend=backend).estimate(KEY, factors, cavity) for backend in ("torch", "numba")
    )
    assert torch.equal(one.log_one, two.log_one)
    assert torch.equal(one.log_zero, two.log_zero)


def test_each_factor_keeps_its_own_temperature_and_scope():
    factors = scattered(perceptrons(8, 30, beta=torch.linspace(0.5, 4, 8)), 100)
    belief, message = beliefs(100), last_messages(8, 30)
    one, two = (
        flip(7, backend=backend).messages(KEY, factors, belief, message)
        for backend in ("torch", "numba")
    )
    assert torch.equal(one.log_odds, two.log_odds)


def test_a_linear_network_is_a_perceptron_to_the_kernel():
    factors = perceptrons(5, 12)
    spelled = network(mlp(12), factors.inputs, factors.labels, beta=2.0)
    belief, message = beliefs(12), last_messages(5, 12)
    one = flip(6, backend="torch").messages(KEY, spelled, belief, message)
    two = flip(6, backend="numba").messages(KEY, spelled, belief, message)
    assert torch.equal(one.log_odds, two.log_odds)


NETS = {
    "one-unit": (1, 1),
    "paper": (196, 2),
    "wide": (33, 17),
    "narrow": (1, 40),
}


def one_hidden(num_inputs, num_hidden, codings, activation, beta=1.5, num_factors=6):
    draw = generator(num_inputs)
    inputs = torch.randint(-1, 2, (num_factors, num_inputs), generator=draw)
    labels = torch.randint(0, 2, (num_factors,), generator=draw)
    net = Sequential(
        BinaryLinear(num_inputs, num_hidden, codings[0]),
        activation(),
        BinaryLinear(num_hidden, 1, codings[1]),
    )
    return renumbered(network(net, inputs, labels, beta))


@pytest.mark.parametrize("activation", [Sign, Threshold])
@pytest.mark.parametrize(
    "codings", [("bipolar", "bipolar"), ("binary", "bipolar"), ("bipolar", "binary")]
)
@pytest.mark.parametrize("net", NETS)
def test_hits_of_one_hidden_layer_equal_the_definition(net, codings, activation):
    factors = one_hidden(*NETS[net], codings, activation)
    threshold = extreme_thresholds((6, 2, factors.arity))
    expected = definition(9)._hits(KEY, factors, threshold, 9)
    for mine, theirs in zip(kernels.hits(KEY, factors, threshold, 9), expected, strict=True):
        assert torch.equal(mine.long(), theirs)


@pytest.mark.parametrize("beta", [1.5, math.inf])
@pytest.mark.parametrize("net", NETS)
def test_messages_of_one_hidden_layer_equal_the_definition(net, beta):
    factors = one_hidden(*NETS[net], ("bipolar", "bipolar"), Sign, beta, num_factors=40)
    belief, message = beliefs(factors.arity), last_messages(40, factors.arity)
    one, two = (
        flip(5, backend=backend).messages(KEY, factors, belief, message)
        for backend in ("torch", "numba")
    )
    assert torch.equal(one.log_odds, two.log_odds)
    assert torch.equal(one.starved, two.starved)


def test_an_empty_batch_has_no_messages():
    factors = perceptrons(4, 7).select(torch.empty(0, dtype=torch.int64))
    result = flip(5, backend="numba").messages(KEY, factors, beliefs(7), torch.empty(0, 7))
    assert result.log_odds.shape == (0, 7)
    estimate = flip(5, backend="numba").estimate(KEY, factors, torch.empty(0, 3, 7))
    assert estimate.log_one.shape == (0, 3, 7)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_show(threads):
    factors = perceptrons(3000, 65)
    belief, message = beliefs(65), last_messages(3000, 65)
    expected = flip(8, backend="numba").messages(KEY, factors, belief, message)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        result = flip(8, backend="numba").messages(KEY, factors, belief, message)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(result.log_odds, expected.log_odds)


def test_the_stream_is_part_of_the_address():
    factors, cavity = perceptrons(4, 50), torch.zeros(4, 1, 50, dtype=torch.float64)
    usual = flip(3, backend="numba")
    other = replace(usual, stream=Stream.FALLBACK)
    assert not torch.equal(
        usual.estimate(KEY, factors, cavity).log_one, other.estimate(KEY, factors, cavity).log_one
    )
    defined = replace(other, backend="torch")
    assert torch.equal(
        defined.estimate(KEY, factors, cavity).log_one,
        other.estimate(KEY, factors, cavity).log_one,
    )


def test_compiled_thresholds_step_at_the_same_edges():
    edges = threshold_edges(torch.device("cpu"))
    around = torch.cat(
        [edges[1:-1], torch.nextafter(edges[1:-1], torch.tensor(-math.inf).double())]
    )
    wide = torch.linspace(-40, 40, 100_001, dtype=torch.float64)
    ends = torch.tensor([-math.inf, -0.0, 0.0, math.inf], dtype=torch.float64)
    for x in (around, wide, ends):
        out = torch.empty(len(x), dtype=torch.int32)
        find_thresholds(x.numpy(), edges.numpy(), out.numpy())
        assert torch.equal(out, thresholds(x))
