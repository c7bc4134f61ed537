"""CP-SAT against the exhaustive optimum."""

import sys

import pytest
import torch

from vitrail.baselines.cpsat import cpsat
from vitrail.baselines.exhaustive import optima
from vitrail.datasets import glass
from vitrail.factors import network, perceptron
from vitrail.graph import factor_graph, join
from vitrail.nn import mlp
from vitrail.solvers import run


def glass_graph(num_examples, num_inputs, seed, **options):
    data = glass(num_examples, num_inputs, seed)
    return factor_graph(perceptron(data.inputs, data.labels, **options))


def proved(graph, **options):
    """The best weights of one problem, how many examples they satisfy, and the bound on that."""
    found = run(cpsat(**options), graph, max_steps=1)
    total = graph.weight_per_problem.item()
    bound = found.history["bound"][-1, 0].item()
    return found.best, round(found.best_accuracy.item() * total), round(bound * total)


def test_missing_ortools_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(ImportError, match=r"CP-SAT needs ortools, .*'vitrail\[lab\]'"):
        proved(glass_graph(5, 5, seed=0))


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
def test_proven_optimum_is_the_exhaustive_one(coding):
    pytest.importorskip("ortools")
    graph = glass_graph(15, 10, seed=1, coding=coding)
    (weights, satisfied, bound), (optimum,) = proved(graph), optima(graph)
    assert satisfied == optimum.satisfied
    assert bound == optimum.satisfied
    assert graph.satisfied(weights[None]).item() == optimum.satisfied


def test_weighted_examples_count_as_often_as_their_weight():
    pytest.importorskip("ortools")
    graph = glass_graph(12, 8, seed=2, weight=torch.tensor([1.0, 2.0, 3.0] * 4))
    (_, satisfied, bound), (optimum,) = proved(graph), optima(graph)
    assert (satisfied, bound) == (optimum.satisfied, optimum.satisfied)


def test_a_cut_run_still_gives_weights_and_a_true_bound():
    pytest.importorskip("ortools")
    graph = glass_graph(60, 15, seed=3)
    (weights, satisfied, bound), (optimum,) = proved(graph, effort=0.02), optima(graph)
    assert satisfied < bound
    assert satisfied <= optimum.satisfied <= bound
    assert graph.satisfied(weights[None]).item() == satisfied


def test_a_run_reports_each_problem_s_bound_and_repeats():
    pytest.importorskip("ortools")
    graph = join([glass_graph(12, 9, seed=4), glass_graph(30, 15, seed=5)])
    one, two = (run(cpsat(effort=0.05), graph) for _ in range(2))
    bound = one.history["bound"][-1]
    assert bool((one.best_accuracy <= bound).all())
    assert torch.equal(one.best, two.best)
    assert torch.equal(bound, two.history["bound"][-1])


def test_other_networks_are_refused():
    data = glass(5, 6)
    with pytest.raises(ValueError, match="linear threshold units only"):
        run(cpsat(), factor_graph(network(mlp(6, (2,)), data.inputs, data.labels)))


@pytest.mark.long
@pytest.mark.parametrize("num_examples", [10, 20])
@pytest.mark.parametrize("seed", range(3))
def test_proven_optimum_is_the_exhaustive_one_at_31_weights(num_examples, seed):
    pytest.importorskip("ortools")
    graph = glass_graph(num_examples, 31, seed)
    (_, satisfied, bound), (optimum,) = proved(graph, effort=None), optima(graph)
    assert (satisfied, bound) == (optimum.satisfied, optimum.satisfied)
