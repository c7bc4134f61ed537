"""One description of a net, made from any module, and read back from a file."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from vitrail.errors import DataError
from vitrail.nn import (
    BinaryConv2d,
    BinaryLinear,
    Program,
    Sign,
    Threshold,
    mlp,
    num_weights,
    paper_conv,
    program_of,
    set_bits,
)
from vitrail.nn.nodes import KINDS
from vitrail.nn.opaque import Opaque
from vitrail.nn.program import linear_program, program_from_nodes


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = BinaryLinear(6, 4), nn.BatchNorm1d(4), BinaryLinear(4, 1)
        self.act = Sign()
        shift = torch.tensor([1.0, -1.0, 0.5, 0.0])
        self.norm.get_buffer("running_mean").copy_(shift)

    def forward(self, x):
        return self.last(self.act(self.norm(self.first(x))))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = BinaryLinear(6, 6), Sign(), BinaryLinear(6, 2, "binary")

    def forward(self, x):
        return self.last(self.act(self.first(x)) + x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.act, self.last = BinaryLinear(6, 6), Sign(), BinaryLinear(6, 1)

    def forward(self, x):
        return self.last(self.act(self.layer(self.act(self.layer(x)))))


class Flattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = BinaryLinear(6, 1)

    def forward(self, x):
        return self.layer(torch.flatten(x, 1))


class Mixed(nn.Module):
    """A real layer before a binary one: its weights are constants."""

    def __init__(self):
        super().__init__()
        self.real, self.drop = nn.Linear(6, 5), nn.Dropout(0.5)
        self.act, self.last = Threshold(), BinaryLinear(5, 1)

    def forward(self, x):
        return self.last(self.act(self.drop(self.real(x))))


MODULES = {
    "wrapped sequential": (lambda: Wrapped(mlp(6, (3,))), (6,), False),
    "wrapped twice": (lambda: Wrapped(nn.Sequential(Wrapped(mlp(6, (3, 2), 3)))), (6,), False),
    "wrapped conv": (lambda: Wrapped(paper_conv()), (1, 14, 14), False),
    "own flatten": (Flattened, (2, 3), False),
    "plain torch": (lambda: nn.Sequential(nn.Linear(6, 3, bias=False), Sign()), (6,), False),
    "plain conv": (lambda: nn.Conv2d(2, 3, 2, stride=2, bias=False), (2, 4, 4), False),
    "batch norm": (Normed, (6,), True),
    "residual": (Residual, (6,), True),
    "layer used twice": (Shared, (6,), True),
    "biases": (lambda: nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 2)), (6,), True),
    "real and binary": (Mixed, (6,), True),
    "one layer twice in a row": (lambda: nn.Sequential(*[BinaryLinear(6, 6)] * 2), (6,), True),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_program_computes_what_its_module_does(name):
    make, shape, opaque = MODULES[name]
    module = make()
    program = program_of(module, shape)
    assert program.opaque == opaque
    assert program.num_bits == num_weights(module)
    draws = torch.Generator().manual_seed(0)
    bits = torch.rand(4, 3, program.num_bits, generator=draws) < 0.5
    x = (torch.rand(4, 1, *shape, generator=draws) < 0.5).float() * 2 - 1
    out = program.evaluate(bits, x)
    module.eval()
    with torch.no_grad():
        for f in range(4):
            for s in range(3):
                expected = set_bits(module, bits[f, s])(x[f])[0]
                torch.testing.assert_close(out[f, s], expected)


def test_a_module_is_copied_and_its_mode_left_alone():
    module = Mixed()
    program = program_of(module, (6,))
    assert module.training
    bits, x = torch.ones(1, 1, 5, dtype=torch.bool), torch.ones(1, 1, 6)
    first = program.evaluate(bits, x)
    with torch.no_grad():
        module.real.weight.fill_(-9.0)
    assert torch.equal(program.evaluate(bits, x), first)


def test_constants_are_part_of_the_fingerprint():
    torch.manual_seed(0)
    module = Normed()
    before = program_of(module, (6,))
    assert before == program_of(module, (6,))
    set_bits(module, torch.ones(28, dtype=torch.bool))
    assert before == program_of(module, (6,)), "bits are no part of what a net is"
    module.norm.get_buffer("running_mean").add_(1)
    assert before != program_of(module, (6,))


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = BinaryLinear(6, 1)

    def forward(self, x):
        return self.layer(x) if x.sum().item() > 0 else -self.layer(x)


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = BinaryLinear(6, 1)

    def forward(self, x):
        return self.layer(x) + torch.rand(1)


@pytest.mark.parametrize("module", [Branching(), Drawing()], ids=["branching", "drawing"])
def test_what_cannot_be_vectorised_is_refused_in_a_sentence(module):
    with pytest.raises(ValueError, match="cannot be evaluated for many weights at once") as caught:
        program_of(module, (6,))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "shape", "sentence"),
    [
        (nn.Sequential(nn.Flatten(), nn.Tanh()), (6,), "has no weights"),
        (mlp(5), (4,), "a linear layer of 5 inputs got values of shape"),
        (BinaryConv2d(1, 2, 3), (2, 5, 5), r"shape \(1, height, width\)"),
        (BinaryConv2d(1, 2, 3), (1, 2, 2), "does not fit into"),
        (nn.Sequential(nn.Linear(6, 2), nn.Linear(3, 1)), (6,), "cannot be evaluated"),
    ],
    ids=["no weights", "inputs", "channels", "kernel", "own layers"],
)
def test_what_does_not_fit_together_is_refused(module, shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        program_of(module, shape)


def test_a_perceptron_is_a_program_of_one_layer():
    program = linear_program(7, low=0)
    assert program == program_of(BinaryLinear(7, 1, "binary"), (7,))
    assert program.perceptron_low == 0
    assert program.hidden == ()
    assert program_of(mlp(7, (3,)), (7,)).perceptron_low is None


def test_hidden_units_are_told_of_multilayer_perceptrons_alone():
    assert program_of(mlp(6, (3, 2), 4), (6,)).hidden == (3, 2)
    assert program_of(paper_conv(), (1, 14, 14)).hidden is None
    assert program_of(Normed(), (6,)).hidden is None


def known_programs():
    """Nets of every kind of node that a file can hold."""
    sizes = st.integers(1, 4)
    lows = st.sampled_from(["bipolar", "binary"])

    def build(channels, kernel, stride, padding, pool, outputs, coding, active):
        layers = [BinaryConv2d(2, channels, kernel, stride, padding, coding), active()]
        layers += [nn.MaxPool2d(2)] if pool else []
        height = (6 + 2 * padding - kernel) // stride + 1
        height = (height - 2) // 2 + 1 if pool else height
        if height < 1:
            return program_of(mlp(5, (channels,), outputs, coding), (5,))
        flat = channels * height * height
        layers += [nn.Flatten(), BinaryLinear(flat, outputs, coding)]
        return program_of(nn.Sequential(*layers), (2, 6, 6))

    return st.builds(
        build,
        sizes,
        st.integers(1, 3),
        st.integers(1, 2),
        st.integers(0, 1),
        st.booleans(),
        sizes,
        lows,
        st.sampled_from([Sign, Threshold]),
    )


@settings(max_examples=40)
@given(known_programs())
def test_a_program_comes_back_from_its_file(program):
    state = json.loads(json.dumps(program.to_dict()))
    assert program_from_nodes(tuple(state["input_shape"]), state["nodes"]) == program


@pytest.mark.parametrize(
    "nodes",
    [
        [{"kind": "linear", "low": -1, "inputs": 6, "outputs": 0}],
        [{"kind": "linear", "low": 3, "inputs": 6, "outputs": 1}],
        [{"kind": "linear", "low": -1, "inputs": 5, "outputs": 1}],
        [{"kind": "lstm"}],
        [{"kind": "conv", "low": 0, "inputs": 1, "outputs": 1, "kernel": [3], "stride": [1, 1],
          "padding": [0]}],
        [{"kind": "flatten"}],
        [{"kind": "flatten"}] * 2000,
        ["linear"],
        [None],
    ],
)  # fmt: skip
def test_malformed_layers_of_a_file_are_refused(nodes):
    with pytest.raises(ValueError, match=r".+") as caught:
        program_from_nodes((6,), nodes)
    assert isinstance(caught.value, DataError) or "no weights" in str(caught.value)


def test_every_kind_of_node_can_be_written():
    assert not issubclass(Opaque, tuple(KINDS.values()))
    program = program_of(Normed(), (6,))
    assert program.to_dict()["nodes"] is None
    assert isinstance(program, Program)
