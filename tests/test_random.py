"""Draws: published answers of Philox, addresses that do not depend on shape, honest frequencies."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.random import (
    THRESHOLD_ONE,
    Key,
    Stream,
    bernoulli,
    lanes16,
    lanes32,
    normal,
    normal_quantiles,
    permutation_keys,
    philox,
    threshold_edges,
    thresholds,
)

# the known-answer file of Random123, philox4x32 with 10 rounds: counter, key, answer
KNOWN_ANSWERS = [
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (" ".join(["ffffffff"] * 4), "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, answer):
    c0, c1, c2, c3 = (torch.tensor(word) for word in words(counter))
    k0, k1 = words(key)
    assert [int(word) for word in philox((c0, c1, c2, c3), (k0, k1))] == words(answer)


def test_a_draw_is_the_philox_call_of_its_address():
    key = Key(seed=(5 << 40) | 123, step=9, stream=Stream.SURVEY)
    factor, sample = torch.tensor(17), torch.tensor(3)
    counter = tuple(torch.tensor(word) for word in (2, 3, 17, 9))
    call = philox(counter, key.words())  # pyright: ignore[reportArgumentType]
    assert lanes32(key, factor, sample, 12)[8:].tolist() == [int(word) for word in call]
    halves = [half for word in call for half in (int(word) & 0xFFFF, int(word) >> 16)]
    assert lanes16(key, factor, sample, 24)[16:].tolist() == halves


@pytest.mark.parametrize("slots", [1, 7, 8, 9, 196, 4097])
def test_more_slots_extend_a_draw(slots):
    key = Key(1)
    ids, samples = torch.arange(3)[:, None], torch.arange(5)
    longer = lanes16(key, ids, samples, slots + 8)
    assert torch.equal(lanes16(key, ids, samples, slots), longer[..., :slots])
    wide = lanes32(key, ids, samples, slots + 8)
    assert torch.equal(lanes32(key, ids, samples, slots), wide[..., :slots])


def test_streams_steps_and_seeds_draw_independently():
    zero = torch.tensor(0)
    keys = [Key(1), Key(2), Key(1 << 32), Key(1, step=1), Key(1).of(Stream.FALLBACK)]
    drawn = {tuple(lanes32(key, zero, zero, 4).tolist()) for key in keys}
    assert len(drawn) == len(keys)


@pytest.mark.parametrize("seed", [-1, 2**56])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be"):
        Key(seed)


def test_a_step_out_of_range_is_refused():
    with pytest.raises(ValueError, match="step must be"):
        Key(0, step=2**32)


@given(st.floats(-40, 40))
def test_thresholds_are_the_nearest_lattice_point(x):
    exact = THRESHOLD_ONE / (1 + math.exp(-x))
    assert abs(int(thresholds(torch.tensor([x], dtype=torch.float64))) - exact) <= 0.5 + 1e-6


def test_thresholds_step_exactly_at_the_edges():
    edges = threshold_edges(torch.device("cpu"))[1:-1]
    assert bool((edges.diff() > 0).all())
    steps = torch.arange(1, THRESHOLD_ONE + 1, dtype=torch.int32)
    assert torch.equal(thresholds(edges), steps)
    below = torch.nextafter(edges, torch.full_like(edges, -math.inf))
    assert torch.equal(thresholds(below), steps - 1)


def test_thresholds_of_certainty_and_of_a_coin():
    x = torch.tensor([-math.inf, -30.0, 0.0, 30.0, math.inf])
    assert thresholds(x).tolist() == [0, 0, 32768, 65536, 65536]


def test_thresholds_of_nothing_are_nothing():
    assert thresholds(torch.empty(0, 3)).shape == (0, 3)


def test_certain_bits_are_certain():
    ids, samples = torch.arange(50)[:, None], torch.arange(40)
    threshold = torch.tensor([0, THRESHOLD_ONE], dtype=torch.int32)
    bits = bernoulli(Key(4), ids, samples, threshold)
    assert not bool(bits[..., 0].any())
    assert bool(bits[..., 1].all())


def test_bits_have_their_frequency():
    # 200,000 draws; 4.9 standard deviations is a false alarm once in a million
    threshold = torch.tensor([6554], dtype=torch.int32)
    share = bernoulli(Key(5), torch.tensor(0), torch.arange(200_000), threshold).double().mean()
    p = 6554 / 65536
    assert abs(float(share) - p) < 4.9 * math.sqrt(p * (1 - p) / 200_000)


def test_normal_draws_have_mean_zero_and_unit_variance():
    draws = normal(Key(6), 100_000)
    assert abs(float(draws.mean())) < 4.9 / math.sqrt(100_000)
    assert abs(float(draws.var()) - 1) < 4.9 * math.sqrt(2 / 100_000)


def test_quantiles_are_a_standard_normal_in_equal_shares():
    quantiles = normal_quantiles(torch.device("cpu"))
    assert bool((quantiles.diff() > 0).all())
    assert torch.equal(quantiles, -quantiles.flip(0))
    assert abs(float(quantiles.square().mean()) - 1) < 3e-5
    share = torch.special.ndtr(quantiles) * THRESHOLD_ONE
    assert torch.allclose(share, torch.arange(THRESHOLD_ONE).double() + 0.5, rtol=0, atol=1e-4)


def test_permutation_keys_follow_the_id_and_the_epoch():
    ids = torch.arange(1000)
    first = permutation_keys(Key(7), ids, torch.zeros_like(ids))
    other = permutation_keys(Key(7), ids, torch.ones_like(ids))
    assert torch.equal(permutation_keys(Key(7), ids[500:], torch.zeros(500).long()), first[500:])
    assert len(set(first.tolist())) == 1000
    assert first.argsort().tolist() != other.argsort().tolist()
