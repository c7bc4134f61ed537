"""Triton kernels against the torch definitions, bit for bit.

On a machine with a GPU they run there; elsewhere in Triton's interpreter, where it is installed
and asked for by TRITON_INTERPRET=1.
"""

import math
import os

import pytest
import torch
from cases_of_kernels import (
    beliefs,
    extreme_thresholds,
    generator,
    last_messages,
    perceptrons,
    renumbered,
    scattered,
)

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no CUDA device, and TRITON_INTERPRET=1 is not set", allow_module_level=True)

# ruff: noqa: E402 (Triton reads the variable when kernels are imported)
from vitrail.factors import network
from vitrail.graph import factor_graph
from vitrail.kernels import cuda_counting, cuda_draws, cuda_flip, cuda_survey
from vitrail.nn import paper_conv
from vitrail.random import Key
from vitrail.solvers import s4p
from vitrail.solvers.base import Feedback
from vitrail.solvers.s4p import S4P
from vitrail.surveys import gaussian
from vitrail.updates import counting, flip
from vitrail.updates.draws import configurations

ARITIES = [1, 7, 196, 1000, 4097] if DEVICE == "cuda" else [1, 7, 196]
KEY = Key(seed=(3 << 33) | 7, step=2**32 - 1)


@pytest.mark.parametrize("arity", ARITIES)
def test_configurations_equal_the_definition(arity):
    factors = renumbered(perceptrons(3, arity)).to(DEVICE)
    threshold = extreme_thresholds((3, 2, arity)).to(DEVICE)
    drawn = cuda_draws.configurations(KEY, factors, threshold, 3)
    assert torch.equal(drawn, configurations(KEY, factors, threshold, 3))


def conv(num_factors):
    draw = generator(1)
    inputs = torch.randint(0, 2, (num_factors, 1, 14, 14), generator=draw)
    labels = torch.randint(0, 2, (num_factors,), generator=draw)
    return renumbered(network(paper_conv(), inputs, labels, beta=2.0)).to(DEVICE)


@pytest.mark.parametrize("tracks", [1, 2])
def test_counts_of_any_network_equal_the_definition(tracks):
    factors = conv(3)
    threshold = extreme_thresholds((3, tracks, 89)).to(DEVICE)
    expected = counting(9, backend="torch")._counts(KEY, factors, threshold, 9)
    found = cuda_counting.counts(KEY, factors, threshold, 9)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine.long(), theirs.long())


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", ARITIES)
def test_hits_equal_the_definition(arity, coding):
    factors = renumbered(perceptrons(3, arity, coding)).to(DEVICE)
    threshold = extreme_thresholds((3, 2, arity)).to(DEVICE)
    expected = flip(5, backend="torch")._hits(KEY, factors, threshold, 5)
    for mine, theirs in zip(cuda_flip.hits(KEY, factors, threshold, 5), expected, strict=True):
        assert torch.equal(mine.long(), theirs)


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
    threshold = torch.empty(0, 3, 7, dtype=torch.int32, device=DEVICE)
    assert cuda_draws.configurations(KEY, factors, threshold, 5).shape == (0, 15, 7)


def surveys_after(graph, steps=2):
    """State and reports of steps of S4P."""
    solver = s4p(
        flip(3, backend="torch"), survey_samples=5, bins=11, variable=gaussian(), damping=0.7
    )
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
    monkeypatch.setattr(S4P, "_twin", lambda *_: cuda_survey)
    two, told_too = surveys_after(graph)
    assert torch.equal(one.surveys[0], two.surveys[0])
    assert torch.equal(one.draws, two.draws)
    assert torch.equal(one.means, two.means)
    for mine, theirs in zip(told_too, told, strict=True):
        assert torch.equal(mine.residual, theirs.residual)
        assert mine.starved == theirs.starved
