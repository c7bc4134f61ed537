"""Every update against enumeration of the definition, for every kind of factor.

Exact updates must agree to rounding. Sampled ones are tested by Bernstein's inequality with the
variance of the exact answer; each test may fail by chance with probability 1e-4 at most (the
draws are fixed, so it either always passes or never). The oracle uses the quantised cavities,
smoothing is off, and p̃ itself is compared.
"""

import math
from dataclasses import replace

import pytest
import torch
from oracles import (
    all_states,
    bernstein_bound,
    conditional_means,
    messages_by_definition,
    potentials,
    quantised,
    random_blackbox,
    random_cavity,
    random_network,
    random_perceptron,
    random_table,
)

from vitrail.random import Key, thresholds
from vitrail.updates import UPDATES, closed_form, counting, exact, flip, pinned
from vitrail.updates.base import configurations
from vitrail.updates.counting import FALLBACK

FALSE_ALARM = 1e-4  # of one test, over all its comparisons
SAMPLES = 4000

FACTORS = {
    "table": lambda arity, beta: random_table(arity, 3, arity, beta),
    "perceptron": lambda arity, beta: random_perceptron(arity, 4, arity, beta, "bipolar"),
    "perceptron-binary": lambda arity, beta: random_perceptron(arity, 3, arity, beta, "binary"),
    "blackbox": lambda arity, beta: random_blackbox(arity, 3, arity, beta),
}
NETWORKS = {
    "linear-classes-arity6": (3, 2, (), 2),
    "one-hidden-arity3": (3, 1, (), 3),
    "one-hidden-arity8": (5, 3, (2,), 1),
    "one-hidden-classes-arity12": (3, 3, (2,), 3),
    "two-hidden-arity12": (3, 3, (2, 2), 1),
}
CASES = {
    f"{kind}-arity{arity}-beta{beta}": (FACTORS[kind], arity, beta)
    for kind in FACTORS
    for arity in (1, 2, 3, 7, 10)
    for beta in (1.5, math.inf)
} | {
    f"{name}-beta{beta}": (
        lambda _, beta, s=shape: random_network(7, s[0], s[1], s[2], s[3], beta),
        0,
        beta,
    )
    for name, shape in NETWORKS.items()
    for beta in (1.5, math.inf)
}


def drawn(case):
    make, arity, beta = CASES[case]
    factors = make(arity, beta)
    cavity = random_cavity(3, factors.num_factors, factors.arity)
    return factors, cavity, quantised(cavity)[:, 0]


@pytest.mark.parametrize("case", CASES)
def test_exact_equals_the_definition(case):
    factors, cavity, _ = drawn(case)
    one, zero = messages_by_definition(factors, torch.sigmoid(cavity[:, 0]))
    estimate = exact().estimate(Key(0), factors, cavity)
    assert torch.allclose(estimate.log_one.exp()[:, 0], one, atol=1e-12)
    assert torch.allclose(estimate.log_zero.exp()[:, 0], zero, atol=1e-12)
    assert estimate.evaluations == factors.num_factors * 2**factors.arity


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("perceptron")])
def test_convolution_equals_the_definition(case):
    factors, cavity, _ = drawn(case)
    one, zero = messages_by_definition(factors, torch.sigmoid(cavity[:, 0]))
    estimate = closed_form().estimate(Key(0), factors, cavity)
    assert torch.allclose(estimate.log_one.exp()[:, 0], one, atol=1e-12)
    assert torch.allclose(estimate.log_zero.exp()[:, 0], zero, atol=1e-12)


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", [196, 197])
def test_gaussian_is_within_a_hundredth_of_the_convolution(arity, coding):
    factors = random_perceptron(5, 6, arity, math.inf, coding)
    cavity = random_cavity(5, 6, arity)
    right = closed_form("convolution").estimate(Key(0), factors, cavity)
    near = closed_form("gaussian").estimate(Key(0), factors, cavity)
    for value in ("log_one", "log_zero"):
        gap = (getattr(right, value).exp() - getattr(near, value).exp()).abs().max()
        assert float(gap) < 0.01


@pytest.mark.parametrize("case", CASES)
def test_flip_agrees_with_the_definition(case):
    factors, cavity, probability = drawn(case)
    estimate = flip(SAMPLES).estimate(Key(11), factors, cavity)
    compare(factors, probability, estimate, SAMPLES, SAMPLES)


@pytest.mark.parametrize("case", CASES)
def test_pinned_agrees_with_the_definition(case):
    factors, cavity, probability = drawn(case)
    samples = SAMPLES // factors.arity  # Algorithm 1 makes 2·A·S draws of A variables
    estimate = pinned(samples).estimate(Key(11), factors, cavity)
    compare(factors, probability, estimate, samples, samples)


@pytest.mark.parametrize("case", CASES)
def test_counting_agrees_with_the_definition(case):
    factors, cavity, probability = drawn(case)
    update = counting(SAMPLES, smoothing=0.0)
    estimate = update.estimate(Key(11), factors, cavity)
    ones = configurations(Key(11), factors, thresholds(cavity), SAMPLES).sum(1).double()
    assert estimate.min_hits == int(torch.minimum(ones, SAMPLES - ones).min())
    compare(factors, probability, estimate, ones, SAMPLES - ones)


def compare(factors, probability, estimate, draws_one, draws_zero):
    one, zero = messages_by_definition(factors, probability)
    square = potentials(factors, all_states(factors.arity)).square()
    squared_one, squared_zero = conditional_means(probability, square)
    comparisons = 2 * one.numel()
    for mean, square, log, draws in (
        (one, squared_one, estimate.log_one, draws_one),
        (zero, squared_zero, estimate.log_zero, draws_zero),
    ):
        variance = (square - mean.square()).clamp(min=0)
        bound = bernstein_bound(variance, draws, FALSE_ALARM / comparisons)
        error = (log.exp()[:, 0] - mean).abs()
        assert bool((error <= bound + 1e-12).all()), (error - bound).max()


INVARIANT = {
    "exact": exact(),
    "convolution": closed_form(),
    "gaussian": closed_form("gaussian"),
    "pinned": pinned(3),
    "flip": flip(7),
    "counting": counting(16, least_hits=4),
}


@pytest.mark.parametrize("update", INVARIANT)
def test_messages_do_not_depend_on_chunks_or_order(update):
    factors = random_perceptron(2, 13, 9, 2.0, "bipolar")
    cavity = random_cavity(2, 13, 9).expand(-1, 3, -1).clone()
    whole = INVARIANT[update].estimate(Key(3, 4), factors, cavity)
    for memory in (1, 20_000):
        parts = replace(INVARIANT[update], memory=memory).estimate(Key(3, 4), factors, cavity)
        assert same(whole.log_one, parts.log_one, update)
        assert same(whole.log_zero, parts.log_zero, update)
        assert whole.evaluations == parts.evaluations
    order = torch.randperm(13, generator=torch.Generator().manual_seed(0))
    shuffled = INVARIANT[update].estimate(Key(3, 4), factors.select(order), cavity[order])
    assert same(whole.log_one[order], shuffled.log_one, update)
    assert same(whole.log_zero[order], shuffled.log_zero, update)


def same(left, right, update):
    """To the bit where integers decide; exact sums to rounding."""
    if update in ("exact", "convolution", "gaussian"):
        return torch.allclose(left, right, atol=1e-12, rtol=0)
    return torch.equal(left, right)


@pytest.mark.parametrize("update", ["flip", "counting", "pinned"])
def test_messages_do_not_depend_on_threads(update):
    factors = random_perceptron(2, 200, 65, 2.0, "bipolar")
    cavity = random_cavity(2, 200, 65)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = UPDATES[update](8 if update != "pinned" else 1).estimate(Key(1), factors, cavity)  # pyright: ignore
        torch.set_num_threads(2)
        two = UPDATES[update](8 if update != "pinned" else 1).estimate(Key(1), factors, cavity)  # pyright: ignore
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one.log_one, two.log_one)
    assert torch.equal(one.log_zero, two.log_zero)


def test_the_identity_that_joins_messages_and_gradients_holds():
    """p̃(1) = Z + (1−m)·∂Z/∂m and p̃(0) = Z − m·∂Z/∂m, Z being multilinear in the means m."""
    factors = random_perceptron(1, 3, 6, 1.0, "bipolar")
    means = torch.rand(3, 6, dtype=torch.float64, requires_grad=True)
    states = all_states(6)
    weight = torch.where(states[None], means[:, None], 1 - means[:, None]).prod(-1)
    total = (weight * potentials(factors, states)).sum(1)
    (gradient,) = torch.autograd.grad(total.sum(), means)
    estimate = exact().estimate(Key(0), factors, torch.logit(means.detach())[:, None])
    m, z = means.detach(), total.detach()[:, None]
    assert torch.allclose(estimate.log_one.exp()[:, 0], z + (1 - m) * gradient, atol=1e-12)
    assert torch.allclose(estimate.log_zero.exp()[:, 0], z - m * gradient, atol=1e-12)


def test_counting_mends_starved_entries_from_other_draws():
    factors = random_perceptron(1, 4, 6, 1.0, "bipolar")
    cavity = random_cavity(1, 4, 6)
    cavity[:, 0, 0] = 6.0
    plain = counting(16, smoothing=0.0).estimate(Key(0), factors, cavity)
    mended = counting(16, smoothing=0.0, least_hits=3).estimate(Key(0), factors, cavity)
    ones = configurations(Key(0), factors, thresholds(cavity), 16).sum(1)
    poor = torch.minimum(ones, 16 - ones) < 3
    assert poor[:, 0].all()
    assert torch.equal(plain.log_one[:, 0][~poor], mended.log_one[:, 0][~poor])
    own = FALLBACK.estimate(Key(0), factors, cavity)
    assert torch.equal(own.log_one[:, 0][poor], mended.log_one[:, 0][poor])


def test_starved_factors_send_no_message():
    """Both p̃ zero among the draws says nothing: message 0, counted, and no contradiction."""
    from vitrail.factors import blackbox

    never = blackbox(lambda states, which: torch.zeros(states.shape[:2], dtype=torch.bool), 2, 4)
    for update in (flip(5), pinned(5), counting(8)):
        result = update.messages(Key(0), never, torch.zeros(4).double(), torch.zeros(2, 4))
        assert bool((result.log_odds == 0).all())
        assert bool(result.starved.all())


def test_one_sided_draws_are_clipped_not_believed():
    factors = random_perceptron(1, 30, 5, math.inf, "bipolar")
    result = flip(2).messages(Key(0), factors, torch.zeros(5).double(), torch.zeros(30, 5))
    assert float(result.log_odds.abs().max()) == pytest.approx(math.log(999))


BAD = {
    "zero samples": (lambda: flip(0), "samples must be from 1 to"),
    "unknown method": (lambda: closed_form("fourier"), "unknown method"),  # pyright: ignore
    "arity above the exact limit": (
        lambda: exact().estimate(
            Key(0), random_perceptron(0, 1, 21, 1.0, "bipolar"), random_cavity(0, 1, 21)
        ),
        "stop at arity 20",
    ),
    "closed form of a table": (
        lambda: closed_form().estimate(Key(0), random_table(0, 2, 3, 1.0), random_cavity(0, 2, 3)),
        "linear threshold units only",
    ),
    "seed out of range": (lambda: Key(-1), "seed must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_refused_with_the_remedy(case):
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_every_named_update_is_tested_here():
    assert set(UPDATES) == {"exact", "closed_form", "pinned", "flip", "counting"}
