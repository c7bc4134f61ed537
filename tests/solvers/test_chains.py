"""Packed chains: step by step as the plain definition, and their law against enumeration."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_count import num_threads
from torch import Tensor

from vitrail.nn import Program, mlp, program_of
from vitrail.random import Key, Stream, philox
from vitrail.solvers.chains import USED, Chains, Sample, random_starts

FALSE_ALARM = 1e-4  # of the test of the chains' law


def sample(rows: int, inputs: int, seed: int, whole: bool = True) -> Sample:
    made = torch.Generator().manual_seed(seed)
    weight = torch.randint(1, 4, (rows,), generator=made).double()
    return Sample(
        torch.randint(0, 2, (rows, inputs), generator=made).to(torch.int8),
        torch.randint(0, 2, (rows,), generator=made),
        weight if whole else weight * 0.7,
    )


def program(inputs: int, hidden: int):
    return program_of(mlp(inputs, (hidden,), 1), (inputs,))


def plain_chain(
    key: Key,
    program: Program,
    sample: Sample,
    bits: Tensor,
    proposals: int,
    betas: tuple[float, float],
    *,
    partner: Tensor,
    swaps: float = 0.0,
    prior: Tensor | None = None,
    coupling: float = 0.0,
    ordered: Sequence[tuple[int, int]] = (),
    chain: int = 0,
    net: int = 0,
    first: int = 0,
) -> Tensor:
    """The last of `proposals` states that begin at bits (A,); every energy is counted anew.

    beta goes from the first of `betas` towards the second. partner (I,): the input whose weight
    takes part in an exchange, −1 for none; swaps: the share of exchanges among proposals. prior
    (A,): log-odds. coupling: of an input's weight and its partner's in one unit. ordered: pairs of
    inputs, the weight of the first never above that of the second; output weights stay. first:
    number of the first proposal, where a chain goes on.
    """
    weights = program.num_inputs * (program.num_bits // (program.num_inputs + 1))

    def energy(state: Tensor) -> float:
        out = program.evaluate(state[None, None], sample.inputs[:, None].to(torch.float32))
        wrong = (out.reshape(-1) > 0) != (sample.labels == 1)
        return float((sample.weight * wrong).sum())

    inputs = (partner >= 0).nonzero().flatten()

    def coupled(state: Tensor) -> float:
        signs = 2 * state[:weights].double().reshape(-1, program.num_inputs) - 1
        return coupling * float((signs[:, inputs] * signs[:, partner[inputs]]).sum())

    bits, now = bits.clone(), energy(bits)
    for step in range(proposals):
        at = torch.tensor(first + step)
        which, coin, kind = _words(key, at, chain, net)
        place = (which * program.num_bits) >> 32
        flipped = [place]
        if place < weights and kind < int(swaps * 2**32):
            neighbour = int(partner[place % program.num_inputs])
            flipped.append(place - place % program.num_inputs + neighbour)
            if neighbour < 0 or bits[flipped[0]] == bits[flipped[1]]:
                continue
        state = bits.clone()
        state[flipped] = ~state[flipped]
        if ordered and not bool(in_order(state[None], program.num_inputs, ordered)):
            continue
        after = energy(state)
        beta = betas[0] + (betas[1] - betas[0]) * step / proposals
        gain = 0.0 if prior is None else float((prior * (state.double() - bits.double())).sum())
        change = beta * (after - now) - gain - coupled(state) + coupled(bits)
        if change <= 0 or -change > math.log((coin + 0.5) / 2**32):
            bits, now = state, after
    return bits


def in_order(states: Tensor, inputs: int, ordered: Sequence[tuple[int, int]]) -> Tensor:
    """Which of the states (S, A) keep every pair in order and output weights at 1, (S,) bool."""
    units = states.shape[1] // (inputs + 1)
    weights, kept = (
        states[:, : units * inputs].reshape(-1, units, inputs),
        states[:, -units:].all(1),
    )
    for low, high in ordered:
        kept = kept & (weights[..., low] <= weights[..., high]).all(1)
    return kept


def _words(key: Key, proposal: Tensor, chain: int, net: int) -> tuple[int, int, int]:
    counter = (proposal, torch.tensor(chain), torch.tensor(net), torch.tensor(key.step))
    which, coin, kind, _ = philox(counter, key.of(Stream.CHAIN).words())
    return int(which), int(coin), int(kind)


@settings(max_examples=12, deadline=None)
@given(
    rows=st.integers(1, 150), inputs=st.integers(2, 9), hidden=st.integers(1, 6),
    seed=st.integers(0, 99), informed=st.booleans(), pairs=st.integers(0, 2),
)  # fmt: skip
def test_the_kernel_takes_the_steps_of_the_definition(rows, inputs, hidden, seed, informed, pairs):
    net, one, key = program(inputs, hidden), sample(rows, inputs, seed), Key(seed, 3)
    starts = random_starts(key, 2, 1, net.num_bits)
    partner = torch.arange(1, inputs + 1)
    partner[-1] = -1
    prior = torch.linspace(-2, 2, 2 * net.num_bits).reshape(2, 1, -1).double() if informed else None
    couplings = [0.0, 0.75]
    ordered = [(i, i + inputs // 2) for i in range(min(pairs, inputs // 2))]
    chains = Chains(
        key, [one], starts, partner=partner, swaps=0.4, prior=prior, couplings=couplings,
        ordered=[ordered] * bool(ordered),
    )  # fmt: skip
    starts = chains.bits
    assert not ordered or in_order(starts[:, 0], inputs, ordered).all()
    chains.advance(2, (0.1, 0.2), (0.4, 0.4))
    chains.advance(1, (0.4, 0.4), (0.4, 0.4))
    for number, warm in enumerate((0.1, 0.2)):
        bits, first = starts[number, 0], 0
        for sweeps, begin in ((2, warm), (1, 0.4)):
            bits = plain_chain(
                key, net, one, bits, sweeps * net.num_bits, (begin, 0.4), partner=partner,
                swaps=0.4, prior=None if prior is None else prior[number, 0],
                coupling=couplings[number], ordered=ordered, chain=number, first=first,
            )  # fmt: skip
            first += sweeps * net.num_bits
        assert torch.equal(chains.bits[number, 0], bits)
        out = net.evaluate(bits[None, None], one.inputs[:, None].float()).reshape(-1)
        wrong = (one.weight * ((out > 0) != (one.labels == 1))).sum()
        assert chains.wrong[number, 0] == wrong


def test_weights_that_are_no_whole_numbers_are_rounded_finely():
    net, key = program(5, 3), Key(1)
    whole, scaled = sample(40, 5, 2), sample(40, 5, 2, whole=False)
    starts, partner = random_starts(key, 4, 1, net.num_bits), torch.full((5,), -1)
    found = []
    for one, beta in ((whole, 0.5), (scaled, 0.5 / 0.7)):
        chains = Chains(key, [one], starts, partner=partner)
        chains.advance(5, [beta] * 4, [beta] * 4)
        found.append(chains.bits)
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("informed", "coupling", "ordered"),
    [(False, 0.0, ()), (True, 0.0, ()), (True, 0.8, ()), (True, 0.8, [(1, 0)])],
)
def test_chains_draw_from_the_posterior(informed, coupling, ordered):
    """Pearson's χ² over all configurations in 32 cells; 2000 chains, each by itself."""
    inputs = 3 if ordered else 2
    net, one = program(inputs, 3), sample(7, inputs, 5)
    num = 2000
    codes = torch.arange(2**net.num_bits)
    states = (codes[:, None] >> torch.arange(net.num_bits)) & 1 == 1
    out = net.evaluate(states[None], one.inputs[:, None].float()).reshape(7, -1)
    energy = (one.weight[:, None] * ((out > 0) != (one.labels == 1)[:, None])).sum(0)
    prior = torch.linspace(-1, 1, net.num_bits).double() if informed else None
    log = -0.5 * energy + (0 if prior is None else states.double() @ prior)
    signs = 2 * states[:, :-3].double().reshape(-1, 3, inputs) - 1
    log = log + coupling * (signs[..., 1:] * signs[..., :-1]).sum((1, 2))
    if ordered:
        log = log.where(in_order(states, inputs, ordered), -torch.inf)
    exact = torch.softmax(log, 0)
    chains = Chains(
        Key(9), [one], random_starts(Key(9), num, 1, net.num_bits),
        partner=torch.tensor([*range(1, inputs), -1]), swaps=0.3,
        prior=None if prior is None else prior.expand(num, 1, -1), couplings=[coupling] * num,
        ordered=[ordered] * bool(ordered),
    )  # fmt: skip
    chains.advance(60, [0.5] * num, [0.5] * num)
    drawn = (chains.bits[:, 0].long() * (1 << torch.arange(net.num_bits))).sum(1)
    order = exact.argsort()  # cells of like configurations, none of them nearly empty
    cell = torch.empty(len(codes), dtype=torch.long)
    cell[order] = (exact[order].cumsum(0) * 31.999).long()
    expected = num * torch.zeros(32, dtype=torch.float64).index_add(0, cell, exact)
    counts = torch.bincount(cell[drawn], minlength=32).double()
    kept = expected > 5
    statistic = float(((counts - expected)[kept].square() / expected[kept]).sum())
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / 4)  # one-sided; four tests
    free = int(kept.sum()) - 1
    limit = free * (1 - 2 / (9 * free) + z * math.sqrt(2 / (9 * free))) ** 3
    assert free > 20
    assert statistic < limit


def test_a_unit_uses_few_thresholds_of_a_monotone_column_a_priori():
    """Within five standard errors of 2,000 units; at beta near 0 there is only the prior."""
    pairs = [(i + 20, i) for i in range(20)]
    net, key, num = program(40, 5), Key(2), 400
    starts, partner = random_starts(key, num, 1, net.num_bits), torch.full((40,), -1)
    chains = Chains(key, [sample(3, 40, 0)], starts, partner=partner, ordered=[pairs])
    chains.advance(40, [1e-9] * num, [1e-9] * num)
    weights = chains.bits[:, 0, :-5].reshape(-1, 40)
    used = (weights[:, :20] & ~weights[:, 20:]).sum(1).double()
    assert abs(float(used.mean()) - USED) < 5 * (USED / len(used)) ** 0.5


def test_threads_do_not_matter_and_nets_go_their_own_ways():
    rules = ([1] * 6 + [-1] * 6, [1, -1] * 6)  # linear nets, whose answers are nearly independent
    samples = [
        replace(one, labels=(one.inputs.long() @ torch.tensor(rule) > 0).long())
        for one, rule in zip((sample(300, 12, 1), sample(200, 12, 2)), rules, strict=True)
    ]
    net, partner = program(12, 5), torch.full((12,), -1)
    starts = random_starts(Key(4), 6, 2, net.num_bits)
    found = []
    for threads in (1, 2):
        with num_threads(threads):
            chains = Chains(Key(4), samples, starts, partner=partner)
            chains.advance(40, [1.0] * 6, [3.0] * 6)
            found.append(chains.bits)
    assert torch.equal(*found)
    right = [
        (net.evaluate(found[0][None, :, n], one.inputs[:, None].float()).reshape(-1, 6) > 0)
        == (one.labels == 1)[:, None]
        for n, one in enumerate(samples)
    ]
    assert all(float(hits.double().mean()) > 0.9 for hits in right)


def test_what_can_be_packed():
    assert program(4, 3).packable
    assert not program_of(mlp(4, (), 1), (4,)).packable
    assert not program_of(mlp(4, (3,), 2), (4,)).packable
    assert not program_of(mlp(4, (3, 3), 1), (4,)).packable
