"""The compiled search against a plain chain, a recount of its scores and enumeration."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from thread_count import num_threads

from vitrail.kernels.cpu.anneal import Schedule, anneal
from vitrail.kernels.cpu.enumerate import enumerate_weights
from vitrail.nn.program import linear_program
from vitrail.random import Key, Stream, lanes32

KEY = Key(11).of(Stream.SEARCH)


def problem_of(inputs, labels, low, weights=None):
    """The wiring and the examples of a one-layer net."""
    counts = np.empty(0, np.int32) if weights is None else weights
    wiring = linear_program(inputs.shape[1], low).wiring
    assert wiring is not None
    return wiring, np.ascontiguousarray(inputs.T), labels.astype(np.int16), counts


def signed_margins(inputs, labels, bits, low):
    """m = s·h + [label zero] of one configuration, by definition."""
    h = inputs.astype(np.int64) @ np.where(bits, 1, low)
    return np.where(labels, h, 1 - h)


def plain_chain(inputs, labels, low, weights, bits, proposals, schedule, chain=0):
    """The docstring's chain, every energy from scratch: (best score, last bits)."""
    draws = lanes32(KEY, torch.tensor(0), torch.tensor(chain), 2 * proposals).tolist()

    def energy(state):
        ramp = np.clip(
            schedule.margin - signed_margins(inputs, labels, state, low), 0, schedule.width
        )
        return int(weights @ ramp)

    def score(state):
        return int(weights @ (signed_margins(inputs, labels, state, low) > 0))

    bits = bits.copy()
    best, temperature = score(bits), schedule.start
    for proposal in range(proposals):
        if best == weights.sum():
            break
        which, coin = draws[2 * proposal], draws[2 * proposal + 1]
        other = bits.copy()
        other[which * len(bits) >> 32] ^= True
        drop = energy(bits) - energy(other)
        if drop >= 0 or drop > temperature * math.log((coin + 0.5) / 2**32):
            bits = other
            best = max(best, score(bits))
        temperature *= (schedule.end / schedule.start) ** (1 / max(1, proposals - 1))
    return best, bits


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 90)), draw(st.integers(1, 12)))
    inputs = rng.choice([-1, 0, 1], shape, p=[0.45, 0.1, 0.45]).astype(np.int8)
    labels = rng.random(shape[0]) < 0.5
    weights = rng.integers(1, 5, shape[0]).astype(np.int32) if draw(st.booleans()) else None
    return inputs, labels, weights, rng.random((2, shape[1])) < 0.5


SCHEDULES = [Schedule(1, 1, 2.0, 0.2), Schedule(3, 5, 5.0, 0.5)]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["errors", "ramp"])
@given(problems(), st.sampled_from([-1, 0]))
def test_search_takes_the_steps_of_a_plain_chain(schedule, problem, low):
    inputs, labels, weights, starts = problem
    found = anneal(*problem_of(inputs, labels, low, weights), starts, 60, schedule, KEY.words())
    counts = np.ones(len(labels), np.int64) if weights is None else weights.astype(np.int64)
    for chain, start in enumerate(starts):
        best, last = plain_chain(inputs, labels, low, counts, start, 60, schedule, chain)
        np.testing.assert_array_equal(found.last[chain], last)
        assert found.best_score[chain] == best
        for bits, score in (
            (found.best[chain], found.best_score[chain]),
            (found.last[chain], found.last_score[chain]),
        ):
            assert counts @ (signed_margins(inputs, labels, bits, low) > 0) == score


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["errors", "ramp"])
def test_scores_stay_exact_where_sixteen_bits_would_overflow(schedule):
    rng = np.random.default_rng(3)
    inputs = rng.choice([-1, 1], (70_000, 9)).astype(np.int8)
    labels = rng.random(70_000) < 0.5
    start = rng.random((1, 9)) < 0.5
    found = anneal(*problem_of(inputs, labels, -1), start, 40, schedule, KEY.words())
    ones = np.ones(70_000, np.int64)
    best, last = plain_chain(inputs, labels, -1, ones, start[0], 40, schedule)
    assert found.best_score[0] == best
    np.testing.assert_array_equal(found.last[0], last)


def test_search_does_not_depend_on_threads_and_differs_by_chain():
    rng = np.random.default_rng(4)
    problem = problem_of(
        rng.choice([-1, 1], (200, 41)).astype(np.int8), rng.random(200) < 0.5, low=-1
    )
    starts = np.zeros((4, 41), np.bool_)
    with num_threads(1):
        one = anneal(*problem, starts, 3000, SCHEDULES[1], KEY.words())
    with num_threads(4):
        four = anneal(*problem, starts, 3000, SCHEDULES[1], KEY.words())
    np.testing.assert_array_equal(one.best, four.best)
    np.testing.assert_array_equal(one.last, four.last)
    assert len(np.unique(one.last, axis=0)) == 4


def test_search_finds_the_optimum_of_small_problems():
    rng = np.random.default_rng(5)
    for num_weights, num_examples in ((10, 30), (15, 20), (21, 60)):
        inputs = rng.choice([-1, 1], (num_examples, num_weights)).astype(np.int8)
        labels = rng.random(num_examples) < 0.5
        starts = rng.random((8, num_weights)) < 0.5
        found = anneal(
            *problem_of(inputs, labels, -1), starts, 20_000, Schedule(3, 9, 7.0, 0.7), KEY.words()
        )
        assert found.best_score.max() == enumerate_weights(inputs, labels, -1).satisfied


def test_search_stops_where_everything_is_satisfied():
    rng = np.random.default_rng(6)
    inputs = rng.choice([-1, 1], (20, 51)).astype(np.int8)
    labels = rng.random(20) < 0.5
    starts = rng.random((1, 51)) < 0.5
    found = anneal(*problem_of(inputs, labels, -1), starts, 100_000, SCHEDULES[1], KEY.words())
    assert found.best_score[0] == 20
    assert found.proposals < 100_000
