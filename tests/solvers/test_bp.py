"""Belief propagation against enumeration, and the rules of damping, batches and statuses."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import (
    marginals_by_enumeration,
    messages_by_definition,
    random_inputs,
    random_labels,
    random_perceptron,
    random_table,
)
from torch.utils._python_dispatch import TorchDispatchMode

from vitrail.factors import perceptron, table
from vitrail.graph import factor_graph, indexed, join
from vitrail.random import Key
from vitrail.solvers import (
    Batches,
    Damping,
    Feedback,
    Status,
    adaptive,
    belief_propagation,
    reinforced,
    run,
)
from vitrail.solvers.damping import weight_of_new
from vitrail.updates import closed_form, exact, flip


def random_tree(seed: int, num_variables: int, beta: float = math.inf):
    """Table factors of arity 1 to 3 that join the variables into a tree, with random priors."""
    generator = torch.Generator().manual_seed(seed)
    blocks, first = [], 1
    while first < num_variables:
        arity = int(torch.randint(2, 4, (), generator=generator))
        arity = min(arity, num_variables - first + 1)
        root = int(torch.randint(0, first, (), generator=generator))
        scope = indexed([[root, *range(first, first + arity - 1)]])
        blocks.append(random_table(seed + first, 1, arity, beta, scope))
        first += arity - 1
    blocks.append(random_table(seed, 1, 1, beta, indexed([[0]])))
    prior = torch.randn(num_variables, generator=generator, dtype=torch.float64)
    return factor_graph(*blocks, num_variables=num_variables, log_prior=prior)


def plain(update=None):
    return belief_propagation(update or exact(), damping=0.0, prior_scale=0.0)


@given(st.integers(0, 10_000), st.integers(2, 7), st.sampled_from([1.0, 4.0, math.inf]))
@settings(max_examples=25)
def test_marginals_on_trees_equal_enumeration(seed, num_variables, beta):
    graph = random_tree(seed, num_variables, beta)
    solver = plain()
    state = solver.init(Key(0), graph)
    for step in range(2 * num_variables):
        state, _ = solver.step(Key(0, step), graph, state, awake(graph))
    marginals = solver.marginals(graph, state)
    assert torch.allclose(marginals, marginals_by_enumeration(graph), atol=1e-5)


def awake(graph):
    every = torch.ones(graph.num_problems, dtype=torch.bool)
    return Feedback(torch.zeros(graph.num_problems, dtype=torch.float64), every)


def test_a_step_on_a_loopy_graph_is_the_definition():
    factors = random_perceptron(0, 6, 5, 1.5, "bipolar")
    graph = factor_graph(factors, log_prior=torch.linspace(-1, 1, 5).double())
    solver, key = plain(), Key(0)
    state = solver.init(key, graph)
    messages = torch.zeros(6, 5, dtype=torch.float64)
    for step in range(3):
        state, _ = solver.step(key.at(step), graph, state, awake(graph))
        cavity = graph.log_prior + messages.sum(0) - messages
        one, zero = messages_by_definition(factors, torch.sigmoid(cavity))
        messages = torch.log(one / zero)
        assert torch.allclose(state.messages[0].double(), messages, atol=1e-5)
        assert torch.equal(state.belief, graph.log_prior + state.messages[0].double().sum(0))


def test_beliefs_kept_incrementally_do_not_drift():
    graph = factor_graph(random_perceptron(0, 40, 9, 2.0, "bipolar"))
    solver = belief_propagation(flip(3), damping=0.7, batch=7)
    solution = run(solver, graph, max_steps=200)
    state = solution.state
    assert torch.equal(state.belief, state.prior + state.messages[0].double().sum(0))


@pytest.mark.parametrize("update", [exact(), closed_form()], ids=["exact", "convolution"])
def test_a_contradiction_is_a_status_not_a_nan(update):
    """An input of zeros has margin 0 whatever the weights, so label 1 cannot be met."""
    never = perceptron(torch.tensor([[0, 0, 0], [1, 1, -1]]), torch.tensor([1, 1]))
    solution = run(plain(update), factor_graph(never), max_steps=50)
    assert solution.status[0] == Status.CONTRADICTION
    assert bool(torch.isfinite(solution.marginals).all())
    assert float(solution.best_accuracy) == 0.5


def test_two_factors_that_rule_out_both_values_are_a_contradiction():
    opposite = table(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), indexed([[0], [0]]))
    solution = run(plain(), factor_graph(opposite), max_steps=50)
    assert solution.status[0] == Status.CONTRADICTION
    soft = run(plain(), factor_graph(opposite).with_beta(2.0), max_steps=50)
    assert soft.status[0] == Status.CONVERGED


def test_sampled_updates_do_not_declare_contradictions():
    never = perceptron(torch.tensor([[0, 0, 0], [1, 1, -1]]), torch.tensor([1, 1]))
    solution = run(belief_propagation(flip(5)), factor_graph(never), max_steps=10)
    assert solution.status[0] in (Status.MAX_STEPS, Status.CONVERGED)
    assert int(solution.history["starved"].sum()) > 0


def test_a_message_that_is_no_number_is_a_status(monkeypatch):
    graph = glass_graph(1, [60], 3)  # sixty random labels: three weights cannot meet them all
    solver = belief_propagation(flip(2))
    proper = solver.step

    def spoiled(self, *args):
        state, info = proper(*args)
        state.belief[0] = math.nan
        return state, info

    monkeypatch.setattr(type(solver), "step", spoiled)
    solution = run(solver, graph, max_steps=5)
    assert solution.status[0] == Status.NON_FINITE
    assert solution.steps == 1


def glass_graph(problems: int, examples: list[int], num_weights: int = 11):
    parts = [
        factor_graph(
            perceptron(random_inputs(i, examples[i], num_weights), random_labels(i, examples[i]))
        )
        for i in range(problems)
    ]
    return join(parts)


def test_many_problems_run_as_each_would_alone():
    examples = [4, 9, 17]
    together = run(plain(closed_form()), glass_graph(3, examples), max_steps=15)
    for i in range(3):
        alone_graph = factor_graph(
            perceptron(random_inputs(i, examples[i], 11), random_labels(i, examples[i]))
        )
        alone = run(plain(closed_form()), alone_graph, max_steps=15)
        mine = slice(11 * i, 11 * i + 11)
        if alone.status[0] != Status.SOLVED:
            assert torch.allclose(alone.marginals, together.marginals[mine], atol=1e-6)
        assert alone.status[0] == together.status[i]
        assert alone.best_accuracy[0] == together.best_accuracy[i]


def test_solved_problems_are_frozen_and_stop_the_run():
    graph = glass_graph(2, [2, 60])
    solution = run(belief_propagation(flip(5)), graph, max_steps=30)
    assert solution.status[0] == Status.SOLVED
    assert solution.best_accuracy[0] == 1.0
    solved_at = int((solution.history["best"][:, 0] == 1).nonzero()[0])
    assert bool((solution.history["residual"][solved_at + 1 :, 0] == 0).all())
    easy = run(belief_propagation(flip(5)), glass_graph(1, [2]), max_steps=1000)
    assert easy.steps < 1000


def test_the_best_configuration_is_never_lost():
    graph = glass_graph(3, [30, 40, 50])
    solution = run(belief_propagation(flip(5), damping=0.2), graph, max_steps=40)
    assert torch.allclose(graph.accuracy(solution.best[None])[0], solution.best_accuracy)
    assert torch.allclose(graph.accuracy(solution.weights[None])[0], solution.accuracy)
    best = solution.history["best"]
    assert bool((best[1:] >= best[:-1]).all())
    assert bool((solution.best_accuracy >= solution.history["accuracy"].amax(0)).all())


def test_history_has_a_row_per_step_and_counts_evaluations():
    graph = glass_graph(2, [30, 40])
    solution = run(belief_propagation(flip(5)), graph, max_steps=7)
    assert solution.history["accuracy"].shape == (7, 2)
    assert solution.history["evaluations"][0] == 5 * 70
    assert bool((solution.history["entropy"] <= 1).all())
    with pytest.raises(KeyError, match="columns are"):
        solution.history["lable"]


def test_a_settled_run_is_converged():
    graph = factor_graph(random_perceptron(0, 8, 5, 0.3, "bipolar"))
    solution = run(plain(), graph, max_steps=500, tolerance=1e-6)
    assert solution.status[0] == Status.CONVERGED
    assert solution.steps < 500


@given(st.lists(st.integers(1, 13), min_size=1, max_size=4), st.integers(1, 6))
def test_an_epoch_updates_every_factor_once(sizes, size):
    graph = glass_graph(len(sizes), sizes)
    batches = Batches(size)
    order = batches.start(graph)
    steps = batches.epoch_steps(graph)
    seen = torch.zeros(graph.num_factors, dtype=torch.int64)
    problem = graph.factor_problem(graph.blocks[0])
    for step in range(int(steps.max())):
        (index,), order = batches.select(Key(5, step), graph, order, awake(graph))
        assert index is not None
        first_epoch = step < steps[problem[index]]
        seen[index[first_epoch]] += 1
    assert bool((seen == 1).all())


def test_batches_are_shuffled_anew_every_epoch():
    graph = glass_graph(1, [40])
    batches = Batches(40)
    _, first = batches.select(Key(5, 0), graph, batches.start(graph), awake(graph))
    _, second = batches.select(Key(5, 1), graph, first, awake(graph))
    assert not torch.equal(first.factors, second.factors)
    assert first.factors.sort().values.tolist() == list(range(40))


def test_damping_mixes_probabilities():
    factors = random_perceptron(0, 3, 4, 1.0, "bipolar")
    graph = factor_graph(factors)
    full = plain().step(Key(0), graph, plain().init(Key(0), graph), awake(graph))[0].messages[0]
    solver = belief_propagation(exact(), damping=0.75, prior_scale=0.0)
    mixed = solver.step(Key(0), graph, solver.init(Key(0), graph), awake(graph))[0].messages[0]
    expected = 0.75 * 0.5 + 0.25 * torch.sigmoid(full)
    assert torch.allclose(torch.sigmoid(mixed), expected, atol=1e-5)


def test_damping_is_the_share_of_the_old_message():
    for hundredths in range(100):
        gamma = (100 - hundredths) / 100  # as a person would write the paper's γ
        assert weight_of_new(hundredths / 100) == gamma
        assert Damping(hundredths / 100).at(0) == gamma
    graph = glass_graph(1, [30])
    solver = belief_propagation(flip(5), damping=0.9)
    state = solver.init(Key(1), graph)
    first, _ = solver.step(Key(1).at(0), graph, state, awake(graph))
    tenth = torch.full((30,), 0.1, dtype=torch.float64)
    sweep = flip(5).sweep(Key(1).at(0), graph.blocks[0], state.belief, state.messages[0], tenth)
    assert torch.equal(first.messages[0], sweep.messages)
    assert belief_propagation(flip(5)) == belief_propagation(flip(5), damping=0.8)


def test_adaptive_damping_is_the_papers_rule():
    """γ = 1 − accuracy, so the damping is the accuracy, up to 0.99 and 0.5 at first."""
    rule = adaptive(every=20)
    assert rule.at(0) == 0.5
    now = torch.tensor([0.5, 0.5]).double()
    accuracy = torch.tensor([0.7, 1.0]).double()
    assert rule.next(19, now, accuracy).tolist() == [0.5, 0.5]
    assert rule.next(20, now, accuracy).tolist() == pytest.approx([0.3, 0.01])
    assert Damping(lambda step: step / (1 + step)).next(3, now, accuracy).tolist() == [0.25, 0.25]


def test_untouched_factors_send_no_message():
    graph = glass_graph(1, [40])
    solver = belief_propagation(flip(5), batch=8)
    state, _ = solver.step(Key(0), graph, solver.init(Key(0), graph), awake(graph))
    assert int((state.messages[0] != 0).any(1).sum()) <= 8


def test_a_budget_of_evaluations_ends_the_run():
    graph = glass_graph(1, [60])
    solution = run(belief_propagation(flip(5)), graph, max_steps=100, max_evaluations=1000)
    assert solution.status[0] == Status.BUDGET
    assert 1000 <= solution.evaluations < 1000 + 300


def test_ctrl_c_returns_the_best_so_far():
    graph = glass_graph(1, [60])

    def stop(step, feedback, info):
        if step == 4:
            raise KeyboardInterrupt

    solution = run(belief_propagation(flip(5)), graph, max_steps=100, on_step=stop)
    assert solution.status[0] == Status.INTERRUPTED
    assert solution.steps == 4
    assert torch.allclose(graph.accuracy(solution.best[None])[0], solution.best_accuracy)


def test_a_run_after_another_keeps_what_it_found():
    graph = glass_graph(2, [2, 60])
    first = run(belief_propagation(flip(5)), graph, max_steps=20)
    second = run(belief_propagation(flip(5)), graph, seed=1, max_steps=1, after=first)
    assert second.status[0] == Status.SOLVED
    assert bool((second.best_accuracy >= first.best_accuracy).all())
    assert torch.equal(second.best[:11], first.best[:11])


BAD = {
    "damping one": (lambda: Damping(1.0), "below 1"),
    "empty batches": (lambda: Batches(0), "batch must be from 1 to"),
    "negative prior": (lambda: belief_propagation(flip(2), prior_scale=-1.0), "at least 0"),
    "negative steps": (
        lambda: run(belief_propagation(flip(2)), glass_graph(1, [3]), max_steps=-1),
        "max_steps",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_refused(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()


class Asked(TorchDispatchMode):
    """Counts the questions that would make a host wait for a GPU."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        decides = "_local_scalar_dense" in name and args[0].dtype == torch.bool
        self.count += decides or any(word in name for word in ("nonzero", "unique", "masked_sel"))
        return func(*args, **(kwargs or {}))


def test_a_step_asks_the_device_only_what_it_must_know():
    """Whether a belief is exactly undecided, and whether an attempt has failed."""
    graph = glass_graph(3, [40, 40, 40])
    solver = reinforced(belief_propagation(closed_form("gaussian")), attempts=3)
    counts = []
    for steps in (5, 15):
        with Asked() as asked:
            assert run(solver, graph, max_steps=steps, tolerance=0.0).steps == steps
        counts.append(asked.count)
    assert (counts[1] - counts[0]) / 10 <= 2
