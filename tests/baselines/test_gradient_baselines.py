"""Every gradient rival keeps the protocol of a solver, and does its job on what it should solve."""

import math

import pytest
import torch

from vitrail.baselines import bayesbinn, bop, straight_through
from vitrail.baselines.gradient import batch_loss
from vitrail.datasets import glass, mnist
from vitrail.factors import network, perceptron, table
from vitrail.graph import factor_graph, join
from vitrail.nn import mlp, paper_conv
from vitrail.random import Key
from vitrail.solvers import Status, run

CASES = {
    "ste-adam": straight_through("adam", lr=0.01, batch=8),
    "ste-sgd": straight_through("sgd", lr=0.1, batch=8),
    "bop": bop(adaptivity=0.01, threshold=0.001, batch=8),
    "bayesbinn": bayesbinn(lr=0.01, batch=8),
    "bayesbinn-samples": bayesbinn(lr=0.01, batch=8, samples=3, temperature=0.7),
}
each = pytest.mark.parametrize("solver", CASES.values(), ids=CASES.keys())


def separable(num_examples=40, num_inputs=21, seed=0):
    """Examples of a teacher with bits for weights, so that a solution exists."""
    inputs = glass(num_examples, num_inputs, seed=seed).inputs
    teacher = 2 * (torch.arange(num_inputs) % 3 > 0).int() - 1
    return inputs, (inputs.int() @ teacher > 0).long()


def small_graph(**sizes):
    return factor_graph(perceptron(*separable(**sizes)))


@each
def test_a_separable_problem_is_solved(solver):
    solution = run(solver, small_graph(), max_steps=800)
    assert solution.status == (Status.SOLVED,)
    assert small_graph().accuracy(solution.best[None]).item() == 1.0


@each
def test_a_run_is_a_pure_function_of_the_seed(solver):
    first, again, other = (run(solver, small_graph(), seed=s, max_steps=6) for s in (1, 1, 2))
    assert torch.equal(first.marginals, again.marginals)
    assert not torch.equal(first.marginals, other.marginals)


@each
def test_a_stopped_run_resumes_bit_for_bit(solver, tmp_path):
    graph = factor_graph(perceptron(*_noise()))
    whole = run(solver, graph, seed=3, max_steps=30)
    place = tmp_path / "run.safetensors"
    run(solver, graph, seed=3, max_steps=11, checkpoint=place, checkpoint_every=11)
    resumed = run(solver, graph, seed=3, max_steps=30, checkpoint=place)
    assert torch.equal(whole.marginals, resumed.marginals)
    assert torch.equal(whole.best, resumed.best)
    assert torch.equal(whole.history["accuracy"], resumed.history["accuracy"])


@each
def test_a_problem_goes_its_own_way_in_a_joined_graph(solver):
    lone = run(solver, factor_graph(perceptron(*_noise())), max_steps=5)
    pair = join([factor_graph(perceptron(*_noise())), small_graph(num_examples=13, seed=4)])
    both = run(solver, pair, max_steps=5)
    # the first problem has the same factor and variable numbers, so the same draws
    assert torch.allclose(lone.marginals, both.marginals[: len(lone.marginals)], atol=1e-4)


@each
def test_a_solved_problem_is_left_alone(solver):
    easy = factor_graph(perceptron(torch.ones(1, 5, dtype=torch.int8), torch.ones(1)))
    joined = join([easy, factor_graph(perceptron(*_noise()))])
    solution = run(solver, joined, max_steps=60)
    assert solution.status[0] == Status.SOLVED
    assert joined.accuracy(solution.weights[None])[0, 0] == 1.0


@each
def test_the_last_weights_are_those_the_state_stands_for(solver):
    graph = factor_graph(perceptron(*_noise()))
    solution = run(solver, graph, max_steps=7)
    assert torch.equal(solution.weights, solution.marginals > 0.5)


@each
@pytest.mark.parametrize("net", ["mlp", "conv", "classes"])
def test_any_net_of_vitrail_can_be_trained(solver, net):
    data = mnist(pair=(0, 1)).take(60)
    if net == "conv":
        factors = network(paper_conv(), data.shaped().inputs, data.labels)
    else:
        module = mlp(196, hidden=(3,), num_outputs=1 if net == "mlp" else 3)
        factors = network(module, data.inputs, data.labels)
    # a start whose units are all dead has no gradient, so three starts
    solutions = (run(solver, factor_graph(factors), seed=seed, max_steps=60) for seed in range(3))
    share = data.labels.double().mean().item()
    assert any(s.best_accuracy.item() > max(share, 1 - share) for s in solutions)


@each
def test_factors_without_a_margin_are_refused(solver):
    graph = factor_graph(table(torch.ones(1, 2, 2)))
    with pytest.raises(TypeError, match="need factors that classify"):
        run(solver, graph, max_steps=1)


def test_the_gradient_of_a_perceptron_is_the_closed_form():
    inputs, labels = _noise()
    graph = factor_graph(perceptron(inputs, labels))
    bits = torch.linspace(0.1, 0.9, inputs.shape[1], requires_grad=True)
    loss = batch_loss(graph, graph.blocks, bits)
    (gradient,) = torch.autograd.grad(loss, bits)
    x, sign = inputs.double(), 2.0 * labels.double() - 1
    margin = sign * (x @ (2 * bits.detach().double() - 1)) / math.sqrt(inputs.shape[1])
    expected = (-(margin < 1).double() * sign) @ x * 2 / math.sqrt(inputs.shape[1]) / len(inputs)
    assert torch.allclose(gradient.double(), expected, atol=1e-6)


def test_weights_of_factors_count_in_the_loss():
    inputs, labels = _noise()
    weight = torch.zeros(len(inputs), dtype=torch.float64)
    weight[:10] = 2.0
    bits = torch.full((inputs.shape[1],), 0.3)
    weighted = factor_graph(perceptron(inputs, labels, weight=weight))
    first = factor_graph(perceptron(inputs[:10], labels[:10]))
    one, other = (batch_loss(graph, graph.blocks, bits) for graph in (weighted, first))
    assert torch.allclose(one, other)


def test_bayesbinn_draws_follow_their_bernoulli():
    solver = bayesbinn(samples=2000, temperature=0.01)
    graph = factor_graph(perceptron(*_noise()))
    noise = solver._noise(Key(5), graph)
    # P(λ + δ > 0) = 1/(1 + exp(−2λ)); of 2000·31 draws at λ = 0.4, 4.9 standard errors: 1e-6
    share = (noise + 0.4 > 0).double().mean().item()
    wanted = 1 / (1 + math.exp(-0.8))
    assert abs(share - wanted) < 4.9 * math.sqrt(wanted * (1 - wanted) / noise.numel())


@pytest.mark.parametrize(
    ("make", "wrong", "sentence"),
    [
        (straight_through, {"optimiser": "adamw"}, "unknown optimiser 'adamw'; choose one of"),
        (straight_through, {"lr": 0.0}, "lr must be a positive number"),
        (straight_through, {"batch": 0}, "batch must be from 1 to"),
        (bop, {"threshold": -1.0}, "threshold must be a number of at least 0"),
        (bop, {"adaptivity": -0.1}, "adaptivity must be a positive number"),
        (bayesbinn, {"temperature": 0.0}, "temperature must be a positive number"),
        (bayesbinn, {"samples": 0}, "samples must be at least 1"),
    ],
)
def test_wrong_settings_are_refused_with_the_remedy(make, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**wrong)


@pytest.mark.long
@pytest.mark.parametrize(
    ("solver", "least"),
    [
        (straight_through(), 0.91),
        (straight_through("sgd", lr=0.1), 0.90),
        (bop(), 0.91),
        (bayesbinn(), 0.89),
    ],
    ids=["ste-adam", "ste-sgd", "bop", "bayesbinn"],
)
def test_mnist_three_against_five_is_learned(solver, least):
    data = mnist(pair=(3, 5))
    graph = factor_graph(perceptron(data.inputs, data.labels))
    assert run(solver, graph, max_steps=900, score_every=5).best_accuracy.item() >= least


def _noise():
    data = glass(60, 31, seed=2)  # twice the examples a linear net can hold: never solved
    return data.inputs, data.labels
