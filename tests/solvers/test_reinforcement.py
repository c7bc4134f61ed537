"""Reinforcement, back-off and annealing around any message-passing solver."""

import math

import pytest
import torch

from vitrail.datasets import glass, mnist
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.random import Key
from vitrail.solvers import Feedback, Status, belief_propagation, run
from vitrail.solvers.annealed import annealed, geometric
from vitrail.solvers.reinforcement import linear, reinforced
from vitrail.solvers.steady import steady
from vitrail.updates import closed_form, exact, flip


def glass_graph(num_examples: int, num_inputs: int, seed: int, beta=math.inf) -> FactorGraph:
    data = glass(num_examples, num_inputs, seed=seed)
    return factor_graph(
        perceptron(torch.as_tensor(data.inputs), torch.as_tensor(data.labels), beta)
    )


def feedback(graph: FactorGraph) -> Feedback:
    accuracy = torch.zeros(graph.num_problems, dtype=torch.float64)
    return Feedback(accuracy, torch.ones(graph.num_problems, dtype=torch.bool))


def test_a_share_grows_to_its_top_in_the_steps_it_names():
    share = linear(0.01)
    steps = torch.arange(share.steps + 5)
    shares = share(steps)
    assert float(shares[0]) == 0
    assert bool((shares[1:] >= shares[:-1]).all())
    assert float(shares[share.steps]) == pytest.approx(share.most)
    assert float(shares[share.steps - 1]) < share.most


def test_the_field_is_the_share_of_the_last_belief():
    graph = glass_graph(9, 11, seed=3)
    inner = belief_propagation(exact(), damping=0.0)
    solver = reinforced(inner, linear(0.25), attempts=1)
    state = solver.init(Key(0), graph)
    for step in range(3):
        plain, _ = inner.step(Key(0).at(step), graph, state.inner, feedback(graph))
        following, _ = solver.step(Key(0).at(step), graph, state, feedback(graph))
        torch.testing.assert_close(following.field, 0.25 * step * plain.belief, atol=1e-6, rtol=0)
        expected = plain.belief + following.field - state.field
        torch.testing.assert_close(following.inner.belief, expected, atol=0, rtol=0)
        state = following


def test_a_random_perceptron_at_three_fifths_is_solved():
    graph = glass_graph(120, 201, seed=11)
    solver = reinforced(belief_propagation(closed_form("gaussian"), damping=0.0), linear(0.005))
    solution = run(solver, graph, max_steps=solver.max_steps(graph))
    assert solution.status == (Status.SOLVED,)
    assert float(graph.accuracy(solution.best[None])) == 1


def test_sampled_messages_can_be_reinforced_too():
    graph = glass_graph(30, 101, seed=4)
    solver = reinforced(belief_propagation(flip(32), damping=0.5), linear(0.01))
    assert run(solver, graph, max_steps=300).status == (Status.SOLVED,)


def test_a_failed_attempt_is_followed_by_a_slower_one_and_the_last_ends_the_run():
    graph = glass_graph(60, 21, seed=2)  # far beyond what 21 bits can satisfy
    solver = reinforced(
        belief_propagation(closed_form("gaussian"), damping=0.0), linear(0.1), attempts=3
    )
    solution = run(solver, graph, max_steps=1000)
    attempt = solution.history["attempt"][:, 0]
    lengths = [int((attempt == k).sum()) for k in range(3)]
    assert attempt.unique().tolist() == [0, 1, 2]
    assert solution.status[0] != Status.SOLVED
    assert solution.steps <= solver.max_steps(graph)
    assert lengths[0] <= 31 + 1
    assert lengths[2] > lengths[0]


def test_attempts_start_from_different_priors():
    graph = glass_graph(60, 21, seed=2)
    solver = reinforced(belief_propagation(closed_form("gaussian")), linear(0.5), attempts=2)
    state, priors = solver.init(Key(7), graph), []
    for step in range(200):
        if int(state.age) == 0:
            priors.append(state.inner.belief)
        state, _ = solver.step(Key(7).at(step), graph, state, feedback(graph))
    assert len(priors) == 2
    assert not torch.equal(priors[0], priors[1])


def test_problems_restart_on_their_own():
    graph = join([glass_graph(60, 21, seed=2), glass_graph(4, 21, seed=5)])
    solver = reinforced(belief_propagation(closed_form("gaussian"), damping=0.0), linear(0.1))
    solution = run(solver, graph, max_steps=300)
    assert solution.history["attempt"][-1].tolist() == [3, 0]
    assert solution.status[1] == Status.SOLVED


def test_reinforced_batches_count_epochs_not_steps():
    graph = glass_graph(40, 51, seed=1)
    solver = reinforced(
        belief_propagation(closed_form("gaussian"), damping=0.0, batch=10), linear(0.1), attempts=1
    )
    share = run(solver, graph, max_steps=5, tolerance=0.0).history["share"][:, 0]
    torch.testing.assert_close(share, 0.025 * torch.arange(len(share), dtype=torch.float64))


def test_a_flood_that_oscillates_is_damped_until_it_stops():
    data = mnist(pair=(3, 5))
    inputs = torch.as_tensor(data.inputs[:100]).flatten(1)
    graph = factor_graph(perceptron(inputs, torch.as_tensor(data.labels[:100]), beta=2.0))
    wild = run(belief_propagation(closed_form("gaussian"), damping=0.0), graph, max_steps=100)
    solver = steady(belief_propagation(closed_form("gaussian"), damping=0.0))
    calm = run(solver, graph, max_steps=100)
    assert float(calm.history["damping"].max()) > 0.5
    assert float(calm.history["residual"][-1]) < 0.1 * float(wild.history["residual"][-1])
    assert float(wild.accuracy) < 0.7  # it jumps between two bad configurations
    assert float(calm.accuracy) > 0.85


def test_an_annealed_step_is_a_step_at_that_beta():
    graph = glass_graph(12, 9, seed=8, beta=1.0)
    inner = belief_propagation(exact(), damping=0.0)
    solver = annealed(inner, geometric(0.5, 8.0, steps=4))
    state = solver.init(Key(0), graph)
    for step, beta in enumerate([0.5, 1.0, 2.0, 4.0, 8.0, 8.0]):
        at_beta, _ = inner.step(
            Key(0).at(step), graph.with_beta(beta), state.inner, feedback(graph)
        )
        state, _ = solver.step(Key(0).at(step), graph, state, feedback(graph))
        assert torch.equal(state.inner.belief, at_beta.belief)


def test_a_relative_schedule_keeps_how_betas_of_factors_compare():
    own = torch.linspace(0.5, 4.0, 12, dtype=torch.float64)
    graph = glass_graph(12, 9, seed=8, beta=1.0).with_beta(own)
    inner = belief_propagation(exact(), damping=0.0)
    solver = annealed(inner, geometric(0.25, 1.0, steps=2), relative=True)
    state = solver.init(Key(0), graph)
    for step, share in enumerate([0.25, 0.5, 1.0]):
        scaled, _ = inner.step(
            Key(0).at(step), graph.with_beta(share * own), state.inner, feedback(graph)
        )
        state, _ = solver.step(Key(0).at(step), graph, state, feedback(graph))
        assert torch.equal(state.inner.belief, scaled.belief)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear(0.0), "rate must be above 0"),
        (lambda: linear(0.1, most=1.0), "most must be"),
        (lambda: reinforced(belief_propagation(exact()), attempts=0), "attempts"),
        (lambda: reinforced(belief_propagation(exact()), slower=0.5), "slower"),
        (lambda: steady(belief_propagation(exact()), high=1.0), "high"),
        (lambda: steady(belief_propagation(exact()), cut=1.0), "cut"),
        (lambda: geometric(0.0, 1.0, 5), "positive"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
