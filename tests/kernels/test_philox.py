"""The compiled Philox against the reference."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail import random
from vitrail.kernels.philox import philox

words = st.integers(0, 2**32 - 1)


@given(st.tuples(words, words, words, words), st.tuples(words, words))
def test_compiled_philox_gives_the_bits_of_the_reference(counter, key):
    expected = random.philox(tuple(torch.tensor(word) for word in counter), key)  # pyright: ignore[reportArgumentType]
    compiled = philox(*(np.uint32(word) for word in (*counter, *key)))
    assert list(compiled) == [int(word) for word in expected]
