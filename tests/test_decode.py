"""Decoding: each way gives what it says, and the default is never the worst."""

import pytest
import torch

from vitrail.datasets import mnist
from vitrail.decode import best_of, decoded, samples, sequential, threshold
from vitrail.factors import perceptron, table
from vitrail.graph import FactorGraph, factor_graph, indexed, join
from vitrail.random import Key
from vitrail.solvers import belief_propagation, run
from vitrail.updates import closed_form


def equal_pair() -> FactorGraph:
    """Two variables that must be equal, both undecided."""
    return factor_graph(table(torch.tensor([[1.0, 0.0, 0.0, 1.0]]), indexed([[0, 1]])))


def digits() -> tuple[FactorGraph, torch.Tensor]:
    """A real problem with correlated inputs, and its marginals."""
    data = mnist(pair=(3, 5))
    inputs, labels = torch.as_tensor(data.inputs[:60]), torch.as_tensor(data.labels[:60])
    graph = factor_graph(perceptron(inputs.flatten(1), labels, beta=2.0))
    solver = belief_propagation(closed_form("gaussian"), damping=0.8)
    return graph, torch.logit(run(solver, graph, max_steps=5).marginals)


def test_threshold_takes_the_likelier_value_and_a_coin_in_between():
    log_odds = torch.tensor([2.0, -0.1] + [0.0] * 400, dtype=torch.float64)
    bits = threshold(Key(1), log_odds)
    assert bits[:2].tolist() == [True, False]
    assert 140 < int(bits[2:].sum()) < 260  # 6 sigma of 400 fair coins


def test_samples_follow_the_marginals():
    log_odds = torch.tensor([0.0, 3.0, -3.0], dtype=torch.float64)
    share = samples(Key(0), log_odds, 20_000).double().mean(0)
    expected = torch.sigmoid(log_odds)
    error = (expected * (1 - expected) / 20_000).sqrt()
    assert bool(((share - expected).abs() < 5 * error).all())


@pytest.mark.parametrize("decode", [best_of, sequential, decoded])
def test_joint_decoders_make_answers_that_go_together(decode):
    graph = join([equal_pair() for _ in range(20)])
    undecided = torch.zeros(40, dtype=torch.float64)
    assert bool((graph.accuracy(decode(Key(3), graph, undecided)[None]) == 1).all())
    assert not bool((graph.accuracy(threshold(Key(3), undecided)[None]) == 1).all())


def test_the_default_keeps_whichever_satisfies_most():
    graph, log_odds = digits()
    ways = [
        threshold(Key(0), log_odds),
        best_of(Key(0), graph, log_odds),
        sequential(Key(0), graph, log_odds),
    ]
    best = graph.accuracy(torch.stack(ways)).max()
    assert float(graph.accuracy(decoded(Key(0), graph, log_odds)[None])) == float(best)


def test_certain_variables_keep_their_value():
    graph, log_odds = digits()
    sure = torch.where(log_odds > 0, 30.0, -30.0).double()
    assert torch.equal(sequential(Key(0), graph, sure), log_odds > 0)


def test_no_draws_are_refused():
    graph, log_odds = digits()
    with pytest.raises(ValueError, match="num must be"):
        best_of(Key(0), graph, log_odds, num=0)
