"""Compiled damping against torch, bit for bit, with every rounding boundary decided by torch."""

from dataclasses import replace

import pytest
import torch
from cases_of_kernels import generator, perceptrons
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.graph import dense
from vitrail.kernels.cpu import damping
from vitrail.numerics import LATTICE, SAMPLED_LIMIT, on_lattice
from vitrail.updates import flip


def case(seed, num=64, arity=33, starts=False):
    draws = generator(seed)
    factors = perceptrons(num, arity)
    if starts:
        places = torch.randint(0, 3, (num,), generator=draws) * arity
        factors = replace(factors, scope=dense(num, arity, places))
    old = on_lattice((torch.rand(num, arity, generator=draws).double() * 2 - 1) * SAMPLED_LIMIT)
    new = (torch.rand(num, arity, generator=draws).double() * 2 - 1) * SAMPLED_LIMIT
    return factors, new, old.float()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1e-3, 0.1, 0.2, 0.5, 0.9, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_compiled_damping_equals_torch(seed, share, some, starts):
    factors, new, old = case(seed, starts=starts)
    rows = torch.randperm(len(old), generator=generator(seed))[:9].sort().values if some else None
    fresh = new if rows is None else new[rows]
    gamma = torch.full((len(fresh),), share, dtype=torch.float64)
    update, width = flip(5), 3 * factors.arity
    given = fresh, old, gamma, rows, width
    defined, moved, change = update._mixed(factors, *given, backend="torch")
    found, found_moved, found_change = update._mixed(factors, *given)
    assert torch.equal(found, defined)
    assert torch.equal(found_moved, moved)
    torch.testing.assert_close(found_change, change, rtol=0, atol=1e-12)


def test_what_lies_on_a_boundary_is_left_to_torch():
    factors, _, old = case(3, num=4)
    boundary = torch.sigmoid((torch.round(old.double() * LATTICE) + 0.5) / LATTICE)
    half = torch.logit(
        2 * boundary - torch.sigmoid(old.double())
    )  # mixed half and half it is there
    gamma = torch.full((4,), 0.5, dtype=torch.float64)
    given = half, old, gamma, None, factors.arity
    assert damping.mixed(factors, *given)[3].tolist() == [0, 1, 2, 3]
    for mine, torchs in zip(
        flip(5)._mixed(factors, *given),
        flip(5)._mixed(factors, *given, backend="torch"),
        strict=True,
    ):
        torch.testing.assert_close(mine, torchs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_few_rows_are_left_to_torch(share):
    """A message is within 2e-6 steps of a boundary with probability 4e-6: 0.08 of 20,000."""
    factors, new, old = case(5, num=200, arity=100)
    gamma = torch.full((200,), share, dtype=torch.float64)
    left = damping.mixed(factors, new, old, gamma, None, 100)[3]
    assert len(left) <= 5  # more than five has a probability below 1e-9
