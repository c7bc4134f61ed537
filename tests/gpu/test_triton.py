"""Triton kernels against the torch definitions, bit for bit.

On a machine with a GPU they run there; elsewhere in Triton's interpreter, where it is installed
and asked for by TRITON_INTERPRET=1.
"""

import math
import os
from dataclasses import replace

import pytest
import torch
from cases_of_kernels import (
    NETS,
    beliefs,
    extreme_thresholds,
    generator,
    last_messages,
    networks,
    perceptrons,
    renumbered,
    scattered,
)

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no CUDA device, and TRITON_INTERPRET=1 is not set", allow_module_level=True)

# ruff: noqa: E402 (Triton reads the variable when kernels are imported)
from vitrail.factors import Network, network
from vitrail.graph import Dense, dense, factor_graph, join
from vitrail.kernels.cuda import counting as cuda_counting
from vitrail.kernels.cuda import flip as cuda_flip
from vitrail.kernels.cuda import gaussian as cuda_gaussian
from vitrail.kernels.cuda import score as cuda_score
from vitrail.kernels.cuda import survey as cuda_survey
from vitrail.kernels.cuda.philox import pieces
from vitrail.nn import BinaryConv2d, BinaryLinear, Flatten, MaxPool2d, Sequential, Sign, Threshold
from vitrail.numerics import LATTICE
from vitrail.random import Key
from vitrail.solvers import s4p
from vitrail.solvers.base import Feedback
from vitrail.solvers.s4p import S4P
from vitrail.surveys import gaussian
from vitrail.updates import closed_form, counting, flip
from vitrail.updates.base import Update

ARITIES = [1, 7, 196, 300, 1000, 4097] if DEVICE == "cuda" else [1, 7, 196, 300]
KEY = Key(seed=(3 << 33) | 7, step=2**32 - 1)


def check_counts(factors, tracks, samples):
    threshold = extreme_thresholds((factors.num_factors, tracks, factors.arity)).to(DEVICE)
    expected = counting(samples, backend="torch")._counts(KEY, factors, threshold, samples)
    found = cuda_counting.counts(KEY, factors, threshold, samples)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine.long(), theirs.long())


@pytest.mark.parametrize(("tracks", "samples"), [(1, 1), (2, 9), (1, 33), (3, 70)])
@pytest.mark.parametrize("net", NETS)
def test_counts_equal_the_definition(net, tracks, samples):
    if DEVICE == "cpu" and tracks * samples > (10 if net.startswith("paper") else 40):
        pytest.skip("takes the interpreter minutes")
    check_counts(networks(net, 5 if DEVICE == "cuda" else 2).to(DEVICE), tracks, samples)


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", ARITIES)
def test_scores_of_perceptrons_equal_the_definition(arity, coding):
    parts = [factor_graph(perceptrons(5, arity, coding, seed=seed)) for seed in (0, 1)]
    graph = join(parts).to(DEVICE)
    states = (torch.rand(3, 2 * arity, generator=generator(3)) < 0.5).to(DEVICE)
    (factors,) = graph.blocks
    assert isinstance(factors, Network)
    found = cuda_score.satisfied(factors, states)
    assert torch.equal(found, factors.satisfied_at(states, 2**20).bool())


@pytest.mark.parametrize(("candidates", "num_factors"), [(0, 5), (5, 0), (5, 4)])
def test_scores_of_no_candidates_no_factors_and_more_than_a_grid_holds(
    candidates, num_factors, monkeypatch
):
    monkeypatch.setattr(cuda_score, "MAX_CANDIDATES", 2)
    factors = perceptrons(5, 7).select(torch.arange(num_factors)).to(DEVICE)
    states = (torch.rand(candidates, 7, generator=generator(3)) < 0.5).to(DEVICE)
    found = cuda_score.satisfied(factors, states)
    assert torch.equal(found, factors.satisfied_at(states, 2**20).bool().view(found.shape))


def test_messages_of_long_rows_with_starts_and_betas_of_their_own():
    factors = perceptrons(3, 300, beta=torch.tensor([1.0, 2.0, 3.0]))
    scope = dense(3, 300, torch.tensor([5, 0, 77]))
    factors = renumbered(replace(factors, scope=scope)).to(DEVICE)
    belief, message = beliefs(377).to(DEVICE), last_messages(3, 300).to(DEVICE)
    defined = flip(5, backend="torch").messages(KEY, factors, belief, message)
    limit = flip(5).limit
    log_odds, starved = cuda_flip.messages(KEY, factors, belief, message, 5, limit)
    assert torch.equal(log_odds, defined.log_odds)
    assert torch.equal(starved, defined.starved)


def test_results_do_not_depend_on_how_thresholds_lie_in_memory():
    factors = renumbered(perceptrons(4, 7)).to(DEVICE)
    threshold = extreme_thresholds((3, 4, 7)).to(DEVICE).transpose(0, 1)
    for kernel in (cuda_counting.counts, cuda_flip.hits):
        found = kernel(KEY, factors, threshold, 5)
        for mine, theirs in zip(
            found, kernel(KEY, factors, threshold.contiguous(), 5), strict=True
        ):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("arity", ARITIES)
def test_counts_of_perceptrons_equal_the_definition(arity):
    check_counts(renumbered(perceptrons(3, arity, "binary")).to(DEVICE), 2, 33)


def test_other_modules_are_counted_by_torch():
    draw = generator(1)
    inputs = torch.randint(0, 2, (3, 1, 6, 6), generator=draw)
    module = Sequential(BinaryConv2d(1, 2, 3), Threshold(), MaxPool2d(2), Flatten())
    factors = network(
        Sequential(module, BinaryLinear(8, 1)), inputs, torch.tensor([0, 1, 1]), beta=2.0
    )
    factors = renumbered(factors).to(DEVICE)
    assert not cuda_counting.serves(factors, 9)
    threshold = extreme_thresholds((3, 2, factors.arity)).to(DEVICE)
    found, defined = (
        counting(9, backend=backend)._counts(KEY, factors, threshold, 9)
        for backend in ("auto", "torch")
    )
    for mine, theirs in zip(found, defined, strict=True):
        assert torch.equal(mine, theirs)


def test_counts_of_an_empty_batch():
    factors = networks("deep", 4).select(torch.empty(0, dtype=torch.int64)).to(DEVICE)
    threshold = torch.empty(0, 1, factors.arity, dtype=torch.int32, device=DEVICE)
    count_one, _, hits_all = cuda_counting.counts(KEY, factors, threshold, 5)
    assert count_one.shape == threshold.shape
    assert hits_all.shape == (0, 1)


@pytest.mark.parametrize("samples", [5, 33])
@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", [*ARITIES, 256, 257])
def test_hits_equal_the_definition(arity, coding, samples, monkeypatch):
    monkeypatch.setattr(cuda_flip, "SUMS", 4 * samples * pieces(arity, 256))  # four rows at a time
    factors = renumbered(perceptrons(3, arity, coding)).to(DEVICE)
    threshold = extreme_thresholds((3, 2, arity)).to(DEVICE)
    expected = flip(samples, backend="torch")._hits(KEY, factors, threshold, samples)
    found = cuda_flip.hits(KEY, factors, threshold, samples)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine.long(), theirs)


def one_hidden(num_inputs, num_hidden, coding, output_coding, activation):
    draw = generator(num_inputs)
    layers = BinaryLinear(num_inputs, num_hidden, coding), activation()
    module = Sequential(*layers, BinaryLinear(num_hidden, 1, output_coding))
    inputs = torch.randint(-1, 2, (4, num_inputs), generator=draw)
    labels = torch.randint(0, 2, (4,), generator=draw)
    return renumbered(network(module, inputs, labels, beta=torch.linspace(1, 3, 4))).to(DEVICE)


@pytest.mark.parametrize("activation", [Sign, Threshold])
@pytest.mark.parametrize("output_coding", ["bipolar", "binary"])
@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize(("num_inputs", "num_hidden"), [(1, 1), (7, 3), (196, 2)])
def test_flips_of_a_hidden_layer_equal_the_definition(
    num_inputs, num_hidden, coding, output_coding, activation
):
    factors = one_hidden(num_inputs, num_hidden, coding, output_coding, activation)
    arity, update = factors.arity, flip(5, backend="torch")
    threshold = extreme_thresholds((4, 2, arity)).to(DEVICE)
    expected = update._hits(KEY, factors, threshold, 5)
    for mine, theirs in zip(cuda_flip.hits(KEY, factors, threshold, 5), expected, strict=True):
        assert torch.equal(mine.long(), theirs)
    belief, message = beliefs(arity).to(DEVICE), last_messages(4, arity).to(DEVICE)
    defined = update.messages(KEY, factors, belief, message)
    log_odds, starved = cuda_flip.messages(KEY, factors, belief, message, 5, update.limit)
    assert torch.equal(log_odds, defined.log_odds)
    assert torch.equal(starved, defined.starved)


@pytest.mark.parametrize("beta", [0.5, math.inf])
@pytest.mark.parametrize("arity", ARITIES)
def test_messages_equal_the_definition(arity, beta):
    factors = renumbered(perceptrons(5, arity, beta=beta)).to(DEVICE)
    belief, message = beliefs(arity).to(DEVICE), last_messages(5, arity).to(DEVICE)
    update = flip(5, backend="torch")
    expected = update.messages(KEY, factors, belief, message)
    log_odds, starved = cuda_flip.messages(KEY, factors, belief, message, 5, update.limit)
    assert torch.equal(log_odds, expected.log_odds)
    assert torch.equal(starved, expected.starved)


def test_each_factor_keeps_its_own_temperature_and_scope():
    factors = scattered(perceptrons(8, 30, beta=torch.linspace(0.5, 4, 8)), 100).to(DEVICE)
    belief, message = beliefs(100).to(DEVICE), last_messages(8, 30).to(DEVICE)
    update = flip(7, backend="torch")
    expected = update.messages(KEY, factors, belief, message)
    log_odds, _ = cuda_flip.messages(KEY, factors, belief, message, 7, update.limit)
    assert torch.equal(log_odds, expected.log_odds)


def test_an_empty_batch_has_no_messages():
    factors = perceptrons(4, 7).select(torch.empty(0, dtype=torch.int64)).to(DEVICE)
    none = torch.empty(0, 7, device=DEVICE)
    log_odds, starved = cuda_flip.messages(KEY, factors, beliefs(7).to(DEVICE), none, 5, 6.9)
    assert log_odds.shape == starved.shape == (0, 7)


def surveys_after(graph, steps=2, survey_samples=5):
    """State and reports of steps of S4P."""
    inner, variable = flip(3, backend="torch"), gaussian()
    solver = s4p(inner, survey_samples=survey_samples, bins=11, variable=variable, damping=0.3)
    feedback = Feedback(
        torch.zeros(1, dtype=torch.float64, device=DEVICE),
        torch.ones(1, dtype=torch.bool, device=DEVICE),
    )
    state, infos = solver.init(Key(3), graph), []
    for step in range(steps):
        state, info = solver.step(Key(3, step), graph, state, feedback)
        infos.append(info)
    return state, infos


@pytest.mark.parametrize("beta", [2.0, math.inf])
@pytest.mark.parametrize("arity", [1, 7, 196] if DEVICE == "cuda" else [1, 19])
def test_survey_steps_equal_the_definition(arity, beta, monkeypatch):
    graph = factor_graph(perceptrons(3, arity, beta=beta)).to(DEVICE)
    one, told = surveys_after(graph)
    monkeypatch.setattr(S4P, "_kernel", lambda *_: cuda_survey)
    two, told_too = surveys_after(graph)
    assert torch.equal(one.surveys[0], two.surveys[0])
    assert torch.equal(one.draws, two.draws)
    assert torch.equal(one.means, two.means)
    for mine, theirs in zip(told_too, told, strict=True):
        assert torch.equal(mine.residual, theirs.residual)
        assert mine.starved == theirs.starved


def test_survey_steps_of_many_tracks_equal_the_definition(monkeypatch):
    graph = factor_graph(perceptrons(2, 3)).to(DEVICE)
    one, _ = surveys_after(graph, 1, survey_samples=150)
    monkeypatch.setattr(S4P, "_kernel", lambda *_: cuda_survey)
    two, _ = surveys_after(graph, 1, survey_samples=150)
    assert torch.equal(one.surveys[0], two.surveys[0])


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("beta", [1.5, 40.0, math.inf])
@pytest.mark.parametrize("arity", [*ARITIES, 64])
def test_gaussian_sweeps_are_as_defined_to_1e_5(arity, beta, coding):
    factors = perceptrons(6, arity, coding, beta).to(DEVICE)
    belief, message = beliefs(arity).to(DEVICE), 0.2 * last_messages(6, arity).to(DEVICE)
    message = (message * LATTICE).round() / LATTICE
    gamma = torch.linspace(0.3, 1, 6, dtype=torch.float64, device=DEVICE)
    update = closed_form("gaussian")
    expected = Update.sweep(update, KEY, factors, belief, message, gamma)
    assert isinstance(factors.scope, Dense)
    new, moved, change = cuda_gaussian.gaussian_sweep(factors, belief, message, update.limit, gamma)
    error = (new - expected.messages).abs() / expected.messages.abs().clamp(min=1)
    assert float(error.max()) < 1e-5
    assert float((change - expected.change).abs().max()) < 1e-5
    assert torch.equal(moved, factors.scope.total(new.double() - message.double(), arity))
    assert torch.equal((new * LATTICE).round(), new * LATTICE)
