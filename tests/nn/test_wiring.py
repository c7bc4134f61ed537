"""Wirings against the modules they were read from."""

import numpy as np
import pytest
import torch
from torch import nn

from vitrail.nn import (
    BinaryConv1d,
    BinaryConv2d,
    BinaryLinear,
    Sign,
    Threshold,
    mlp,
    num_weights,
    paper_conv,
    program_of,
)

NETS = {
    "linear": (mlp(7), (7,)),
    "linear with sign": (nn.Sequential(BinaryLinear(6, 1, "binary"), Sign()), (6,)),
    "one hidden": (mlp(9, (4,)), (9,)),
    "three classes": (mlp(9, (4, 5), 3), (9,)),
    "paper conv": (paper_conv(), (1, 14, 14)),
    "series": (
        nn.Sequential(
            BinaryConv1d(2, 3, 4, stride=3, padding=2, coding="binary"),
            Threshold(),
            nn.Flatten(),
            BinaryLinear(3 * 4, 1),
        ),
        (2, 9),
    ),
    "padded conv": (
        nn.Sequential(
            BinaryConv2d(2, 3, (2, 3), stride=(1, 2), padding=(1, 2)),
            Sign(),
            nn.Flatten(),
            BinaryLinear(3 * 6 * 4, 2, "binary"),
        ),
        (2, 5, 6),
    ),
}


def wired_outputs(wiring, bits, inputs):
    """Outputs (F, C) by following the edges one by one."""
    num_inputs = inputs.shape[1]
    values = np.zeros((num_inputs + wiring.layers[-1], inputs.shape[0]), np.int64)
    values[:num_inputs] = inputs.T
    sums = np.zeros((wiring.layers[-1], inputs.shape[0]), np.int64)
    factors = np.where(bits, 1, wiring.low)
    weight = np.repeat(np.arange(len(bits)), np.diff(wiring.uses))
    for layer, inactive in enumerate(wiring.activation):
        first, end = wiring.layers[layer : layer + 2]
        mine = wiring.layer_of[weight] == layer
        for q, unit, value in zip(
            weight[mine], wiring.use_unit[mine], wiring.use_value[mine], strict=True
        ):
            sums[unit] += factors[q] * values[value]
        values[num_inputs + first : num_inputs + end] = np.where(sums[first:end] > 0, 1, inactive)
    return sums[wiring.layers[-2] :].T


@pytest.mark.parametrize("name", NETS)
def test_wiring_gives_the_outputs_of_the_module(name):
    module, shape = NETS[name]
    wiring = program_of(module, shape).wiring
    assert wiring is not None
    draws = torch.Generator().manual_seed(1)
    bits = torch.randint(0, 2, (num_weights(module),), generator=draws).bool()
    inputs = torch.randint(-1, 2, (20, *shape), generator=draws)
    summed = module[0] if name == "linear with sign" else module  # before the last step
    program = program_of(summed, shape)
    expected = program.evaluate(bits[None, None], inputs[:, None].float()).flatten(1)
    outputs = wired_outputs(wiring, bits.numpy(), inputs.flatten(1).numpy())
    np.testing.assert_array_equal(outputs, expected.numpy())
    assert wiring.output_fan_in == module[-1 if "sign" not in name else 0].in_features


@pytest.mark.parametrize("name", NETS)
def test_feeds_list_the_edges_between_units_once_more(name):
    module, shape = NETS[name]
    wiring = program_of(module, shape).wiring
    assert wiring is not None
    num_inputs = int(np.prod(shape))
    weight = np.repeat(np.arange(len(wiring.low)), np.diff(wiring.uses))
    inner = wiring.use_value >= num_inputs
    uses = {
        *zip(
            wiring.use_value[inner] - num_inputs, wiring.use_unit[inner], weight[inner], strict=True
        )
    }
    source = np.repeat(np.arange(wiring.layers[-1]), np.diff(wiring.feeds))
    feeds = [*zip(source, wiring.feed_unit, wiring.feed_weight, strict=True)]
    assert len(feeds) == len(uses)
    assert {*feeds} == uses


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Linear(4, 1), (4,)),
        (nn.Sequential(BinaryLinear(4, 3), BinaryLinear(3, 1)), (4,)),
        (nn.Sequential(BinaryLinear(4, 3), Threshold()), (4,)),
        (nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), BinaryLinear(4, 1)), (1, 4, 4)),
    ],
    ids=["real weights", "no activation", "several signs", "pooling"],
)
def test_other_modules_have_no_wiring(module, shape):
    assert program_of(module, shape).wiring is None
