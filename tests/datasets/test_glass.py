import hashlib
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.datasets import glass, stained_glass
from vitrail.draws import Purpose, random_bits, random_order, random_words

# of the bytes as little-endian int64; a change here changes every user's data
GLASS = "a59c6a901a7b052c"
STAINED = "923dd991ccd23d83"

seeds = st.integers(0, 2**56 - 1)


def digest(*tensors: torch.Tensor) -> str:
    joined = b"".join(tensor.numpy().astype("<i8").tobytes() for tensor in tensors)
    return hashlib.sha256(joined).hexdigest()[:16]


def test_a_seed_gives_the_same_bits_on_every_machine():
    data = glass(50, 31, seed=7, num_test=10)
    assert digest(data.inputs, data.labels, data.test_inputs, data.test_labels) == GLASS
    teacher = stained_glass(50, 31, seed=7, hidden_layers=2, width=9, num_test=10)
    assert digest(teacher.labels, teacher.test_labels) == STAINED


def test_words_are_numpys_promised_raw_stream():
    source = np.random.PCG64(np.random.SeedSequence(3, spawn_key=(4,)))
    assert random_words(3, Purpose.TEACHER, 5).tolist() == source.random_raw(5).tolist()


@given(seed=seeds, shape=st.tuples(st.integers(0, 20), st.integers(1, 20)), extra=st.integers(0, 9))
def test_more_rows_only_add_to_fewer(seed, shape, extra):
    rows, columns = shape
    longer = random_bits(seed, Purpose.INPUTS, rows + extra, columns)
    np.testing.assert_array_equal(longer[:rows], random_bits(seed, Purpose.INPUTS, *shape))


@given(seed=seeds, count=st.integers(0, 200))
def test_an_order_holds_every_index_once(seed, count):
    assert sorted(random_order(seed, count).tolist()) == list(range(count))


def test_seeds_and_purposes_give_different_bits():
    streams = [
        random_bits(seed, purpose, 256).tobytes() for seed in range(3) for purpose in Purpose
    ]
    assert len(set(streams)) == len(streams)


def test_glass_bits_are_fair_and_unrelated():
    # Six sums of uncorrelated ±1 terms, five of about 40,000 and one of 4,000, each within 4.5
    # standard deviations: by the normal limit a false alarm in 6 × 7e-6 = 4e-5 of seeds.
    examples, size = 4000, 10
    data = glass(examples, size, seed=1)
    limit = 4.5 * (examples * size) ** 0.5
    signs = data.inputs.double()
    labels = (2 * data.labels - 1).double()
    assert abs(signs.sum()) < limit
    assert abs((signs * labels[:, None]).sum()) < limit
    assert abs((signs[:-1] * signs[1:]).sum()) < limit
    assert abs((signs * signs.roll(1, dims=1)).sum()) < limit
    assert abs((signs * signs.roll(2, dims=1)).sum()) < limit
    assert abs(labels.sum()) < 4.5 * examples**0.5


@pytest.mark.parametrize("hidden_layers", [1, 2])
def test_stained_glass_answers_as_its_teacher_spelled_out(hidden_layers):
    size, width = 7, 5
    data = stained_glass(40, size, seed=3, hidden_layers=hidden_layers, width=width, num_test=20)
    bits = iter(random_bits(3, Purpose.TEACHER, 1000).tolist())
    widths = [size, *[width] * hidden_layers, 1]
    layers = [
        [[1 if next(bits) else -1 for _ in range(above)] for _ in range(below)]
        for below, above in pairwise(widths)
    ]

    def answer(row: list[int]) -> int:
        for layer in layers:
            sums = [
                sum(row[i] * layer[i][j] for i in range(len(row))) for j in range(len(layer[0]))
            ]
            row = [1 if total > 0 else -1 for total in sums]
        return int(row[0] > 0)

    assert data.labels.tolist() == [answer(row) for row in data.inputs.tolist()]
    assert data.test_labels.tolist() == [answer(row) for row in data.test_inputs.tolist()]


def test_the_teacher_is_as_wide_as_the_input_by_default():
    assert torch.equal(stained_glass(50, 9).labels, stained_glass(50, 9, width=9).labels)


def test_both_classes_are_common_with_an_odd_teacher():
    # Flipping the output weights of a teacher without ties flips every label, so over teachers a
    # label is a fair coin: P(at most 1 or at least 49 ones of 50) = 102/2^50, a false alarm in
    # 1e-13 of choices of seeds.
    ones = sum(int(stained_glass(1, 31, seed=seed).labels[0]) for seed in range(50))
    assert 1 < ones < 49


def test_a_larger_problem_starts_with_the_smaller_one():
    small, large = stained_glass(5, 31, seed=2), stained_glass(50, 31, seed=2)
    assert torch.equal(small.inputs, large.inputs[:5])
    assert torch.equal(small.labels, large.labels[:5])


@pytest.mark.parametrize(
    ("maker", "arguments", "error", "message"),
    [
        (glass, {"num_examples": 0}, ValueError, "num_examples must be at least 1, got 0"),
        (glass, {"num_inputs": 0}, ValueError, "num_inputs must be at least 1, got 0"),
        (glass, {"num_inputs": "9"}, TypeError, "num_inputs must be an integer, got '9'"),
        (glass, {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        (glass, {"num_test": -1}, ValueError, "num_test must be at least 0, got -1"),
        (stained_glass, {"hidden_layers": 3}, ValueError, "must be 1 or 2, got 3"),
        (stained_glass, {"width": 0}, ValueError, "width must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused_by_name(maker, arguments, error, message):
    with pytest.raises(error, match=message):
        maker(**{"num_examples": 5, "num_inputs": 10, **arguments})
