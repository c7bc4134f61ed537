"""The optimum against plain enumeration through the graph itself."""

import pytest
import torch

from vitrail.baselines.exhaustive import exhaustive, optima
from vitrail.datasets import glass
from vitrail.factors import network, perceptron
from vitrail.graph import factor_graph, join
from vitrail.nn import mlp
from vitrail.solvers import Status, run


def glass_graph(num_examples, num_inputs, seed, **options):
    data = glass(num_examples, num_inputs, seed)
    return factor_graph(perceptron(data.inputs, data.labels, **options))


def every_state(num_variables):
    return (torch.arange(2**num_variables)[:, None] >> torch.arange(num_variables) & 1).bool()


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
@pytest.mark.parametrize(("num_inputs", "num_examples"), [(1, 3), (8, 20), (12, 70), (16, 40)])
def test_optimum_agrees_with_plain_enumeration(num_inputs, num_examples, coding):
    graph = glass_graph(num_examples, num_inputs, seed=num_inputs, coding=coding)
    satisfied = graph.satisfied(every_state(num_inputs))[:, 0].to(torch.int64)
    (optimum,) = optima(graph, histogram=True)
    assert optimum.satisfied == satisfied.max()
    assert optimum.optima == (satisfied == satisfied.max()).sum()
    assert graph.satisfied(optimum.weights[None]).item() == optimum.satisfied
    assert optimum.histogram is not None
    assert optimum.histogram.tolist() == satisfied.bincount(minlength=num_examples + 1).tolist()


def test_weighted_examples_count_as_often_as_their_weight():
    weight = torch.tensor([1.0, 2.0, 3.0, 0.0] * 10)
    graph = glass_graph(40, 9, seed=3, weight=weight)
    (optimum,) = optima(graph)
    assert optimum.examples == 60
    assert optimum.satisfied == graph.satisfied(every_state(9)).max()


def test_a_run_solves_every_problem_of_a_joined_graph():
    graphs = [glass_graph(30, 10, seed=1), glass_graph(45, 7, seed=2), glass_graph(3, 12, seed=3)]
    solution = run(exhaustive(), join(graphs))
    expected = [optima(graph)[0].accuracy for graph in graphs]
    assert solution.best_accuracy.tolist() == pytest.approx(expected)
    assert solution.status == (Status.CONVERGED, Status.CONVERGED, Status.SOLVED)
    assert solution.steps == 1
    assert torch.equal(solution.weights, solution.best)
    assert solution.history["optima"][0, 0] == optima(graphs[0])[0].optima


def test_other_networks_are_refused():
    data = glass(5, 6)
    with pytest.raises(ValueError, match="linear threshold units only"):
        optima(factor_graph(network(mlp(6, (2,)), data.inputs, data.labels)))


def test_too_many_weights_are_refused():
    with pytest.raises(ValueError, match="at most 44 weights, got 45"):
        run(exhaustive(), glass_graph(5, 45, seed=0))
