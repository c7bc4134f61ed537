"""Every solver that passes messages, in every order of wrappers, keeps one protocol."""

from functools import cache
from itertools import permutations
from typing import Any

import pytest
import torch
from thread_count import num_threads

from vitrail.baselines import straight_through
from vitrail.datasets import glass
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.random import Key
from vitrail.solvers import (
    Feedback,
    adaptive,
    annealed,
    belief_propagation,
    decimated,
    geometric,
    linear,
    polish,
    reinforced,
    run,
    s3p,
    s4p,
    steady,
    streaming,
)
from vitrail.solvers.checkpoint import flatten, unflatten
from vitrail.solvers.decimation import FIXED
from vitrail.updates import closed_form, flip

CORES = {
    "bp": lambda: belief_propagation(closed_form(), damping=0.3, prior_scale=0.0),
    "sbp": lambda: belief_propagation(flip(5), damping=0.8, batch=5),
    "s4p": lambda: s4p(flip(4), survey_samples=6, bins=11, batch=6),
    "s3p": lambda: s3p(flip(4), survey_samples=6, bins=5),
    "streaming": lambda: streaming(batch=4, batches=2),
}
WRAPPERS = {
    "reinforced": lambda solver: reinforced(solver, linear(0.3), attempts=3, patience=1),
    "annealed": lambda solver: annealed(solver, geometric(1.0, 4.0, steps=5)),
    "decimated": lambda solver: decimated(solver, fraction=0.2, rest=2),
    "steady": lambda solver: steady(solver),
}
ORDERS = [order for count in range(5) for order in permutations(WRAPPERS, count)]
STEPS = 8


def refusal(core, order) -> str | None:
    """Why an order, from the outermost on, is refused; None where it makes sense."""
    both = {"reinforced", "decimated"} <= set(order)
    reasons = []
    if both and order.index("reinforced") < order.index("decimated"):
        reasons.append(r"use decimated\(reinforced\(solver\)\)")
    if core == "streaming" and "steady" in order:
        reasons.append("streaming sets its own rate")
    return "|".join(reasons) or None  # of two, the inner one is reported


def run_orders():
    """Each wrapper alone and all of them; the quick ones also in pairs, S3P in one alone."""
    every = {("decimated", "steady", *rest) for rest in permutations(("annealed", "reinforced"))}
    for core in CORES:
        for order in ORDERS:
            if refusal(core, order) is None and (
                len(order) <= (2 if core in ("bp", "sbp") else 1)
                or (order in every and core != "s3p")
                or (core == "streaming" and len(order) == 3)
            ):
                yield core, order


def cases(chosen):
    return pytest.mark.parametrize(
        ("core", "order"), chosen, ids=[" ".join((*order, core)) for core, order in chosen]
    )


CASES = list(run_orders())
every_case = cases(CASES)
without_pairs = cases([(core, order) for core, order in CASES if len(order) != 2])


def build(core, order=()):
    solver = CORES[core]()
    for name in reversed(order):
        solver = WRAPPERS[name](solver)
    return solver


@cache
def problem(number: int, small: bool = False) -> FactorGraph:
    examples, weights = (((6, 3), (8, 3)) if small else ((12, 5), (16, 7)))[number]
    data = glass(examples, weights, seed=2)
    return factor_graph(perceptron(data.inputs, data.labels, beta=3.0))


@cache
def problems(core: str = "bp") -> FactorGraph:
    """Two of different size, neither of which can be solved whole."""
    return join([problem(number, small=core == "s3p") for number in range(2)])


def awake(graph, *active) -> Feedback:
    given = torch.tensor(active or [True] * graph.num_problems)
    return Feedback(torch.full((graph.num_problems,), 0.7, dtype=torch.float64), given)


def copied(state):
    """A step may write into its state."""
    return unflatten(state, {name: value.clone() for name, value in flatten(state).items()})


def equal(left, right) -> bool:
    one, other = flatten(left), flatten(right)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def after(solver, graph, steps=STEPS, seed=4):
    state = solver.init(Key(seed), graph)
    for step in range(steps):
        state, _ = solver.step(Key(seed).at(step), graph, state, awake(graph))
    return state


@cache
def undisturbed(core, order):
    return run(build(core, order), problems(core), seed=4, max_steps=STEPS, tolerance=0.0)


@pytest.mark.parametrize("core", CORES)
def test_every_sensible_order_is_built_and_no_other(core):
    for order in ORDERS:
        reason = refusal(core, order)
        if reason is None:
            build(core, order)
        else:
            with pytest.raises(ValueError, match=reason):
                build(core, order)


@every_case
def test_the_best_is_what_it_claims_to_be(core, order):
    found, graph = undisturbed(core, order), problems(core)
    assert torch.equal(graph.accuracy(found.best[None])[0], found.best_accuracy)
    assert torch.equal(graph.accuracy(found.weights[None])[0], found.accuracy)
    assert bool((found.best_accuracy >= found.accuracy).all())
    assert bool(((found.marginals >= 0) & (found.marginals <= 1)).all())
    assert found.steps == STEPS
    shared = {"reinforced": "share", "decimated": "fixed", "steady": "damping"}
    assert all(shared[name] in found.history for name in order if name in shared)


@every_case
def test_what_the_loop_asks_has_its_shape(core, order):
    solver, graph = build(core, order), problems(core)
    state = after(solver, graph, 3)
    odds, seen = solver.log_odds(graph, state), solver.candidates(Key(4), graph, state)
    assert odds.shape == (graph.num_variables,)
    assert odds.dtype == torch.float64
    assert seen.dtype == torch.bool
    assert seen.shape[1] == graph.num_variables
    assert torch.equal(seen[0][odds != 0], odds[odds != 0] > 0)
    assert torch.equal(solver.epoch_steps(graph), build(core).epoch_steps(graph))
    if core != "streaming":  # it has no damping
        assert solver.gamma(state).shape == (graph.num_problems,)


@every_case
def test_a_stopped_run_ends_as_the_undisturbed_one(core, order, tmp_path):
    place, settings = tmp_path / "run", {"seed": 4, "tolerance": 0.0}
    run(build(core, order), problems(core), max_steps=5, checkpoint=place, **settings)
    found = run(build(core, order), problems(core), max_steps=STEPS, checkpoint=place, **settings)
    assert equal(found.state, undisturbed(core, order).state)
    assert torch.equal(found.best, undisturbed(core, order).best)


@without_pairs
def test_threads_change_nothing(core, order):
    with num_threads(2):
        found = run(build(core, order), problems(core), seed=4, max_steps=STEPS, tolerance=0.0)
    assert equal(found.state, undisturbed(core, order).state)


@every_case
def test_a_shift_of_the_prior_moves_the_beliefs_and_can_be_taken_back(core, order):
    solver, graph = build(core, order), problems(core)
    state = after(solver, graph, 3)
    by = torch.zeros(graph.num_variables, dtype=torch.float64)
    by[::3], by[1::3] = 2.5, -0.125
    moved = solver.shift_prior(state, by)
    expected = solver.log_odds(graph, state) + by
    near = 1e-5 if core == "streaming" else 0.0  # its state is float32
    torch.testing.assert_close(solver.log_odds(graph, moved), expected, atol=near, rtol=0)
    back = solver.shift_prior(moved, -by)
    key = Key(4).at(3)
    expected, _ = solver.step(key, graph, copied(state), awake(graph))
    assert equal(solver.step(key, graph, copied(back), awake(graph))[0], expected)


@every_case
def test_one_problem_starts_anew_and_the_other_goes_on(core, order):
    solver, graph = build(core, order), problems(core)
    state, fresh = after(solver, graph), solver.init(Key(9), graph)
    chosen = torch.tensor([False, True])
    mixed = solver.replace_problems(graph, copied(state), fresh, chosen)
    expected = torch.where(
        chosen[graph.problem], solver.log_odds(graph, fresh), solver.log_odds(graph, state)
    )
    assert torch.equal(solver.log_odds(graph, mixed), expected)
    key, other = Key(4).at(STEPS), graph.problem == 0
    plain, _ = solver.step(key, graph, copied(state), awake(graph))
    along, _ = solver.step(key, graph, mixed, awake(graph))
    assert torch.equal(solver.log_odds(graph, along)[other], solver.log_odds(graph, plain)[other])


@every_case
def test_a_frozen_problem_stays_as_it_is(core, order):
    solver, graph = build(core, order), problems(core)
    state = after(solver, graph, 4)
    frozen = graph.problem == 1
    before = solver.log_odds(graph, state)[frozen]
    for step in range(4, 9):
        state, _ = solver.step(Key(4).at(step), graph, state, awake(graph, True, False))
        assert torch.equal(solver.log_odds(graph, state)[frozen], before)


@without_pairs
def test_held_damping_is_what_it_was_set_to(core, order):
    if core == "streaming":
        with pytest.raises(ValueError, match="cannot be held"):
            build(core, order).with_damping_in_state()
        return
    solver, graph = build(core, order).with_damping_in_state(), problems(core)
    weight = torch.tensor([0.25, 0.5], dtype=torch.float64)
    state = solver.with_gamma(after(solver, graph, 2), weight)
    assert torch.equal(solver.gamma(state), weight)
    if "steady" not in order and "reinforced" not in order:  # these move it, or start anew
        state, _ = solver.step(Key(4).at(2), graph, state, awake(graph))
        assert torch.equal(solver.gamma(state), weight)


EXACT = [order for core, order in CASES if core == "bp"]


@pytest.mark.parametrize("order", EXACT, ids=" ".join)
def test_problems_joined_do_as_each_alone(order):
    """Where nothing is drawn; draws have addresses, which joining changes."""
    solver = build("bp", order)
    together = solver.log_odds(problems(), after(solver, problems()))
    alone = [solver.log_odds(problem(i), after(solver, problem(i))) for i in range(2)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-4, rtol=0)


def _any(solver) -> Any:
    """A type checker refuses these too."""
    return solver


REFUSED = {
    "reinforcing a local search": (
        lambda: reinforced(_any(polish())),
        TypeError,
        "passes messages",
    ),
    "annealing gradients": (
        lambda: annealed(_any(straight_through()), geometric(1, 2, 3)),
        TypeError,
        "passes messages.*got StraightThrough",
    ),
    "steady gradients": (lambda: steady(_any(straight_through())), TypeError, "passes messages"),
    "steady over a rule": (
        lambda: steady(belief_propagation(flip(5), damping=adaptive())),
        ValueError,
        "adaptive damping follows its own rule",
    ),
    "steady over wrapped surveys with a schedule": (
        lambda: steady(reinforced(s4p(flip(5), damping=lambda step: 0.5))),
        ValueError,
        "scheduled damping follows its own rule",
    ),
    "steady twice": (
        lambda: steady(reinforced(steady(belief_propagation(flip(5))))),
        ValueError,
        "is steady already",
    ),
    "annealed twice": (
        lambda: WRAPPERS["annealed"](build("bp", ("annealed",))),
        ValueError,
        "is annealed already",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_when_it_is_built(case):
    make, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        make()


def test_steady_begins_with_the_solvers_damping_and_records_what_it_used():
    graph = problems()
    solver = steady(belief_propagation(closed_form(), damping=0.6))
    damping = run(solver, graph, max_steps=6, tolerance=0.0).history["damping"]
    assert damping[0].tolist() == [0.6, 0.6]
    plain = belief_propagation(closed_form(), damping=0.6)
    first, _ = plain.step(Key(0), graph, plain.init(Key(0), graph), awake(graph))
    mine, _ = solver.step(Key(0), graph, solver.init(Key(0), graph), awake(graph))
    assert torch.equal(mine.inner.messages[0], first.messages[0])
    assert damping[1].tolist() == pytest.approx([1 - 0.4 * 1.02] * 2)


def test_fixes_outlast_a_new_attempt_and_are_not_fed_back():
    graph = problems()
    solver = reinforced(belief_propagation(closed_form(), prior_scale=0.0), linear(0.5), attempts=2)
    fixes = torch.zeros(graph.num_variables, dtype=torch.float64)
    fixes[0], fixes[-1] = FIXED, -FIXED
    state = solver.shift_prior(solver.init(Key(0), graph), fixes)
    attempts = []
    for step in range(60):
        plain, _ = solver.solver.step(Key(0).at(step), graph, copied(state.inner), awake(graph))
        state, info = solver.step(Key(0).at(step), graph, state, awake(graph))
        attempts.append(int(info.records["attempt"].min()))
        if attempts[-1] == attempts[max(0, step - 1)]:  # else the field is wiped
            fed = info.records["share"][graph.problem] * (plain.belief - fixes)
            torch.testing.assert_close(state.field, fed, atol=1e-6, rtol=0)
    assert attempts[-1] == 1
    votes = sum(message.double().sum(0) for message in _by_variable(graph, state.inner.messages))
    expected = graph.log_prior + state.field + fixes + votes
    torch.testing.assert_close(state.inner.belief, expected)


def _by_variable(graph, messages):
    """Sums of each block's messages at its variables, (1, V) a block."""
    for block, message in zip(graph.blocks, messages, strict=True):
        yield block.scope.total(message.double(), graph.num_variables)[None]
