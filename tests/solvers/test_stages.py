"""Stages: only unsolved problems go on, nothing found is lost, one solution comes out."""

import pytest
import torch

from vitrail.datasets import glass
from vitrail.factors import perceptron
from vitrail.graph import factor_graph, join
from vitrail.solvers import Status, belief_propagation, run
from vitrail.solvers.s4p import from_messages, s4p, snmp
from vitrail.solvers.stages import Stage, run_stages
from vitrail.updates import flip


@pytest.fixture(scope="module")
def graph():
    """Easy and hard problems side by side: 4 of 5 examples, 4 of 40, on 9 weights."""
    sizes = [5, 5, 5, 5, 40, 40, 40, 40]
    data = [glass(size, 9, seed=seed) for seed, size in enumerate(sizes)]
    return join([factor_graph(perceptron(d.inputs, d.labels)) for d in data])


@pytest.fixture(scope="module")
def solution(graph):
    return run_stages(snmp(flip(5), steps=(8, 4), survey_samples=30, bins=51), graph, seed=3)


def test_solved_problems_keep_what_the_first_stage_found(graph, solution):
    first = run(belief_propagation(flip(5)), graph, seed=3, max_steps=8)
    solved = first.solved
    assert 0 < int(solved.sum()) < 8
    variables = solved[graph.problem]
    assert torch.equal(solution.best[variables], first.best[variables])
    assert torch.equal(solution.weights[variables], first.weights[variables])
    assert torch.equal(solution.marginals[variables], first.marginals[variables])
    assert (solution.best_stage[solved] == 0).all()
    assert solution.solved[solved].all()


def test_the_best_is_never_worse_than_after_the_first_stage(graph, solution):
    first = run(belief_propagation(flip(5)), graph, seed=3, max_steps=8)
    assert (solution.best_accuracy >= first.best_accuracy).all()
    assert torch.equal(graph.accuracy(solution.best[None])[0], solution.best_accuracy)
    better = solution.best_accuracy > first.best_accuracy
    assert better.any()
    assert torch.equal(solution.best_stage == 1, better)
    assert {name for name, more in zip(solution.found_by, better, strict=True) if more} == {"s4p"}


def test_the_history_runs_through(solution):
    assert solution.stages == ("sbp", "s4p")
    assert solution.steps == 12
    assert solution.history["stage"].tolist() == [0] * 8 + [1] * 4
    assert (solution.history["best"].diff(dim=0) >= 0).all()
    assert (solution.history["evaluations"].diff() > 0).all()
    assert solution.history["evaluations"][-1] == solution.evaluations
    effective = solution.history["effective_draws"]
    assert effective[:8].isnan().all()
    assert (effective[8:] == 30).all()


def test_no_survey_stage_runs_when_all_is_solved(graph):
    easy = join([factor_graph(perceptron(d.inputs, d.labels)) for d in [glass(3, 9, seed=1)]])
    solution = run_stages(snmp(flip(5), survey_samples=10, bins=5), easy)
    assert solution.stages == ("sbp",)
    assert solution.status == (Status.SOLVED,)


def test_the_budget_is_for_all_stages_together(graph):
    stages = snmp(flip(5), steps=(4, 50), survey_samples=30, bins=51)
    solution = run_stages(stages, graph, max_evaluations=30_000)
    assert solution.evaluations >= 30_000
    assert Status.BUDGET in solution.status
    none = run_stages(stages, graph, max_evaluations=1)
    assert none.stages == ("sbp",)


def test_a_stage_with_a_limit_of_its_own_lets_the_next_one_run(graph):
    first = Stage("short", belief_propagation(flip(5)), 10, max_evaluations=1)
    then = Stage("long", belief_propagation(flip(5)), 3)
    solution = run_stages([first, then], graph)
    assert solution.stages == ("short", "long")
    assert solution.steps == 4


def test_a_cut_run_goes_on_where_it_stopped(graph, solution, tmp_path):
    stages = snmp(flip(5), steps=(8, 4), survey_samples=30, bins=51)
    cut = [stages[0], Stage("s4p", stages[1].solver, 2, stages[1].start)]
    path = tmp_path / "run"
    run_stages(cut, graph, seed=3, checkpoint=path, checkpoint_every=1)
    whole = run_stages(stages, graph, seed=3, checkpoint=path, checkpoint_every=1)
    assert torch.equal(whole.best, solution.best)
    assert torch.equal(whole.state.surveys[0], solution.state.surveys[0])
    assert torch.equal(whole.history["best"], solution.history["best"])


def test_a_warm_start_needs_belief_propagation_before_it(graph):
    surveys = s4p(flip(5), survey_samples=10, bins=5)
    stages = [Stage("one", surveys, 1), Stage("two", surveys, 1, start=from_messages(surveys))]
    with pytest.raises(TypeError, match="put belief propagation before it"):
        run_stages(stages, graph)


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_names_are_needed_and_differ(graph, names):
    stages = [Stage(name, belief_propagation(flip(5)), 1) for name in names]
    with pytest.raises(ValueError, match="one or more with different names"):
        run_stages(stages, graph)
