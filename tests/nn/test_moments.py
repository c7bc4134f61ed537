"""Moments of nets of random bits: against enumeration, against sampled nets, and by their laws."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import all_states
from torch import nn

from vitrail.nn import (
    BinaryConv2d,
    BinaryLinear,
    Flatten,
    Gate,
    MaxPool2d,
    Program,
    Sign,
    Threshold,
    centred,
    mlp,
    program_of,
)
from vitrail.nn.coding import numbers
from vitrail.nn.moments import (
    Moments,
    class_probabilities,
    log_probability,
    moments,
    propagate,
)
from vitrail.nn.nodes import Conv, Linear, MaxPool
from vitrail.nn.program import program_from_nodes

NETS = 100_000  # sampled
FIVE_ERRORS = 5.0  # 6e-7 two-sided for one number; at most 1e-3 for the numbers of a test


def spread_of(found) -> torch.Tensor:
    assert found.variance is not None
    return found.variance


def bits(seed: int, *shape: int, chance: float = 0.5) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < chance


def probabilities(seed: int, num: int) -> torch.Tensor:
    return 0.05 + 0.9 * torch.rand(num, generator=torch.Generator().manual_seed(seed))


def inputs_of(seed: int, shape: tuple[int, ...], kind: str, num: int = 3) -> torch.Tensor:
    ones = bits(seed, num, *shape).to(torch.int8)
    return ones if kind == "0/1" else 2 * ones - 1


def exact(program: Program, probability: torch.Tensor, x: torch.Tensor):
    """Mean, variance and P(positive) of the outputs by going through all nets, (F, C) each."""
    states = all_states(program.num_bits)
    weight = torch.where(states, probability, 1 - probability).double().prod(1)
    out = program.evaluate(states[None], x[:, None].float()).flatten(2).double()
    mean = torch.einsum("s,fsc->fc", weight, out)
    square = torch.einsum("s,fsc->fc", weight, out**2)
    return mean, square - mean**2, torch.einsum("s,fsc->fc", weight, (out > 0).double())


def sampled(program: Program, probability: torch.Tensor, x: torch.Tensor):
    """Mean and its standard error, and variance, of the outputs over drawn nets, (F, C)."""
    draws = torch.Generator().manual_seed(9)
    total = square = torch.zeros(())
    size = 2000
    for _ in range(NETS // size):
        states = torch.rand(size, program.num_bits, generator=draws) < probability
        out = program.evaluate(states[None], x[:, None].float()).flatten(2).double()
        total, square = total + out.sum(1), square + (out**2).sum(1)
    mean = total / NETS
    variance = square / NETS - mean**2
    return mean, (variance / NETS).sqrt(), variance


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("kind", ["±1", "0/1", "real"])
@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_the_first_layer_is_exact(coding, kind, seed):
    program = program_of(BinaryLinear(5, 2, coding), (5,))
    probability = probabilities(seed, 10)
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(seed))
    x = x if kind == "real" else inputs_of(seed, (5,), kind)
    found = moments(program, probability, x)
    mean, variance, _ = exact(program, probability, x)
    assert torch.allclose(found.mean.double(), mean, atol=1e-5)
    assert torch.allclose(spread_of(found).double(), variance, atol=1e-5)


CONVOLUTIONS = {
    "1-d": (Conv(-1, 2, 2, (3,), (2,), (1,)), (2, 5)),
    "2-d": (Conv(-1, 1, 2, (2, 3), (1, 2), (0, 1)), (1, 3, 4)),
    "2-d of zeros and ones": (Conv(0, 1, 2, (2, 2), (2, 2), (1, 1)), (1, 4, 4)),
    "3-d": (Conv(-1, 1, 1, (2, 2, 2), (1, 1, 1), (0, 0, 0)), (1, 3, 2, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("kind", ["±1", "0/1"])
def test_a_first_convolution_is_exact(name, kind):
    node, shape = CONVOLUTIONS[name]
    program = Program(shape, (node,))
    probability, x = probabilities(1, program.num_bits), inputs_of(2, shape, kind)
    found = moments(program, probability, x)
    mean, variance, _ = exact(program, probability, x)
    assert torch.allclose(found.mean.flatten(1).double(), mean, atol=1e-5)
    assert torch.allclose(spread_of(found).flatten(1).double(), variance, atol=1e-5)


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("kind", ["±1", "0/1"])
@pytest.mark.parametrize("num_inputs", [9, 10])
def test_the_boundary_lies_between_lattice_points(coding, kind, num_inputs):
    """P(h > 0) to 0.02 of enumeration at ten terms; without the boundary it would miss by 0.1."""
    program = program_of(BinaryLinear(num_inputs, 1, coding), (num_inputs,))
    probability, x = 0.5 + 0.0 * probabilities(3, num_inputs), inputs_of(4, (num_inputs,), kind, 8)
    _, _, positive = exact(program, probability, x)
    found = class_probabilities(program, probability, x)
    assert (found[:, 1] - positive[:, 0]).abs().max() < 0.02
    assert torch.allclose(found.sum(1), torch.ones(8, dtype=torch.float64))


def test_without_the_lattice_the_probability_of_a_tie_is_missed():
    program = program_of(BinaryLinear(10, 1), (10,))
    half, x = torch.full((10,), 0.5), inputs_of(4, (10,), "±1", 8)
    _, _, positive = exact(program, half, x)
    real = class_probabilities(program, half, x.float())
    assert (real[:, 1] - positive[:, 0]).abs().max() > 0.1


NETWORKS = {
    "mlp": (lambda: mlp(4, (3,), 1), (4,)),
    "deeper": (lambda: mlp(3, (2, 2), 2), (3,)),
    "zeros and ones": (lambda: mlp(4, (3,), 1, "binary"), (4,)),
    "threshold": (lambda: nn.Sequential(BinaryLinear(4, 3), Threshold(), BinaryLinear(3, 1)), (4,)),
    "conv": (
        lambda: nn.Sequential(BinaryConv2d(1, 2, 2), Sign(), Flatten(), BinaryLinear(8, 1)),
        (1, 3, 3),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_small_nets_are_near_enumeration(name):
    """Three to eight terms a sum are far from Gaussian, so near means a fifth of the spread."""
    make, shape = NETWORKS[name]
    program = program_of(make(), shape)
    probability, x = probabilities(5, program.num_bits), inputs_of(6, shape, "±1")
    found = moments(program, probability, x)
    mean, variance, _ = exact(program, probability, x)
    assert ((found.mean.flatten(1) - mean).abs() < 0.2 * variance.sqrt() + 0.05).all()
    assert (spread_of(found).flatten(1) / variance).log().abs().max() < math.log(1.5)


@pytest.mark.parametrize("kind", ["±1", "0/1"])
def test_first_layer_moments_agree_with_sampled_nets(kind):
    program = program_of(BinaryLinear(21, 4), (21,))
    probability, x = probabilities(7, program.num_bits), inputs_of(8, (21,), kind)
    found = moments(program, probability, x)
    mean, error, variance = sampled(program, probability, x)
    assert ((found.mean - mean).abs() < FIVE_ERRORS * error).all()
    # a sum of bits has a fourth moment below the Gaussian's: √(2/n) bounds the relative error
    assert ((spread_of(found) / variance - 1).abs() < FIVE_ERRORS * math.sqrt(2 / NETS)).all()


def probability_of_positive(probability: torch.Tensor, x: torch.Tensor, low: int) -> torch.Tensor:
    """P(Σ w·x > 0) of units (U, n) by convolving the laws of their terms, x (n,) in {−1, 0, 1}."""
    num_units, num_terms = probability.shape
    law = torch.zeros(num_units, 2 * num_terms + 1, dtype=torch.float64)  # of −n … n
    law[:, num_terms] = 1.0
    for p, value in zip(probability.double().T[:, :, None], x.tolist(), strict=True):
        law = p * law.roll(value, 1) + (1 - p) * law.roll(low * value, 1)
    return law[:, num_terms + 1 :].sum(1)


@pytest.mark.parametrize(("width", "coding"), [(100, "bipolar"), (101, "bipolar"), (100, "binary")])
@pytest.mark.parametrize("kind", ["±1", "0/1"])
def test_the_mean_of_a_second_layer_is_right_to_a_hundredth(width, coding, kind):
    """Its exact value needs the mean of each hidden unit only, which convolution gives.

    The hundredth is of a standard deviation of the sum.
    """
    program = program_of(mlp(width, (width,), 2, coding), (width,))
    probability, x = probabilities(11, program.num_bits), inputs_of(12, (width,), kind, 1)
    low, split = program.layers[0].low, width * width
    hidden = 2 * probability_of_positive(probability[:split].view(width, width), x[0], low) - 1
    weight = (low + (1 - low) * probability[split:].double()).view(2, width)
    found = moments(program, probability, x)
    error = (found.mean[0] - weight @ hidden).abs() / spread_of(found)[0].sqrt()
    assert error.max() < 0.01


@pytest.mark.parametrize("low", [-1, 0])
def test_a_pool_is_the_probability_that_any_bit_is_one(low):
    chance = probabilities(13, 2 * 1 * 4 * 4).view(2, 1, 4, 4)
    span = 1 - low
    values = Moments(low + span * chance, span**2 * chance * (1 - chance), chance[:1], low)
    found = propagate(MaxPool((2, 2), (2, 2)), chance[:0], values)
    for row, column in itertools.product(range(2), range(2)):
        window = chance[:, 0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        any_one = 1 - (1 - window).flatten(1).prod(1)
        assert torch.allclose(found.mean[:, 0, row, column], low + span * any_one)
        spread = span**2 * any_one * (1 - any_one)
        assert torch.allclose(spread_of(found)[:, 0, row, column], spread, atol=1e-6)


def test_a_pool_before_its_step_is_the_same_net():
    images = 2 * bits(15, 3, 1, 5, 5).to(torch.int8) - 1
    before = nn.Sequential(
        BinaryConv2d(1, 3, 2), MaxPool2d(2), Sign(), Flatten(), BinaryLinear(12, 2)
    )
    behind = nn.Sequential(
        BinaryConv2d(1, 3, 2), Sign(), MaxPool2d(2), Flatten(), BinaryLinear(12, 2)
    )
    probability = probabilities(16, 36)
    one, other = (
        class_probabilities(program_of(m, (1, 5, 5)), probability, images) for m in (before, behind)
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize(("unit", "background"), [(Sign(), -1), (Threshold(), 0)])
def test_units_over_a_background_of_zeros_are_not_positive(unit, background):
    """Weights cannot move a sum of zeros: it is a tie, which no net takes for positive."""
    image = torch.zeros(1, 1, 4, 8, dtype=torch.uint8)
    image[..., 6:] = 200
    program = program_of(nn.Sequential(BinaryConv2d(1, 3, 2, stride=2), unit), (1, 4, 8))
    found = moments(program, probabilities(23, 12), image)
    empty, full = (..., slice(0, 3)), (..., slice(3, None))
    states = bits(24, 1, 50, 12)
    seen = program.evaluate(states, numbers(image)[:, None])
    assert (seen[empty] == background).all()
    assert (found.mean[empty] == background).all()
    assert (spread_of(found)[empty] == 0).all()
    assert (spread_of(found)[full] > 0).all()


def test_centred_levels_are_levels_minus_a_number():
    image = torch.arange(0, 256, 16, dtype=torch.uint8).view(1, 16)
    program = program_of(mlp(16, (5, 5), 3), (16,))
    probability = probabilities(29, program.num_bits)
    found = moments(program, probability, centred(image, 64))
    plain = moments(program, probability, numbers(image) - 64 / 256)
    assert torch.equal(found.mean, plain.mean)
    assert torch.equal(spread_of(found), spread_of(plain))


def test_certain_bits_give_the_net_they_spell():
    program = program_of(mlp(9, (7, 5), 3), (9,))
    states, x = bits(17, program.num_bits), inputs_of(18, (9,), "±1", 20)
    found = moments(program, states.float(), x)
    assert torch.equal(found.mean, program.evaluate(states[None, None], x[:, None].float())[:, 0])


@given(seed=st.integers(0, 1000), num=st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_probabilities_add_up_and_do_not_depend_on_chunks(seed, num):
    program = program_of(mlp(8, (6,), 3), (8,))
    probability, x = probabilities(seed, program.num_bits), inputs_of(seed, (8,), "0/1", num)
    whole, parts = (class_probabilities(program, probability, x, memory) for memory in (2**28, 1))
    assert torch.allclose(whole.sum(1), torch.ones(num, dtype=torch.float64))
    assert torch.allclose(whole, parts, atol=1e-5)


def test_probabilities_at_a_lower_beta_are_those_of_weaker_fields():
    program = program_of(mlp(8, (6,), 3), (8,))
    field, x = torch.linspace(-4, 4, program.num_bits).double(), inputs_of(3, (8,), "0/1", 12)
    weaker = class_probabilities(program, torch.sigmoid(0.3 * field), x)
    assert torch.allclose(
        class_probabilities(program, torch.sigmoid(field), x, beta=0.3), weaker, atol=1e-6
    )
    certain = (field > 0).double()
    assert torch.allclose(
        class_probabilities(program, certain, x, beta=0.9),
        class_probabilities(program, certain, x),
        atol=1e-4,
    )


@pytest.mark.parametrize("num", [100, 101])
@pytest.mark.parametrize("label", [0, 1])
def test_the_gradient_is_the_message_of_the_multilinear_probability(num, label):
    """∂ log Z/∂p = (Z with w = 1 − Z with w = 0)/Z, by convolution, to 2 % of the largest."""
    program = program_of(BinaryLinear(num, 1), (num,))
    probability = probabilities(19, num).requires_grad_()
    x = inputs_of(20, (num,), "±1", 1)
    log_z = log_probability(moments(program, probability, x), torch.tensor([label]))
    (gradient,) = torch.autograd.grad(log_z.sum(), probability)
    fixed = probability.detach()
    pinned = torch.where(torch.eye(num).bool(), torch.tensor([1.0, 0.0])[:, None, None], fixed)
    rows = torch.cat([fixed[None], *pinned])
    right = probability_of_positive(rows, x[0], low=-1)
    right = right if label == 1 else 1 - right
    slope = (right[1 : num + 1] - right[num + 1 :]) / right[0]
    assert ((gradient - slope).abs() < 0.02 * slope.abs().max()).all()


def test_the_probability_of_a_class_is_near_that_of_the_largest_gaussian():
    """To 0.06 of draws, by softmax; the variances of the outputs are alike, as in a net."""
    draws = torch.Generator().manual_seed(21)
    mean = torch.randn(1, 5, generator=draws)
    won = (mean + torch.randn(200_000, 5, generator=draws)).argmax(1)
    shares = torch.bincount(won, minlength=5) / 200_000
    found = torch.stack(
        [
            log_probability(Moments(mean, torch.ones(1, 5), None), torch.tensor([c]))
            for c in range(5)
        ]
    ).exp()[:, 0]
    assert (found - shares).abs().max() < 0.06


def test_parts_without_moments_are_refused():
    program = program_of(nn.Sequential(BinaryLinear(4, 3), nn.Tanh(), BinaryLinear(3, 1)), (4,))
    with pytest.raises(TypeError, match="nodes are not implemented"):
        moments(program, torch.full((15,), 0.5), torch.ones(1, 4, dtype=torch.int8))
    pooled = nn.Sequential(BinaryConv2d(1, 1, 1), MaxPool2d(2), Flatten(), BinaryLinear(4, 1))
    with pytest.raises(TypeError, match="moments of a pool need bits"):
        moments(program_of(pooled, (1, 4, 4)), torch.full((5,), 0.5), torch.ones(1, 1, 4, 4))


def test_two_layers_without_a_step_keep_the_lattice():
    """±1 through two layers of 3 and 2 units: sums of three odd numbers are odd."""
    program = Program((3,), (Linear(-1, 3, 3), Linear(-1, 3, 1)))
    found = moments(program, torch.full((12,), 0.5), torch.ones(1, 3, dtype=torch.int8))
    assert found.parity is not None
    assert found.parity.item() == 1


def test_a_gate_opens_as_often_as_in_sampled_nets():
    """The first layer is Gaussian enough at 200 inputs: the share of open gates is near."""
    program = program_of(nn.Sequential(BinaryLinear(200, 3), Gate(12.5)), (200,))
    probability, x = probabilities(5, 600), torch.randn(4, 200, generator=torch.manual_seed(1))
    drawn = torch.rand(4000, 600, generator=torch.manual_seed(2)) < probability
    share = program.evaluate(drawn[None], x[:, None]).mean(1)
    found = moments(program, probability, x)
    assert (found.mean - share).abs().max() < FIVE_ERRORS * 0.5 / math.sqrt(4000) + 0.01
    torch.testing.assert_close(spread_of(found), found.mean * (1 - found.mean))
    again = program_from_nodes((200,), program.to_dict()["nodes"])
    assert again == program
