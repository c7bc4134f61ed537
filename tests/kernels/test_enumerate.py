"""The bit-parallel search against plain enumeration of every configuration."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from thread_count import num_threads

from vitrail.kernels.cpu.enumerate import enumerate_weights


def plain_satisfied(inputs, labels, low):
    """Satisfied examples of all 2^N configurations, (2^N,), by the definition of h."""
    num_weights = inputs.shape[1]
    bits = np.arange(2**num_weights)[:, None] >> np.arange(num_weights) & 1
    weights = np.where(bits == 1, 1, low).astype(np.float32)
    margins = weights @ inputs.T.astype(np.float32)
    return ((margins > 0) == labels).sum(axis=1)


@st.composite
def problems(draw):
    num_weights = draw(st.integers(1, 16))
    num_examples = draw(st.integers(1, 130))
    zeros = draw(st.sampled_from([0.0, 0.3, 0.9]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    inputs = rng.choice([-1, 1], (num_examples, num_weights)).astype(np.int8)
    inputs[rng.random(inputs.shape) < zeros] = 0
    return inputs, rng.random(num_examples) < 0.5


EVEN_TIES = (np.array([[1, 1], [1, -1]], np.int8), np.array([True, True]))
WORD_BOUNDARY = (np.ones((64, 11), np.int8), np.arange(64) % 2 == 0)


@given(problems(), st.sampled_from([-1, 0]))
@example(EVEN_TIES, -1)
@example(WORD_BOUNDARY, -1)
def test_bit_parallel_search_agrees_with_plain_enumeration(problem, low):
    inputs, labels = problem
    satisfied = plain_satisfied(inputs, labels, low)
    optima = enumerate_weights(inputs, labels, low, histogram=True)
    assert optima.satisfied == satisfied.max()
    assert optima.count == (satisfied == satisfied.max()).sum()
    assert optima.index == satisfied.argmax()
    np.testing.assert_array_equal(
        optima.histogram, np.bincount(satisfied, minlength=len(labels) + 1)
    )


def test_opposite_weights_are_no_mirror_when_sums_can_tie():
    inputs, labels = EVEN_TIES
    optima = enumerate_weights(inputs, labels, -1, histogram=True)
    assert optima.histogram is not None
    assert optima.histogram.tolist() == [2, 2, 0]  # a mirror would make it a palindrome


def test_the_answer_does_not_depend_on_threads():
    rng = np.random.default_rng(1)
    inputs = rng.choice([-1, 0, 1], (70, 19)).astype(np.int8)
    labels = rng.random(70) < 0.5
    answers = []
    for threads in (1, 3):
        with num_threads(threads):
            answers.append(enumerate_weights(inputs, labels, -1))
    assert answers[0] == answers[1]


def test_a_teacher_on_a_full_size_problem_is_found():
    """24 weights cannot be listed plainly in a test; a teacher's labels bound the optimum."""
    rng = np.random.default_rng(2)
    inputs = rng.choice([-1, 1], (200, 24)).astype(np.int8)
    teacher = rng.choice([-1, 1], 24)
    labels = inputs @ teacher > 0
    optima = enumerate_weights(inputs, labels, -1)
    assert optima.satisfied == 200
    assert optima.count == 1
    assert optima.index == (teacher == 1) @ (1 << np.arange(24))


@pytest.mark.parametrize("low", [-1, 0])
def test_a_single_weight_has_two_configurations(low):
    optima = enumerate_weights(np.array([[1]], np.int8), np.array([True]), low, histogram=True)
    assert (optima.satisfied, optima.count, optima.index) == (1, 1, 1)
    assert optima.histogram is not None
    assert optima.histogram.tolist() == [1, 1]
