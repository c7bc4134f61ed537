"""Streaming keeps beliefs only, and the protocol of a solver; it learns nets of any depth."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from oracles import random_inputs, random_labels
from torch import nn

from vitrail.datasets import glass, mnist
from vitrail.factors import network, perceptron, table
from vitrail.graph import factor_graph, indexed, join
from vitrail.nn import (
    BinaryConv2d,
    BinaryLinear,
    Flatten,
    MaxPool2d,
    Sign,
    Threshold,
    mlp,
    program_of,
)
from vitrail.nn.moments import class_probabilities
from vitrail.random import Key
from vitrail.solvers import Status, falling, geometric, run, streaming, usual_rate
from vitrail.solvers.base import Feedback
from vitrail.solvers.checkpoint import flatten
from vitrail.solvers.moment_messages import messages_at
from vitrail.updates import closed_form

CASES = {
    "moments": streaming(batch=8, batches=3),
    "forgetting": streaming(batch=8, batches=1, memory=700.0, beta=geometric(1.0, 5.0, 20)),
}
each = pytest.mark.parametrize("solver", CASES.values(), ids=CASES.keys())


def separable(num_examples=60, num_inputs=21, seed=0):
    """Examples of a teacher with bits for weights, so that a solution exists."""
    inputs = glass(num_examples, num_inputs, seed=seed).inputs
    teacher = 2 * (torch.arange(num_inputs) % 3 > 0).int() - 1
    return inputs, (inputs.int() @ teacher > 0).long()


def noise(num_examples=70, num_inputs=21, seed=4):
    return random_inputs(seed, num_examples, num_inputs), random_labels(seed, num_examples)


def everyone(graph):
    ones = torch.ones(graph.num_problems, dtype=torch.float64)
    return Feedback(0 * ones, ones.bool(), True)


@each
def test_a_separable_problem_is_solved(solver):
    graph = factor_graph(perceptron(*separable()))
    solution = run(solver, graph, max_steps=300)
    assert solution.status == (Status.SOLVED,)
    assert graph.accuracy(solution.best[None]).item() == 1.0


@each
def test_a_run_is_a_pure_function_of_the_seed(solver):
    graph = factor_graph(perceptron(*noise()))
    first, again, other = (run(solver, graph, seed=s, max_steps=6) for s in (1, 1, 2))
    assert torch.equal(first.marginals, again.marginals)
    assert not torch.equal(first.marginals, other.marginals)


@each
def test_a_stopped_run_resumes_bit_for_bit(solver, tmp_path):
    graph = factor_graph(perceptron(*noise()))
    whole = run(solver, graph, seed=3, max_steps=20)
    place = tmp_path / "run.safetensors"
    run(solver, graph, seed=3, max_steps=7, checkpoint=place, checkpoint_every=7)
    resumed = run(solver, graph, seed=3, max_steps=20, checkpoint=place)
    assert torch.equal(whole.marginals, resumed.marginals)
    assert torch.equal(whole.best, resumed.best)
    assert torch.equal(whole.history["rate"], resumed.history["rate"])


@each
def test_a_problem_goes_its_own_way_in_a_joined_graph(solver):
    lone = run(solver, factor_graph(perceptron(*noise())), max_steps=5)
    others = factor_graph(perceptron(*noise(num_examples=33, num_inputs=17, seed=6)))
    both = run(solver, join([factor_graph(perceptron(*noise())), others]), max_steps=5)
    # the first problem has the same factor and variable numbers, so the same draws
    assert torch.allclose(lone.marginals, both.marginals[: len(lone.marginals)], atol=1e-4)


@each
def test_a_solved_problem_is_left_alone(solver):
    easy = factor_graph(perceptron(torch.ones(1, 5, dtype=torch.int8), torch.ones(1)))
    joined = join([easy, factor_graph(perceptron(*noise()))])
    solution = run(solver, joined, max_steps=20)
    assert solution.status[0] == Status.SOLVED
    assert joined.accuracy(solution.weights[None])[0, 0] == 1.0


def test_nothing_in_the_state_grows_with_examples_times_weights():
    graph = factor_graph(network(mlp(21, (5,)), *noise(num_examples=300)))
    state = streaming().init(Key(0), graph)
    sizes = [part.numel() for part in flatten(state).values()]
    assert max(sizes) <= max(graph.num_variables, graph.num_factors)


def moved(solver, graph):
    """The messages of the first step's one batch, (V,): its move back at their own scale."""
    start = solver.init(Key(0), graph)
    after, info = solver.step(Key(0), graph, start, everyone(graph))
    scale = (after.squares / after.seen).sqrt()
    return (after.field - start.field) / after.rate * scale[0], info


def test_one_batch_at_even_odds_adds_the_sum_of_exact_messages():
    """On perceptrons the gradient of moments and the messages of the closed form agree.

    They differ by the second order, m·g², in messages of up to a third.
    """
    graph = factor_graph(perceptron(*noise(num_examples=40, num_inputs=101)))
    solver = streaming(batch=40, batches=1, first=0.1)
    messages, info = moved(solver, graph)
    assert info.evaluations == 40
    belief = solver.log_odds(graph, solver.init(Key(0), graph))
    update, (block,) = closed_form("gaussian"), graph.blocks
    expected = update.messages(Key(0), block, belief, torch.zeros(40, 101)).log_odds.sum(0)
    assert (messages - expected).abs().max() < 0.05 * expected.abs().max()


def test_messages_of_soft_factors_are_weaker_and_of_heavy_ones_stronger():
    inputs, labels = noise(num_examples=1)
    found = {}
    for name, beta, weight in (("hard", math.inf, 1.0), ("soft", 1.0, 1.0), ("heavy", 1.0, 3.0)):
        factors = perceptron(inputs, labels, beta, weight=torch.tensor([weight]))
        found[name], _ = moved(streaming(batch=1, batches=1), factor_graph(factors))
    assert found["soft"].norm() < found["hard"].norm()
    assert torch.allclose(found["heavy"], 3 * found["soft"], rtol=1e-3)


def test_evidence_weighs_one_in_e_after_the_memory():
    graph = factor_graph(perceptron(*noise())).with_prior(torch.full((21,), 0.5))
    kept, fading = (
        streaming(batch=70, batches=1, memory=memory, first=5.0) for memory in (None, 70.0)
    )
    start = kept.init(Key(0), graph)
    with_start, _ = kept.step(Key(0), graph, start, everyone(graph))
    faded, _ = fading.step(Key(0), graph, start, everyone(graph))
    messages = with_start.field - start.field
    assert torch.allclose(faded.field, start.field / math.e + messages, atol=1e-5)
    assert torch.allclose(fading.log_odds(graph, faded), (0.5 + faded.field).double())
    absorbed = fading.absorb(Key(0), graph, graph.blocks, start)
    assert torch.allclose(absorbed.field, faded.field, atol=1e-5)


def test_without_a_rate_messages_are_added_as_they_are():
    inputs, labels = noise()
    factors = perceptron(inputs, labels)
    graph = factor_graph(factors)
    solver = streaming(batch=70, batches=1, rate=None)
    start = solver.init(Key(0), graph)
    after, _ = solver.step(Key(0), graph, start, everyone(graph))
    x = inputs.to(torch.float32)
    p = torch.sigmoid(start.field).requires_grad_()
    mean, variance = x @ (2 * p - 1), 4 * (p * (1 - p)).sum()
    signs = 2 * labels - 1
    score = signs * mean * variance.rsqrt()
    (messages,) = torch.autograd.grad(torch.special.log_ndtr(score).sum(), p)
    assert torch.allclose(after.field - start.field, messages, rtol=1e-3, atol=1e-4)


def test_messages_of_nets_side_by_side_are_those_of_each():
    program = program_of(mlp(6, (5,), 3), (6,))
    draw = torch.Generator().manual_seed(1)
    field = torch.randn(2, program.num_bits, generator=draw)
    inputs = torch.randint(0, 2, (2, 7, 6), generator=draw).to(torch.int8)
    labels = torch.arange(14).view(2, 7) % 3
    both = torch.vmap(partial(messages_at, program))(field, inputs, labels)
    solver = streaming(batch=7, batches=1, rate=None, first=0.0)
    for net in range(2):
        graph = factor_graph(network(program, inputs[net], labels[net])).with_prior(field[net])
        after, _ = solver.step(Key(0), graph, solver.init(Key(0), graph), everyone(graph))
        assert torch.allclose(both[net], after.field, atol=1e-5)


def test_beliefs_are_the_messages_times_beta():
    graph = factor_graph(perceptron(*noise())).with_prior(torch.full((21,), 0.5))
    solver = streaming(batch=70, batches=1, beta=geometric(1.0, 4.0, 2))
    state = solver.init(Key(0), graph)
    assert torch.allclose(solver.log_odds(graph, state), (0.5 + state.field).double())
    nobody = Feedback(torch.zeros(1), torch.zeros(1, dtype=torch.bool), False)
    resting, _ = solver.step(Key(0, 1), graph, state, nobody)
    assert torch.equal(solver.log_odds(graph, resting), solver.log_odds(graph, state))
    after, _ = solver.step(Key(0, 1), graph, state, everyone(graph))
    assert torch.allclose(solver.log_odds(graph, after), (0.5 + 2 * after.field).double())


def layers_of(module, field):
    """Parts of a field (V,), one per layer of the module."""
    return field.split([p.numel() for p in module.parameters()])


@pytest.mark.parametrize("beta", [1.0, 10.0])
@pytest.mark.parametrize("copies", [1, 20])
def test_every_layer_moves_by_the_rate(beta, copies):
    """Copies of examples do not take beliefs further, nor do depth, width or beta."""
    inputs, labels = noise()
    module = mlp(21, (51, 5))
    factors = network(module, inputs.repeat(copies, 1), labels.repeat(copies))
    graph = factor_graph(factors)
    solver = streaming(batch=70 * copies, batches=1, beta=lambda _: beta, rate=0.2)
    start = solver.init(Key(0), graph)
    after, info = solver.step(Key(0), graph, start, everyone(graph))
    for layer in layers_of(module, solver.log_odds(graph, after) - solver.log_odds(graph, start)):
        assert layer.square().mean().sqrt().item() == pytest.approx(0.2, rel=1e-3)
    assert torch.equal(info.records["rate"], after.rate)


def test_a_batch_of_large_messages_moves_no_further_than_the_rate():
    """The running scale is of the batches before; a larger batch is taken at its own."""
    graph = factor_graph(perceptron(*noise()))
    solver = streaming(batch=70, batches=1, rate=0.2)
    start = solver.init(Key(0), graph)
    small = replace(start, squares=torch.full_like(start.squares, 1e-9), seen=start.seen + 0.5)
    after, _ = solver.step(Key(0), graph, small, everyone(graph))
    change = (after.field - start.field).square().mean().sqrt()
    assert change.item() == pytest.approx(0.2, rel=1e-3)


def test_the_rate_falls_and_is_small_where_batches_are_many():
    assert [falling(0.4, 4)(step) for step in range(6)] == pytest.approx(
        [0.4, 0.3, 0.2, 0.1, 0.1, 0.1]
    )
    assert usual_rate(10) == usual_rate(100) > usual_rate(1000) > usual_rate(10_000)


def sudden(wild, at=12, steps=1):
    """A rate of 0.1 that is `wild` for some steps."""
    return lambda step: wild if at <= step < at + steps else 0.1


@pytest.mark.parametrize("wild", [math.inf, math.nan])
def test_beliefs_that_are_not_finite_are_undone(wild):
    graph = factor_graph(perceptron(*noise(num_examples=300)))
    settings: dict[str, Any] = {"batch": 8, "batches": 3}
    before = run(streaming(**settings), graph, max_steps=12)
    solver = streaming(**settings, rate=sudden(wild))
    after = run(solver, graph, max_steps=13)
    assert after.history["undone"][:, 0].tolist() == [0] * 12 + [1]
    assert torch.equal(after.state.field, before.state.field)
    later = run(solver, graph, max_steps=20)
    assert later.status == (Status.MAX_STEPS,)
    assert later.history["rate"][-1].item() == pytest.approx(0.05)
    assert torch.isfinite(later.marginals).all()


def test_divergence_is_undone_to_the_last_good_beliefs_and_tried_with_half_the_rate():
    """A rate ten thousand times too large for some steps costs what was learned; it comes back."""
    graph, solver = overthrown(sudden(1e4, steps=3))
    found = run(solver, graph, seed=1, max_steps=30)
    undone = found.history["undone"][:, 0]
    assert undone[11] == 0
    assert undone[-1] == undone[12:16].max() >= 1
    assert found.history["rate"][-1].item() == pytest.approx(0.1 * 0.5 ** int(undone[-1]))
    assert found.accuracy.item() > 0.95
    assert found.status[0] in (Status.MAX_STEPS, Status.SOLVED)


def test_a_run_that_diverges_at_every_rate_ends_with_good_beliefs():
    graph, solver = overthrown(sudden(1e8, steps=1000))
    before = run(solver, graph, seed=1, max_steps=12)
    found = run(solver, graph, seed=1, max_steps=200)
    assert found.status == (Status.DIVERGED,)
    assert found.steps < 60
    assert found.accuracy.item() > before.accuracy.item() - 0.1


def overthrown(rate):
    """Examples of a teacher and noise in the labels, so that no run ends by solving them."""
    inputs, labels = separable(num_examples=400, num_inputs=51)
    labels = torch.where(torch.arange(400) % 100 == 0, 1 - labels, labels)
    graph = factor_graph(network(mlp(51, (31, 31)), inputs, labels))
    return graph, streaming(batch=50, batches=8, rate=rate)


def test_nothing_is_undone_where_labels_are_noise():
    graph = factor_graph(network(mlp(21, (31, 31)), *noise(num_examples=300)))
    solver = streaming(batch=32, batches=4, beta=geometric(1.0, 10.0, 40), rate=falling(0.3, 40))
    assert run(solver, graph, max_steps=40).history["undone"].max() == 0


def test_long_runs_on_few_alike_examples_stay_right():
    """A third of a thousand epochs on 150 images of two digits, pixels −1 and 1."""
    data = mnist(coding="bipolar")
    few = ((data.labels == 3) | (data.labels == 5)).nonzero()[:, 0][:650]
    images, labels = data.inputs[few], (data.labels[few] == 5).long()
    graph = factor_graph(perceptron(images[:150], labels[:150]))
    steps = 40
    beta, rate = geometric(1.0, 10.0, steps), falling(usual_rate(16 * steps), steps)
    found = run(streaming(beta=beta, rate=rate), graph, max_steps=steps, score_every=steps)
    assert found.accuracy.item() > 0.95
    block: Any = graph.blocks[0]
    program = block.program
    answers = class_probabilities(program, found.marginals, images[150:]).argmax(1)
    assert (answers == labels[150:]).double().mean().item() > 0.85


NETS = {
    "two hidden layers": lambda: mlp(196, (31, 31), 3),
    "last layer of zeros and ones": lambda: nn.Sequential(
        BinaryLinear(196, 31), Sign(), BinaryLinear(31, 3, "binary")
    ),
    "conv": lambda: nn.Sequential(
        BinaryConv2d(1, 8, 3, stride=2),
        Threshold(),
        Flatten(),
        BinaryLinear(8 * 36, 3),
    ),
    "pool": lambda: nn.Sequential(
        BinaryConv2d(1, 8, 3), MaxPool2d(2), Sign(), Flatten(), BinaryLinear(8 * 36, 3)
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_nets_of_any_kind_learn_digits(name):
    """Three digits, 400 images: chance is a third; the posterior is right for nine of ten."""
    module = NETS[name]()
    data = mnist(coding="binary")
    few = (data.labels < 3).nonzero()[:, 0][:600]
    shape = (1, 14, 14) if name in ("conv", "pool") else (196,)
    images, labels = data.inputs[few].reshape(-1, *shape), data.labels[few]
    graph = factor_graph(network(module, images[:400], labels[:400]))
    steps = 20
    solver = streaming(batch=50, batches=4, beta=geometric(1.0, 4.0, steps))
    solution = run(solver, graph, max_steps=steps, score_every=steps)
    program = network(module, images, labels).program
    found = class_probabilities(program, solution.marginals, images[400:])
    assert (found.argmax(1) == labels[400:]).double().mean() > 0.9
    assert solution.accuracy > 0.9


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch": 0}, "batch must be at least 1"),
        ({"batches": 0}, "batches must be at least 1"),
        ({"rate": 0.0}, "rate must be a positive number"),
        ({"memory": 0.0}, "memory must be a positive number of examples"),
        ({"first": -1.0}, "first must be a number of at least 0"),
    ],
)
def test_wrong_settings_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        streaming(**wrong)


def test_factors_without_moments_are_refused():
    with pytest.raises(TypeError, match="needs nets whose weights are consecutive"):
        run(streaming(), factor_graph(table(torch.ones(1, 2, 2))), max_steps=1)
    inputs, labels = noise(num_examples=2, num_inputs=3)
    scattered = perceptron(inputs, labels, scope=indexed([[0, 2, 4], [1, 2, 3]]))
    with pytest.raises(TypeError, match="needs nets whose weights are consecutive"):
        run(streaming(), factor_graph(scattered), max_steps=1)
