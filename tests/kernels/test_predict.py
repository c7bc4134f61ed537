"""Packed prediction against the program's own evaluation."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.kernels.cpu.predict import outputs
from vitrail.model import outputs_of
from vitrail.nn import mlp, program_of


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 90), st.integers(1, 140), st.integers(1, 9), st.integers(1, 5), st.integers(0, 9)
)
def test_popcounts_give_what_the_program_gives(rows, inputs, hidden, networks, seed):
    made = torch.Generator().manual_seed(seed)
    net = program_of(mlp(inputs, (hidden,), 1), (inputs,))
    x = torch.randint(0, 2, (rows, inputs), generator=made).to(torch.int8)
    bits = torch.randint(0, 2, (networks, 1, net.num_bits), generator=made).bool()
    exact = net.evaluate(bits[:, 0][None], x[:, None].float()).reshape(rows, networks)
    assert torch.equal(torch.from_numpy(outputs(x.numpy(), bits[:, 0].numpy(), hidden)), exact)
    told = torch.cat(list(outputs_of(net, bits, x)))
    assert torch.equal(told[:, :, 0, 0], exact)


def test_inputs_of_signs_are_left_to_the_program():
    made = torch.Generator().manual_seed(0)
    net = program_of(mlp(20, (3,), 1), (20,))
    x = 2 * torch.randint(0, 2, (30, 20), generator=made).to(torch.int8) - 1
    bits = torch.randint(0, 2, (4, 1, net.num_bits), generator=made).bool()
    exact = net.evaluate(bits[:, 0][None], x[:, None].float()).reshape(30, 4)
    assert torch.equal(torch.cat(list(outputs_of(net, bits, x)))[:, :, 0, 0], exact)
