"""Compiled scores against the definition."""

import pytest
import torch
from cases_of_kernels import ARITIES, generator, perceptrons

from vitrail.factors import table
from vitrail.graph import factor_graph, join
from vitrail.kernels import dispatch
from vitrail.kernels.cpu import score
from vitrail.solvers.run import satisfied


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize("arity", ARITIES)
def test_scores_equal_the_definition(arity, coding):
    factors = perceptrons(40, arity, coding)
    states = torch.rand(5, arity, generator=generator(1)) < 0.5
    expected = factors.satisfied_at(states, 2**20).bool()
    assert torch.equal(score.satisfied(factors, states), expected)


def test_states_may_lie_in_memory_any_way():
    factors = perceptrons(40, 9)
    states = (torch.rand(9, 5, generator=generator(1)) < 0.5).T
    expected = factors.satisfied_at(states, 2**20).bool()
    assert torch.equal(score.satisfied(factors, states), expected)


def test_the_loop_counts_the_same_with_and_without_kernels(monkeypatch):
    monkeypatch.setattr(dispatch, "LANES_BEFORE_LOADING", 0)
    graph = join([factor_graph(perceptrons(50, 9)), factor_graph(perceptrons(7, 9, seed=3))])
    states = torch.rand(3, 18, generator=generator(2)) < 0.5
    assert torch.equal(satisfied(graph, states), graph.satisfied(states))


def test_other_factors_are_scored_by_their_definition():
    graph = factor_graph(perceptrons(4, 2), table(torch.rand(1, 2, 2)))
    states = torch.tensor([[True, False], [True, True]])
    assert torch.equal(satisfied(graph, states), graph.satisfied(states))
