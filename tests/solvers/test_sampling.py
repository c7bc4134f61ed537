"""Posterior samples: their law against enumeration, and what they add to independent draws."""

import math

import pytest
import torch

from vitrail.datasets import glass
from vitrail.decode import samples
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.random import Key
from vitrail.solvers.sampling import posterior_samples

SAMPLES = 4000
FALSE_ALARM = 1e-4  # of the family of all statements about frequencies in this file


def glass_graph(num_examples: int, num_inputs: int, seed: int) -> FactorGraph:
    data = glass(num_examples, num_inputs, seed=seed)
    return factor_graph(perceptron(torch.as_tensor(data.inputs), torch.as_tensor(data.labels)))


def enumerated(graph: FactorGraph, beta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """All configurations and their probabilities."""
    codes = torch.arange(2**graph.num_variables)
    states = (codes[:, None] >> torch.arange(graph.num_variables)) & 1 == 1
    return states, torch.softmax(beta * graph.satisfied(states)[:, 0], 0)


@pytest.mark.parametrize("beta", [0.4, 1.0])
def test_long_chains_draw_from_the_posterior(beta):
    """Pearson's χ² over the 32 configurations; chains are independent of one another."""
    graph = glass_graph(7, 5, seed=2)
    _, probability = enumerated(graph, beta)
    flat = torch.zeros(5, dtype=torch.float64)
    drawn = posterior_samples(Key(3), graph, flat, SAMPLES, beta=beta, sweeps=200)
    code = (drawn.long() * (1 << torch.arange(5))).sum(1)
    counts = torch.bincount(code, minlength=32).double()
    expected = SAMPLES * probability
    assert float(expected.min()) > 1
    statistic = float(((counts - expected).square() / expected).sum())
    limit = 31 + 3.9 * math.sqrt(2 * 31) + 2 * 3.9**2 / 3  # Wilson-Hilferty, 5e-5 a test
    assert statistic < limit


def test_hard_factors_are_satisfied_by_nearly_every_sample():
    graph = glass_graph(20, 61, seed=1)
    flat = torch.zeros(61, dtype=torch.float64)
    drawn = posterior_samples(Key(0), graph, flat, 50, beta=math.inf, sweeps=200)
    alone = samples(Key(0), flat, 50)
    assert float(graph.accuracy(drawn).mean()) > 0.99
    assert float(graph.accuracy(alone).mean()) < 0.7
    assert len(torch.unique(drawn, dim=0)) == 50


def test_problems_are_sampled_each_by_itself():
    parts = [glass_graph(6, 15, seed=4), glass_graph(9, 15, seed=5)]
    flat = torch.zeros(30, dtype=torch.float64)
    both = posterior_samples(Key(1), join(parts), flat, 8, beta=3.0)
    assert both.shape == (8, 30)
    assert bool((join(parts).accuracy(both).mean(0) > 0.8).all())


def test_bad_requests_are_refused():
    graph, flat = glass_graph(3, 5, seed=0), torch.zeros(5, dtype=torch.float64)
    with pytest.raises(ValueError, match="sweeps"):
        posterior_samples(Key(0), graph, flat, 1, beta=1.0, sweeps=0)
    with pytest.raises(ValueError, match="beta"):
        posterior_samples(Key(0), graph, flat, 1, beta=0.0)
