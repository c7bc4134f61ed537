"""The compiled Philox against the published answers and the reference."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from vitrail import random
from vitrail.kernels.cpu.philox import VECTOR, fill, philox, tile

words = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_compiled_philox_gives_the_published_answers(counter, key, answer):
    assert list(philox(*(np.uint32(word) for word in (*counter, *key)))) == answer


@given(st.tuples(words, words, words, words), st.tuples(words, words))
def test_compiled_philox_gives_the_bits_of_the_reference(counter, key):
    c0, c1, c2, c3 = (torch.tensor(word) for word in counter)
    expected = random.philox((c0, c1, c2, c3), key)
    compiled = philox(*(np.uint32(word) for word in (*counter, *key)))
    assert list(compiled) == [int(word) for word in expected]


@njit
def filled(blocks, numbers, first, factor, step, k0, k1):
    out = np.empty(4 * blocks.shape[0], np.uint32)
    fill(out, blocks, numbers, first, factor, step, k0, k1)
    return out


@given(words, words, words, words, words)
def test_many_calls_are_the_single_calls(first, factor, step, k0, k1):
    blocks, numbers = np.arange(16, dtype=np.uint32) % 5, np.arange(16, dtype=np.uint32) // 5
    address = [np.uint32(word) for word in (first, factor, step, k0, k1)]
    together = filled(blocks, numbers, *address).reshape(-1, 4)
    for block, number, made in zip(blocks, numbers, together, strict=True):
        sample = np.uint32((first + int(number)) % 2**32)
        assert tuple(made) == philox(block, sample, *address[1:])


@given(st.integers(1, 5000), st.integers(1, 600))
def test_a_tile_holds_whole_samples_in_order(slots, samples):
    together, blocks, numbers = tile(slots, samples, 8)
    calls = -(-slots // 8)
    assert 1 <= together <= samples
    assert len(blocks) % VECTOR == 0
    assert len(blocks) >= together * calls
    assert np.array_equal(
        numbers.astype(np.int64) * calls + blocks, np.arange(len(blocks), dtype=np.int64)
    )
