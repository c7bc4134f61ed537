"""Marks that ride in the free bits of sums on the lattice."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.numerics import EXACT_LIMIT, marked, on_lattice, room_for_marks, unmarked

LARGEST = 2 * EXACT_LIMIT * 1_000_000  # what a million factors can move
MOST_RANKS = 381


def test_there_is_room_for_marks_up_to_a_number_of_ranks():
    assert room_for_marks(LARGEST, MOST_RANKS)
    assert not room_for_marks(LARGEST, MOST_RANKS + 1)


@given(ranks=st.sampled_from((1, 2, 3, 64, MOST_RANKS)), seed=st.integers(0, 999))
def test_marks_and_sums_come_back_as_they_were(ranks: int, seed: int):
    draws = torch.Generator().manual_seed(seed)
    size = 7
    signs = torch.randint(-1, 2, (ranks, size), generator=draws)
    share = torch.rand(ranks, size, generator=draws).double()
    sums = on_lattice(signs * share * LARGEST / ranks)
    sums[:, 0] = LARGEST / ranks // 1  # as large as it gets
    marks = torch.rand(ranks, 2, size, generator=draws) < 1 / ranks
    marks[:, :, 1] = True  # as many as there can be
    added = sum(marked(one, some, ranks) for one, some in zip(sums, marks, strict=True))
    assert isinstance(added, torch.Tensor)
    found, any_mark = unmarked(added, ranks)
    assert torch.equal(found, sums.sum(0))
    assert torch.equal(any_mark, marks.any(0))
