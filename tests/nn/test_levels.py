"""Weights of several digits, grouped convolutions and activations of a few bits."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitrail.errors import DataError
from vitrail.nn import (
    BinaryConv1d,
    BinaryConv2d,
    BinaryLinear,
    Levels,
    Sign,
    get_bits,
    num_weights,
    program_of,
    set_bits,
)
from vitrail.nn.moments import moments
from vitrail.nn.nodes import Conv, node_from_dict
from vitrail.nn.nodes import Levels as LevelsNode
from vitrail.nn.program import program_from_nodes


def few_bits() -> nn.Sequential:
    """Every part at once: digits, groups, padding, strides, pools."""
    torch.manual_seed(0)
    return nn.Sequential(
        BinaryConv2d(1, 4, 3, stride=2, padding=1, digits=3),
        Levels(4, bits=3),
        BinaryConv2d(4, 6, 3, padding=1, groups=2, digits=2),
        Levels(6, bits=4),
        nn.MaxPool2d(2),
        nn.Flatten(),
        BinaryLinear(6 * 4, 8, digits=1),
        Levels(8, bits=2),
        BinaryLinear(8, 3, digits=2),
    )


def images(count: int = 50) -> torch.Tensor:
    return torch.randint(0, 256, (count, 1, 8, 8), generator=torch.Generator().manual_seed(1))


def test_a_program_of_few_bits_computes_what_the_module_does():
    module, x = few_bits(), images().float()
    for _ in range(100):
        module(x)  # running means and variances
    program = program_of(module, (1, 8, 8))
    assert not program.opaque
    assert program.num_bits == num_weights(module) == 3 * 36 + 2 * 108 + 192 + 2 * 24
    expected = module.eval()(x)
    found = program.evaluate(get_bits(module)[None, None], x[:, None])[:, 0]
    assert torch.equal(found, expected)
    assert torch.equal(found, found.round())
    assert len(found.unique(dim=0)) > 20


def test_levels_round_as_training_does_up_to_a_level():
    module, x = Levels(5, bits=4), 40 * torch.randn(4000, 5) + torch.arange(5.0) * 30
    x = x.round()
    with torch.no_grad():
        module.gain.copy_(torch.tensor([1.0, -3.0, 5.0, 8.0, 0.5]))
    for _ in range(300):
        seen = module(x)
    apart = (module.eval()(x) - seen).abs()
    assert apart.max() <= 1
    assert apart.mean() < 0.05


def test_levels_in_whole_numbers_agree_with_their_formula():
    node = LevelsNode(7, 5, 2, (3, 200), (-20, 100))
    x = torch.arange(-60, 60.0)
    found = node.evaluate(torch.zeros(0), torch.stack([x, x], 1)[:, None])[:, 0]
    for channel in range(2):
        numbers = [
            min(7, max(0, (node.scale[channel] * int(v) + (node.offset[channel] << 2)) >> 5))
            for v in x.tolist()
        ]
        assert found[:, channel].tolist() == numbers
    with pytest.raises(ValueError, match="levels of 2 channels"):
        node.output_shape((3, 4))


@pytest.mark.parametrize("digits", [1, 2, 4])
@pytest.mark.parametrize("coding", ["bipolar", "binary"])
def test_weights_are_spelled_by_their_digits(digits, coding):
    layer = BinaryLinear(50, 40, coding, digits=digits)
    parts = 2**digits
    numbers = set(layer.weight.flatten().tolist())
    expected = range(1 - parts, parts, 2) if coding == "bipolar" else range(parts)
    assert numbers == {float(number) for number in expected}
    bits = get_bits(layer)
    assert torch.equal(get_bits(set_bits(layer, ~bits)), ~bits)
    assert torch.equal(get_bits(set_bits(layer, bits)), bits)
    program = program_of(layer, (50,))
    weights = program.evaluate(bits[None, None], torch.eye(50)[:, None])[:, 0].T
    assert torch.equal(weights, layer.weight)
    layer.weight.sum().backward()
    assert layer.latent.grad is not None
    assert (layer.latent.grad == 1).all()


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_grouped_convolutions_agree_with_torch_and_with_their_edges(groups):
    node = Conv(-1, 4, 8, (3, 2), (2, 1), (1, 0), groups=groups)
    bits = torch.rand(node.num_bits) < 0.5
    x = torch.randint(-3, 4, (5, 4, 6, 5)).float()
    weights = (2.0 * bits - 1).view(node.weight_shape)
    expected = F.conv2d(x, weights, None, (2, 1), (1, 0), 1, groups)
    assert torch.equal(node.evaluate(bits[None, None], x[:, None])[:, 0], expected)
    edges = node.edges(torch.arange(4 * 6 * 5).view(4, 6, 5).numpy())
    unit, value, weight = map(torch.from_numpy, (edges.unit, edges.value, edges.weight))
    terms = weights.flatten()[weight] * x.flatten(1)[:, value]
    sums = torch.zeros(5, expected[0].numel()).index_add(1, unit, terms)
    assert torch.equal(sums, expected.flatten(1))


def test_one_dimensional_and_depthwise_convolutions_have_programs():
    module = nn.Sequential(
        BinaryConv1d(4, 4, 3, groups=4), Sign(), nn.Flatten(), BinaryLinear(24, 1)
    )
    program = program_of(module, (4, 8))
    x = torch.randint(0, 2, (10, 4, 8)).float()
    found = program.evaluate(get_bits(module)[None, None], x[:, None])[:, 0]
    assert torch.equal(found, module(x))
    assert program.wiring is not None
    with pytest.raises(ValueError, match="groups"):
        Conv(-1, 4, 6, (3,), (1,), (0,), groups=3)


def test_files_keep_nets_of_few_bits_and_refuse_damaged_ones():
    program = program_of(few_bits(), (1, 8, 8))
    nodes = program.to_dict()["nodes"]
    assert isinstance(nodes, list)
    assert program_from_nodes((1, 8, 8), nodes) == program
    levels = dict(nodes[1])
    for damage in ({"scale": [1]}, {"top": 0}, {"offset": [300] * 4}, {"shift": -1}):
        with pytest.raises(DataError):
            node_from_dict(levels | damage)
    with pytest.raises(DataError):
        node_from_dict(dict(nodes[2]) | {"groups": 5})


def test_what_needs_single_bits_says_so():
    program = program_of(few_bits(), (1, 8, 8))
    assert program.wiring is None
    assert program.shallow is None
    half = torch.full((program.num_bits,), 0.5)
    with pytest.raises(TypeError, match="solver='ste'"):
        moments(program, half, torch.zeros(1, 1, 8, 8))

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = BinaryLinear(4, 4, digits=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.layer(x)

    with pytest.raises(ValueError, match="several digits"):
        program_of(Residual(), (4,))
