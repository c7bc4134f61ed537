"""Decimation, polish and the portfolio: each does what it says, and none loses the best."""

import math

import pytest
import torch

from vitrail.datasets import glass
from vitrail.factors import blackbox, network, perceptron, table
from vitrail.graph import FactorGraph, factor_graph, indexed, join
from vitrail.nn import mlp
from vitrail.random import Key
from vitrail.solvers import Feedback, Status, belief_propagation, run
from vitrail.solvers.annealed import Annealed
from vitrail.solvers.decimation import FIXED, decimated, decimation_steps
from vitrail.solvers.polish import polish
from vitrail.solvers.portfolio import MessageOptions, default_message_options, portfolio
from vitrail.solvers.stages import run_stages
from vitrail.updates import closed_form, exact, flip


def glass_graph(num_examples: int, num_inputs: int, seed: int, beta=math.inf) -> FactorGraph:
    data = glass(num_examples, num_inputs, seed=seed)
    inputs, labels = torch.as_tensor(data.inputs), torch.as_tensor(data.labels)
    return factor_graph(perceptron(inputs, labels, beta))


def optimum(graph: FactorGraph) -> float:
    codes = torch.arange(2**graph.num_variables)
    states = (codes[:, None] >> torch.arange(graph.num_variables)) & 1 == 1
    return float(graph.accuracy(states).max())


def feedback(graph: FactorGraph) -> Feedback:
    accuracy = torch.zeros(graph.num_problems, dtype=torch.float64)
    return Feedback(accuracy, torch.ones(graph.num_problems, dtype=torch.bool))


def test_decimation_fixes_the_most_polarised_and_only_by_its_bias():
    graph = glass_graph(8, 20, seed=1)
    inner = belief_propagation(exact(), damping=0.0)
    solver = decimated(inner, fraction=0.1, rest=1)
    state = solver.init(Key(0), graph)
    plain, _ = inner.step(Key(0), graph, state.inner, feedback(graph))
    state, info = solver.step(Key(0), graph, state, feedback(graph))
    fixed = state.fixed.nonzero()[:, 0]
    assert sorted(fixed.tolist()) == sorted(plain.belief.abs().topk(2).indices.tolist())
    expected = plain.belief + FIXED * state.fixed
    assert torch.equal(state.inner.belief, expected)
    assert torch.equal(torch.sign(plain.belief[fixed]), state.fixed[fixed].double())
    assert info.records["fixed"].tolist() == [0.1]


def test_a_fix_that_the_messages_outvote_is_taken_back():
    # two variables that must be equal, the second known to be one
    equal = table(torch.tensor([[1.0, 0.0, 0.0, 1.0]]), indexed([[0, 1]]), beta=3.0)
    prior = torch.tensor([-0.5, 20.0], dtype=torch.float64)
    graph = factor_graph(equal, log_prior=prior)
    solver = decimated(belief_propagation(exact(), damping=0.0, prior_scale=0.0), rest=1)
    state = solver.init(Key(0), graph)
    wrong = torch.tensor([-1, 0], dtype=torch.int8)
    inner = solver.solver.shift_prior(state.inner, FIXED * wrong.double())
    state = type(state)(inner, wrong)
    state, _ = solver.step(Key(0), graph, state, feedback(graph))
    assert state.fixed.tolist() == [0, 1]


def test_decimation_ends_with_everything_fixed_at_a_solution():
    graph = glass_graph(40, 101, seed=4)
    solver = decimated(belief_propagation(closed_form("gaussian"), damping=0.3))
    solution = run(solver, graph, max_steps=decimation_steps(solver))
    assert solution.status == (Status.SOLVED,)


def test_a_contradiction_frees_its_problem_and_does_not_end_the_run():
    equal, unequal = [[1.0, 0.0, 0.0, 1.0]], [[0.0, 1.0, 1.0, 0.0]]
    scope = indexed([[0, 1], [0, 1]])
    graph = factor_graph(table(torch.tensor(equal + unequal), scope))
    solver = decimated(belief_propagation(exact(), damping=0.0, prior_scale=5.0), rest=2)
    solution = run(solver, graph, max_steps=12)
    assert solution.status == (Status.MAX_STEPS,)
    assert float(solution.best_accuracy) == 0.5


@pytest.mark.parametrize("num_examples", [12, 24])
def test_polish_reaches_the_optimum_of_small_glass(num_examples):
    graph = glass_graph(num_examples, 11, seed=num_examples)
    solution = run(polish(1000), graph, max_steps=8)
    assert float(solution.best_accuracy) == optimum(graph)


def test_polish_serves_any_factor():
    def parity(states, which):
        return (states.sum(-1) + which[:, None]) % 2 == 1

    scope = indexed([[0, 1, 2], [2, 3, 4], [1, 4, 5], [0, 3, 5]])
    graph = factor_graph(blackbox(parity, 4, 3, scope=scope))
    assert float(run(polish(150), graph, max_steps=8).best_accuracy) == optimum(graph)


def test_polish_starts_from_the_best_candidate_of_each_problem_and_never_falls_below():
    graph = join([glass_graph(30, 15, seed=1), glass_graph(30, 15, seed=2)])
    candidates = torch.randint(
        0, 2, (5, 30), generator=torch.Generator().manual_seed(0), dtype=torch.bool
    )
    solver = polish(1, chains=3)
    state = solver.start(Key(0), graph, candidates)
    score = graph.satisfied(candidates)
    assert torch.equal(state.best_score, score.sort(0, descending=True).values[:3])
    assert torch.equal(graph.satisfied(state.bits[:1])[0], score.amax(0))
    for step in range(solver.steps):
        after, _ = solver.step(Key(0).at(step), graph, state, feedback(graph))
        assert bool((after.best_score.amax(0) >= state.best_score.amax(0)).all())
        assert torch.equal(graph.satisfied(after.best), after.best_score)
        leader = graph.satisfied(solver.candidates(Key(0), graph, after))[0]
        assert torch.equal(leader, after.best_score.amax(0))
        state = after


def test_polish_together_flips_only_what_chains_differ_in_and_keeps_no_two_alike():
    graph = glass_graph(60, 31, seed=3)
    solver = polish(3000, steps=2, chains=3)
    one = torch.zeros(31, dtype=torch.bool)
    other = one.clone()
    other[:6] = True
    state = solver.start(Key(0), graph, torch.stack([one, other]))
    after, _ = solver.step(Key(0).at(1), graph, state, feedback(graph))
    assert not bool(after.best[:, 6:].any())
    assert len({tuple(row) for row in after.best.tolist()}) == 3
    assert float(after.best_score.max()) > float(state.best_score.max())


def test_polish_that_agrees_beats_as_many_separate_flips_on_crowded_problems():
    # four instances, of which each way gets the same starts and flips: the same seeds every time
    graph = join([glass_graph(400, 41, seed=80 + k) for k in range(4)])
    found = {
        agree: float(run(polish(2000, agree=agree), graph, seed=1, max_steps=8).best_accuracy.sum())
        for agree in (True, False)
    }
    assert found[True] > found[False]


def test_the_portfolio_is_at_the_optimum_of_small_glass_whatever_the_load():
    graph = join([glass_graph(m, 11, seed=20 + m) for m in (5, 12, 20, 40)])
    solution = run_stages(portfolio(graph, flips=20_000), graph, seed=1)
    expected = [optimum(glass_graph(m, 11, seed=20 + m)) for m in (5, 12, 20, 40)]
    assert solution.best_accuracy.tolist() == pytest.approx(expected, abs=1e-12)
    assert len(solution.found_by) == 4


def test_later_stages_see_only_what_is_unsolved():
    graph = join([glass_graph(3, 21, seed=5), glass_graph(60, 21, seed=6)])
    active = []
    stages = portfolio(graph, stages=("sbp", "polish"), flips=4000)
    solution = run_stages(
        stages, graph, on_stage=lambda stage, found: active.append(found.solved.tolist())
    )
    assert active == [[True, False], [True, False]]
    assert solution.found_by == ("sbp", "polish")
    assert solution.best_stage.tolist() == [0, 1]


def test_a_budget_of_evaluations_goes_over_all_stages():
    graph = glass_graph(60, 21, seed=6)
    solution = run_stages(portfolio(graph), graph, max_evaluations=7000)
    assert solution.status == (Status.BUDGET,)
    assert solution.stages[-1] != "polish"


def test_the_portfolio_serves_networks_with_hidden_units():
    data = glass(16, 4, seed=3)
    inputs, labels = torch.as_tensor(data.inputs), torch.as_tensor(data.labels)
    graph = factor_graph(network(mlp(4, hidden=(3,)), inputs, labels))
    solution = run_stages(portfolio(graph, flips=40_000), graph)
    assert float(solution.best_accuracy) == optimum(graph)


@pytest.mark.parametrize(
    ("num_examples", "beta", "names"),
    [
        (10, math.inf, ["sbp", "search", "reinforced", "s4p", "polish"]),
        (30, math.inf, ["sbp", "search", "reinforced", "s4p", "polish"]),
        (10, 3.0, ["sbp", "polish"]),
        (300, math.inf, ["sbp", "polish"]),
    ],
    ids=["few, hard", "too many, hard", "few, soft", "overconstrained, hard"],
)
def test_nothing_commits_where_not_all_factors_are_meant_to_be_satisfied(num_examples, beta, names):
    graph = glass_graph(num_examples, 21, seed=1, beta=beta)
    assert [stage.name for stage in portfolio(graph)] == names


def test_beliefs_are_marginals_in_the_first_stage_only():
    stages = portfolio(glass_graph(10, 21, seed=1))
    assert [stage.marginals for stage in stages] == [True, False, False, False, False]


def test_message_options_of_the_caller_are_used():
    passing = MessageOptions(flip(3), 0.7, 7, epochs=4)
    (stage,) = portfolio(glass_graph(20, 21, seed=1, beta=2.0), ("sbp",), passing=passing)
    assert stage.solver == belief_propagation(flip(3), damping=0.7, batch=7)
    assert stage.max_steps == 4 * 3


def test_many_soft_factors_are_first_seen_at_a_share_of_their_beta():
    (stage,) = portfolio(glass_graph(300, 21, seed=1, beta=2.0), ("sbp",))
    assert isinstance(stage.solver, Annealed)
    assert stage.solver.relative
    assert stage.solver.beta(0) == pytest.approx(0.1)
    assert stage.solver.beta(stage.max_steps) == 1.0


@pytest.mark.parametrize(
    ("num_factors", "batch", "epochs"), [(20, 32, 20), (70, 32, 7), (4000, 32, 5), (4001, 128, 1)]
)
def test_messages_pass_in_batches_for_at_least_twenty_steps(num_factors, batch, epochs):
    passing = default_message_options(num_factors, cheap_flips=True)
    assert (passing.batch, passing.epochs) == (batch, epochs)


def test_stages_that_do_not_suit_are_refused():
    graph = glass_graph(300, 21, seed=1)
    with pytest.raises(ValueError, match="none of the stages"):
        portfolio(graph, ("s4p", "reinforced"))


def test_stages_can_be_left_out_but_not_invented():
    graph = glass_graph(10, 11, seed=1)
    assert [stage.name for stage in portfolio(graph, ("polish", "sbp"))] == ["sbp", "polish"]
    with pytest.raises(ValueError, match="stages are any of"):
        portfolio(graph, ("magic",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polish(0), "flips"),
        (lambda: polish(steps=0), "steps"),
        (lambda: polish(heat=0.5), "heat"),
        (lambda: decimated(belief_propagation(exact()), fraction=0.0), "fraction"),
        (lambda: decimated(belief_propagation(exact()), rest=0), "rest"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
