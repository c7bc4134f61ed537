"""Annealing under the loop, against the exhaustive optimum."""

import pytest
import torch
from thread_count import num_threads

from vitrail.baselines.annealing import annealing
from vitrail.baselines.exhaustive import optima
from vitrail.datasets import glass, mnist
from vitrail.factors import network, perceptron
from vitrail.graph import factor_graph, join
from vitrail.nn import mlp
from vitrail.solvers import Status, run
from vitrail.solvers.flip_search import errors


def glass_graph(num_examples, num_inputs, seed):
    data = glass(num_examples, num_inputs, seed)
    return factor_graph(perceptron(data.inputs, data.labels))


def test_annealing_finds_the_optimum_of_every_small_problem():
    graphs = [glass_graph(m, n, seed) for seed, (m, n) in enumerate([(20, 10), (50, 10), (40, 15)])]
    solution = run(annealing(40_000, chains=4, steps=4), join(graphs))
    assert solution.best_accuracy.tolist() == [optima(graph)[0].accuracy for graph in graphs]


def test_a_run_ends_when_it_is_cold_and_reports_best_and_last():
    graph = glass_graph(60, 11, seed=1)
    solution = run(annealing(2000, steps=5), graph)
    assert solution.status == (Status.CONVERGED,)
    assert solution.steps == 5
    assert solution.evaluations == 2000 * 60
    assert solution.best_accuracy >= solution.accuracy
    torch.testing.assert_close(graph.accuracy(solution.best[None])[0], solution.best_accuracy)
    torch.testing.assert_close(graph.accuracy(solution.weights[None])[0], solution.accuracy)


def test_a_solved_problem_is_left_alone():
    easy, hard = glass_graph(3, 21, seed=2), glass_graph(80, 9, seed=3)
    solution = run(annealing(4000, steps=4), join([easy, hard]))
    assert solution.status == (Status.SOLVED, Status.CONVERGED)
    assert solution.evaluations < 4000 * 83


def test_runs_repeat_and_differ_by_seed():
    graph = glass_graph(90, 31, seed=4)
    one, again, other = (run(annealing(3000), graph, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.state.bits, again.state.bits)
    assert not torch.equal(one.state.bits, other.state.bits)


def test_the_best_of_all_weights_of_a_network_is_found():
    data = glass(25, 5, seed=5)
    graph = factor_graph(network(mlp(5, (2,)), data.inputs, data.labels))
    every = (torch.arange(2**12)[:, None] >> torch.arange(12) & 1).bool()
    solution = run(annealing(20_000, energy=errors(0.3, 0.03)), graph)
    assert solution.best_accuracy.item() == graph.accuracy(every).max().item()


@pytest.mark.parametrize("wrong", [{"flips": 0}, {"chains": 0}, {"steps": 0}])
def test_settings_below_one_are_refused(wrong):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        annealing(**wrong)


@pytest.mark.long
def test_a_million_flips_fit_mnist_three_against_five():
    data = mnist(pair=(3, 5))
    graph = factor_graph(perceptron(data.inputs, data.labels))
    with num_threads(2):
        solution = run(annealing(1_000_000), graph)
    assert solution.best_accuracy.item() >= 0.92
    assert solution.seconds < 15
