"""Packed prediction against the program's own evaluation."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.kernels.cpu.predict import Nets, outputs, tally
from vitrail.model import voting
from vitrail.model.model import outputs_of
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
    packed = Nets.of(bits[:, 0].numpy(), hidden)
    assert torch.equal(torch.from_numpy(outputs(x.numpy(), packed)), exact)
    told = torch.cat(list(outputs_of(net, bits, x)))
    assert torch.equal(told[:, :, 0, 0], exact)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 600), st.integers(1, 300), st.integers(1, 40), st.integers(1, 5),
    st.integers(1, 4), st.integers(0, 9),
)  # fmt: skip
def test_votes_are_added_up_as_defined(rows, inputs, hidden, networks, nets, seed):
    made = torch.Generator().manual_seed(seed)
    net = program_of(mlp(inputs, (hidden,), 1), (inputs,))
    x = torch.randint(0, 2, (rows, inputs), generator=made).to(torch.int8)
    bits = torch.randint(0, 2, (networks, nets, net.num_bits), generator=made).bool()
    bits &= torch.rand(networks, nets, 1, generator=made) > torch.rand(1, generator=made)
    votes = torch.randint(1, 50, (networks, nets), generator=made)
    clip = 1 + 2 * int(torch.randint(0, hidden + 1, (1,), generator=made))
    outputs_ = net.evaluate(bits.flatten(0, 1)[None], x[:, None].float())
    raw = voting.raw_margins(outputs_.reshape(rows, networks, nets, 1))
    packed = Nets.of(bits.flatten(0, 1).numpy(), hidden)
    for told, exact in zip(
        tally(x.numpy(), packed, votes.numpy(), clip), voting.tally(raw, votes, clip), strict=True
    ):
        assert torch.equal(torch.from_numpy(told), exact[..., 0])


def test_inputs_of_signs_are_left_to_the_program():
    made = torch.Generator().manual_seed(0)
    net = program_of(mlp(20, (3,), 1), (20,))
    x = 2 * torch.randint(0, 2, (30, 20), generator=made).to(torch.int8) - 1
    bits = torch.randint(0, 2, (4, 1, net.num_bits), generator=made).bool()
    exact = net.evaluate(bits[:, 0][None], x[:, None].float()).reshape(30, 4)
    assert torch.equal(torch.cat(list(outputs_of(net, bits, x)))[:, :, 0, 0], exact)
