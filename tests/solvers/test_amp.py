"""Approximate message passing: the beliefs of belief propagation, and solutions near capacity."""

import pytest
import torch
from thread_count import num_threads

from vitrail.datasets import glass, mnist
from vitrail.factors import network, perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.nn import Coding, mlp
from vitrail.solvers import (
    Status,
    approximate_message_passing,
    belief_propagation,
    linear,
    portfolio,
    run,
    run_stages,
)
from vitrail.updates import closed_form

SLOW = linear(1e-9)  # no reinforcement within a test


def random_problem(alpha: float, n: int, seed: int = 0, **settings) -> FactorGraph:
    data = glass(round(alpha * n), n, seed=seed)
    return factor_graph(perceptron(data.inputs, data.labels, **settings))


def with_zeros(coding: Coding, beta: float) -> FactorGraph:
    """Sums of even and odd length, so that the boundary differs from factor to factor."""
    draw = torch.Generator().manual_seed(3)
    inputs = torch.randint(-1, 2, (120, 401), generator=draw, dtype=torch.int8)
    labels = torch.randint(2, (120,), generator=draw)
    return factor_graph(perceptron(inputs, labels, beta=beta, coding=coding))


@pytest.mark.parametrize(
    "graph",
    [
        random_problem(0.4, 301),
        random_problem(0.8, 301, beta=2.0),
        with_zeros("bipolar", 3.0),
        with_zeros("binary", 1.0),
    ],
    ids=["hard", "soft", "zeros", "weights of 0 and 1"],
)
def test_beliefs_are_those_of_belief_propagation(graph):
    """Leaving one message out matters by 1/N; both start from a prior of spread zero."""
    exact = belief_propagation(closed_form("gaussian"), damping=0.2, prior_scale=0.0)
    wanted = run(exact, graph, max_steps=60).marginals
    found = run(
        approximate_message_passing(SLOW, copies=1, spread=0.0), graph, max_steps=40
    ).marginals
    assert float((wanted - 0.5).abs().max()) > 0.1
    assert float((found - wanted).abs().max()) < 0.02


def test_more_copies_solve_what_one_does_not():
    graph = join([random_problem(0.72, 201, seed) for seed in range(6)])
    few, many = (
        run(
            approximate_message_passing(linear(0.01, most=0.6), copies=copies),
            graph,
            max_steps=60,
            score_every=5,
        )
        for copies in (1, 50)
    )
    assert int(few.solved.sum()) < int(many.solved.sum())
    assert bool((few.best_accuracy <= many.best_accuracy).all())


def test_an_attempt_that_fails_is_followed_by_a_slower_one():
    graph = random_problem(0.83, 301)
    solver = approximate_message_passing(linear(0.02, most=0.4), copies=1)
    found = run(solver, graph, max_steps=65)
    assert found.history["attempt"][:, 0].tolist() == [0] * 20 + [1] * 40 + [2] * 5
    assert found.status == (Status.MAX_STEPS,)


def test_correlated_inputs_are_reported_and_left_to_the_next_stage():
    data = mnist(pair=(3, 5))
    few = perceptron(data.inputs.flatten(1)[:60], data.labels[:60])
    graph = factor_graph(few)
    found = run(approximate_message_passing(), graph, max_steps=50)
    assert found.status == (Status.DIVERGED,)
    assert found.steps == 10
    both = run_stages(portfolio(graph, ("amp", "reinforced")), graph)
    assert both.found_by == ("reinforced",)
    assert bool(both.solved.all())


def test_the_result_depends_neither_on_threads_nor_on_a_stop(tmp_path):
    graph = random_problem(0.9, 301, beta=4.0)
    solver = approximate_message_passing(linear(0.02), copies=3)
    wanted = run(solver, graph, max_steps=45)
    with num_threads(2):
        parallel = run(solver, graph, max_steps=45)
    saved = {"checkpoint": tmp_path / "run", "checkpoint_every": 10}
    run(solver, graph, max_steps=20, **saved)
    resumed = run(solver, graph, max_steps=45, **saved)
    for other in (parallel, resumed):
        assert torch.equal(other.state.log_odds, wanted.state.log_odds)
        assert torch.equal(other.best, wanted.best)


def test_what_it_cannot_do_is_refused():
    data = glass(5, 11, seed=0)
    hidden = factor_graph(network(mlp(11, hidden=(3,)), data.inputs, data.labels))
    with pytest.raises(TypeError, match="linear threshold units only"):
        run(approximate_message_passing(), hidden)
    with pytest.raises(ValueError, match="copies"):
        approximate_message_passing(copies=0)
    with pytest.raises(ValueError, match="spread"):
        approximate_message_passing(spread=-1.0)
    with pytest.raises(ValueError, match="slower"):
        approximate_message_passing(slower=0.5)
