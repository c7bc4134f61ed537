"""Flags in the free bits of sums on the lattice."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.numerics import EXACT_LIMIT, flags_fit, on_lattice, split_flags, with_flags

LARGEST = 2 * EXACT_LIMIT * 1_000_000  # largest sum of a million factors
MAX_RANKS = 381


def test_flags_fit_up_to_a_number_of_ranks():
    assert flags_fit(LARGEST, MAX_RANKS)
    assert not flags_fit(LARGEST, MAX_RANKS + 1)


@given(ranks=st.sampled_from((1, 2, 3, 64, MAX_RANKS)), seed=st.integers(0, 999))
def test_flags_and_sums_are_recovered(ranks: int, seed: int):
    draws = torch.Generator().manual_seed(seed)
    size = 7
    signs = torch.randint(-1, 2, (ranks, size), generator=draws)
    share = torch.rand(ranks, size, generator=draws).double()
    sums = on_lattice(signs * share * LARGEST / ranks)
    sums[:, 0] = LARGEST / ranks // 1  # the largest
    flags = torch.rand(ranks, 2, size, generator=draws) < 1 / ranks
    flags[:, :, 1] = True  # the most flags
    added = sum(with_flags(one, some, ranks) for one, some in zip(sums, flags, strict=True))
    assert isinstance(added, torch.Tensor)
    found, any_flag = split_flags(added, ranks)
    assert torch.equal(found, sums.sum(0))
    assert torch.equal(any_flag, flags.any(0))
