"""Networks of bits: many configurations at once equal one after another."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail import nn

NETS = {
    "linear": (lambda: nn.mlp(6), (6,)),
    "mlp": (lambda: nn.mlp(5, (3, 2), 3), (5,)),
    "binary-weights": (lambda: nn.mlp(5, (3,), 2, coding="binary"), (5,)),
    "paper-conv": (nn.paper_conv, (1, 14, 14)),
    "padded-conv": (
        lambda: nn.Sequential(
            nn.BinaryConv2d(2, 3, (3, 2), stride=(1, 2), padding=(1, 0), coding="binary"),
            nn.Sign(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.BinaryLinear(3 * 2 * 1, 2),
        ),
        (2, 5, 5),
    ),
    "series": (
        lambda: nn.Sequential(
            nn.BinaryConv1d(3, 4, 3, stride=2, padding=1),
            nn.Sign(),
            nn.Flatten(),
            nn.BinaryLinear(4 * 5, 2),
        ),
        (3, 9),
    ),
    "nested": (lambda: nn.Sequential(nn.Flatten(), nn.mlp(4, (2,)), nn.Threshold()), (2, 2)),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("layout", ["per factor", "pooled", "one input each"])
def test_many_configurations_equal_one_after_another(name, layout):
    make, shape = NETS[name]
    net = make()
    generator = torch.Generator().manual_seed(0)
    rows = 1 if layout == "pooled" else 4
    bits = torch.rand(rows, 3, nn.num_weights(net), generator=generator) < 0.5
    depth = 3 if layout == "one input each" else 1
    x = (torch.rand(4, depth, *shape, generator=generator) < 0.5).float() * 2 - 1
    out = nn.program_of(net, shape).evaluate(bits, x)
    assert out.shape[:2] == (4, 3)
    for f in range(4):
        for s in range(3):
            nn.set_bits(net, bits[f % rows, s])
            assert torch.equal(out[f, s], net(x[f, s % depth][None])[0])


def test_the_papers_nets_have_the_papers_sizes():
    sizes = [nn.num_weights(net) for net in (nn.paper_linear(), nn.paper_mlp(), nn.paper_conv())]
    assert sizes == [196, 394, 89]


@given(st.integers(0, 2**32 - 1))
def test_bits_go_in_and_out(seed):
    net = nn.mlp(4, (3,))
    bits = torch.rand(nn.num_weights(net), generator=torch.Generator().manual_seed(seed)) < 0.5
    assert torch.equal(nn.get_bits(nn.set_bits(net, bits)), bits)


def test_ties_are_not_positive():
    x = torch.tensor([0.0, -1.0, 2.0])
    assert nn.Sign()(x).tolist() == [-1, -1, 1]
    assert nn.Threshold()(x).tolist() == [0, 0, 1]


def test_gradients_pass_straight_through_and_stop_outside_one():
    x = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
    nn.Sign()(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1, 1, 0]


def test_scratch_grows_with_the_net():
    nets = nn.mlp(10), nn.mlp(10, (50,))
    floats = [nn.program_of(net, (10,)).scratch_floats for net in nets]
    assert floats[1] > floats[0]


def test_wrong_number_of_bits_is_refused():
    with pytest.raises(ValueError, match="has 6 weights"):
        nn.set_bits(nn.mlp(6), torch.zeros(5, dtype=torch.bool))


def test_an_empty_layer_is_refused():
    with pytest.raises(ValueError, match="at least one unit"):
        nn.mlp(4, (0,))


def test_gradients_pass_a_step_within_its_window():
    x = torch.tensor([-5.0, -2.0, 0.5, 2.0, 5.0], requires_grad=True)
    nn.Threshold(window=3)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(("units", "background"), [(nn.Sign, -1), (nn.Threshold, 0)])
def test_hidden_units_of_convolutions_are_of_the_kind_asked_for(units, background):
    net = nn.conv((1, 8, 8), (2, 3), num_outputs=2, units=units)
    hidden = net[:2](torch.zeros(1, 1, 8, 8))
    assert (hidden == background).all()
