"""The compiled step of survey propagation against the definition, bit for bit."""

import pytest
import torch
from cases_of_kernels import perceptrons

from vitrail.graph import factor_graph, join
from vitrail.random import Key
from vitrail.solvers import run, s4p
from vitrail.solvers.base import Feedback
from vitrail.surveys import gaussian
from vitrail.updates import flip


def stepped(graph, backend, steps, batch=None, samples=5, bins=21, survey_samples=13):
    solver = s4p(
        flip(samples, backend=backend),
        survey_samples=survey_samples,
        bins=bins,
        variable=gaussian(),
        batch=batch,
        damping=0.3,
    )
    feedback = Feedback(
        torch.zeros(graph.num_problems, dtype=torch.float64),
        torch.ones(graph.num_problems, dtype=torch.bool),
    )
    state, infos = solver.init(Key(3), graph), []
    for step in range(steps):
        state, info = solver.step(Key(3, step), graph, state, feedback)
        infos.append(info)
    return state, infos


GRAPHS = {
    "one-weight": lambda: factor_graph(perceptrons(9, 1)),
    "seven": lambda: factor_graph(perceptrons(20, 7, "binary")),
    "paper": lambda: factor_graph(perceptrons(12, 196)),
    "hard": lambda: factor_graph(perceptrons(30, 11, beta=float("inf"))),
    "two-problems": lambda: join(
        [factor_graph(perceptrons(8, 9)), factor_graph(perceptrons(5, 9, seed=4))]
    ),
}


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("graph", GRAPHS)
def test_steps_equal_the_definition(graph, batch):
    built = GRAPHS[graph]()
    one, told = stepped(built, "torch", 3, batch)
    two, told_too = stepped(built, "numba", 3, batch)
    assert all(torch.equal(a, b) for a, b in zip(one.surveys, two.surveys, strict=True))
    assert torch.equal(one.draws, two.draws)
    assert torch.equal(one.means, two.means)
    for mine, theirs in zip(told_too, told, strict=True):
        assert torch.equal(mine.residual, theirs.residual)
        assert (mine.starved, mine.evaluations) == (theirs.starved, theirs.evaluations)
        assert torch.equal(mine.records["effective_draws"], theirs.records["effective_draws"])


@pytest.mark.parametrize(("samples", "bins", "tracks"), [(1, 3, 1), (15, 201, 40)])
def test_steps_equal_the_definition_at_other_sizes(samples, bins, tracks):
    built = factor_graph(perceptrons(10, 33))
    one, _ = stepped(built, "torch", 2, None, samples, bins, tracks)
    two, _ = stepped(built, "numba", 2, None, samples, bins, tracks)
    assert torch.equal(one.surveys[0], two.surveys[0])


def test_a_run_finds_the_same_with_either_backend():
    graph = factor_graph(perceptrons(300, 15))
    one, two = (
        run(s4p(flip(3, backend=backend), survey_samples=10, bins=31), graph, max_steps=4)
        for backend in ("torch", "numba")
    )
    assert torch.equal(one.best, two.best)
    assert torch.equal(one.marginals, two.marginals)
