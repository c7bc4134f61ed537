"""Marks that ride in the free bits of sums on the lattice."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.numerics import EXACT_LIMIT, LATTICE, marked, on_lattice, room_for_marks, unmarked


@given(ranks=st.integers(1, 600), seed=st.integers(0, 999))
def test_marks_and_sums_come_back_as_they_were(ranks: int, seed: int):
    draws = torch.Generator().manual_seed(seed)
    factors, size = 1_000_000, 7
    largest = 2 * EXACT_LIMIT * factors
    assert room_for_marks(largest, ranks) == (ranks < 383)
    if not room_for_marks(largest, ranks):
        return
    signs = torch.randint(-1, 2, (ranks, size), generator=draws)
    share = torch.rand(ranks, size, generator=draws).double()
    sums = on_lattice(signs * share * largest / ranks)
    sums[:, 0] = largest / ranks // 1  # as large as it gets
    marks = torch.rand(ranks, 2, size, generator=draws) < 1 / ranks
    marks[:, :, 1] = True  # as many as there can be
    added = sum(marked(one, some, ranks) for one, some in zip(sums, marks, strict=True))
    assert isinstance(added, torch.Tensor)
    found, any_mark = unmarked(added, ranks)
    assert torch.equal(found, sums.sum(0))
    assert torch.equal(any_mark, marks.any(0))
    assert torch.equal(found * LATTICE, (found * LATTICE).round())
