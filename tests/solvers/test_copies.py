"""Rounds of copies of hard problems."""

import pytest
import torch

from vitrail.datasets import glass
from vitrail.factors import perceptron
from vitrail.graph import factor_graph, join
from vitrail.solvers import portfolio, run_copies
from vitrail.updates import closed_form


def problem(num_examples, seed, num_inputs=61):
    data = glass(num_examples, num_inputs, seed=seed)
    inputs, labels = torch.as_tensor(data.inputs), torch.as_tensor(data.labels)
    return factor_graph(perceptron(inputs, labels))


def reinforced(graph):
    update = closed_form("gaussian")
    return portfolio(graph, ["reinforced"], update=update, rate=0.02, attempts=1)


def accuracy(graph, best):
    return float(graph.satisfied(best[None])[0, 0]) / graph.num_factors


def test_every_problem_keeps_its_best_copy_and_solved_ones_leave():
    graphs = [problem(20, 1), problem(43, 2), problem(44, 3), problem(61, 4, 31)]
    room = 40 * 43 * 61
    found = run_copies(reinforced, graphs, edges=room, first=2, max_rounds=3, seed=5)
    for graph, best, reached in zip(graphs, found.best, found.best_accuracy, strict=True):
        assert accuracy(graph, best) == pytest.approx(float(reached))
    assert found.copies[0] == 2  # solved in the first round
    assert not found.solved[3]  # beyond capacity
    assert found.copies[3] > 10  # so it went through all rounds
    assert torch.equal(found.solved, found.best_accuracy == 1)
    assert found.seconds[0] < found.seconds[3]


def test_more_copies_solve_what_one_does_not():
    graphs = [problem(44, seed) for seed in range(10, 18)]
    once = run_copies(reinforced, graphs, edges=1, max_rounds=1)
    often = run_copies(reinforced, graphs, edges=8 * 30 * 44 * 61, max_rounds=2)
    assert int(often.solved.sum()) > int(once.solved.sum())
    assert bool((often.best_accuracy >= once.best_accuracy).all())


def test_rounds_are_a_function_of_the_seed():
    graphs = [problem(46, 2), problem(47, 3)]
    one, two = (run_copies(reinforced, graphs, edges=50_000, max_rounds=2, seed=9) for _ in "ab")
    assert torch.equal(torch.cat(one.best), torch.cat(two.best))
    assert torch.equal(one.copies, two.copies)


def test_time_ends_the_rounds():
    found = run_copies(reinforced, [problem(61, 4, 31)], edges=10**6, max_seconds=0.0)
    assert found.copies.tolist() == [0]


def test_what_cannot_be_copied_is_refused():
    two = join([problem(20, 1), problem(20, 2)])
    with pytest.raises(ValueError, match="single problems, got a graph of 2"):
        run_copies(reinforced, [two], edges=100)
    with pytest.raises(ValueError, match="must be positive"):
        run_copies(reinforced, [problem(20, 1)], edges=0)
