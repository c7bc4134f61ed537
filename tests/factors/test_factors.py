"""Every kind of factor against the definition, and flips against plain evaluation."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    all_states,
    random_blackbox,
    random_inputs,
    random_labels,
    random_network,
    random_perceptron,
    random_table,
)

from vitrail.factors import Factors, blackbox, network, perceptron, table
from vitrail.factors.table import decode, encode
from vitrail.graph import dense, factor_graph, indexed, join
from vitrail.nn import centred, mlp, paper_conv
from vitrail.random import Key
from vitrail.updates import closed_form, flip

KINDS = {
    "table": lambda beta: random_table(1, 4, 5, beta),
    "perceptron": lambda beta: random_perceptron(1, 4, 6, beta, "bipolar"),
    "perceptron-binary": lambda beta: random_perceptron(1, 4, 6, beta, "binary"),
    "linear-classes": lambda beta: random_network(1, 4, 3, (), 3, beta),
    "one-hidden": lambda beta: random_network(1, 4, 3, (2,), 1, beta),
    "one-hidden-classes": lambda beta: random_network(1, 4, 2, (2,), 3, beta),
    "two-hidden": lambda beta: random_network(1, 4, 2, (2, 2), 1, beta),
    "blackbox": lambda beta: random_blackbox(1, 4, 5, beta),
}


@pytest.mark.parametrize("kind", KINDS)
def test_flips_are_scores_of_the_neighbours(kind):
    factors = KINDS[kind](1.0)
    states = all_states(factors.arity)[None].expand(factors.num_factors, -1, -1)
    one, zero = factors.flips(states)
    for i in range(factors.arity):
        for flipped, value in ((one, True), (zero, False)):
            pinned = states.clone()
            pinned[..., i] = value
            assert torch.equal(flipped[..., i], factors.score(pinned))


@pytest.mark.parametrize("kind", KINDS)
def test_selected_factors_score_as_before_and_keep_their_ids(kind):
    factors = KINDS[kind](1.0)
    index = torch.tensor([2, 0])
    states = all_states(factors.arity)[None]
    part = factors.select(index)
    assert torch.equal(part.score(states), factors.score(states)[index])
    assert torch.equal(part.ids, factors.ids[index])
    assert part.num_factors == part.scope.num_factors == 2


@pytest.mark.parametrize("kind", KINDS)
def test_potential_is_one_or_the_floor_for_hard_labels(kind):
    factors = KINDS[kind](0.7)
    states = all_states(factors.arity)[None]
    potential = factors.log_potential(states).exp()
    satisfied = factors.score(states) >= 1
    assert torch.allclose(potential[satisfied], torch.ones(1, dtype=torch.float64))
    if factors.score(states).dtype == torch.bool:
        floor = torch.full((1,), math.exp(-0.7), dtype=torch.float64)
        assert torch.allclose(potential[~satisfied], floor)
    assert float(potential.min()) >= math.exp(-0.7) - 1e-12


def test_hard_factors_have_potential_zero_where_unsatisfied():
    factors = random_perceptron(3, 5, 4, math.inf, "bipolar")
    potential = factors.log_potential(all_states(4)[None]).exp()
    assert set(potential.unique().tolist()) == {0.0, 1.0}


def test_beta_may_differ_per_factor():
    beta = torch.tensor([1.0, math.inf, 3.0])
    factors = perceptron(random_inputs(0, 3, 4), random_labels(0, 3), beta)
    assert torch.allclose(factors.floor, torch.exp(-beta.double()))


@pytest.mark.parametrize("coding", ["bipolar", "binary"])
def test_a_tie_is_not_positive(coding):
    factors = perceptron(torch.tensor([[1, -1]]), torch.tensor([1]), coding=coding)
    assert not factors.score(torch.tensor([[[True, True]]])).item()


def test_lowest_index_wins_a_tie_of_classes():
    factors = network(mlp(1, (), 3), torch.tensor([[1]]), torch.tensor([0]))
    assert factors.score(torch.tensor([[[True, True, True]]])).item()


def test_table_axes_are_variables_in_order():
    values = torch.zeros(1, 2, 2, 2)
    values[0, 1, 0, 1] = 1.0
    state = torch.tensor([[[True, False, True]]])
    assert table(values).score(state).item() == 1.0


@given(st.integers(1, 20), st.data())
def test_codes_and_states_are_inverse(arity, data):
    code = torch.tensor(data.draw(st.integers(0, 2**arity - 1)))
    assert int(encode(decode(code, arity))) == int(code)


def test_module_of_any_kind_is_a_factor():
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 2, bias=True), torch.nn.ReLU(), torch.nn.Linear(2, 1)
    )
    inputs, labels = random_inputs(0, 5, 3), random_labels(0, 5)
    factors = network(module, inputs, labels)
    states = torch.rand(5, 4, factors.arity) < 0.5
    expected = torch.empty(5, 4, dtype=torch.bool)
    for f in range(5):
        for s in range(4):
            bits = states[f, s].float() * 2 - 1
            torch.nn.utils.vector_to_parameters(bits, module.parameters())
            expected[f, s] = (module(inputs[f].float()).item() > 0) == bool(labels[f])
    assert torch.equal(factors.score(states), expected)


def test_joined_problems_score_as_separate_ones_do():
    graphs = [
        factor_graph(random_perceptron(seed, 3 + seed, 5, 2.0, "bipolar")) for seed in range(4)
    ]
    both = join(graphs)
    assert len(both.blocks) == 1
    assert both.num_problems == 4
    states = torch.rand(6, both.num_variables) < 0.5
    apart = [g.accuracy(states[:, 5 * i : 5 * i + 5])[:, 0] for i, g in enumerate(graphs)]
    assert torch.allclose(both.accuracy(states), torch.stack(apart, dim=1))


def test_mixed_arities_live_in_one_graph():
    graph = factor_graph(
        random_table(0, 2, 2, math.inf, indexed([[0, 1], [1, 2]])),
        random_perceptron(0, 3, 4, 1.0, "bipolar"),
        random_blackbox(0, 1, 3, 2.0),
    )
    assert graph.num_variables == 4
    assert graph.num_factors == 6
    assert torch.cat([b.ids for b in graph.blocks]).tolist() == list(range(6))
    assert graph.accuracy(torch.zeros(1, 4, dtype=torch.bool)).shape == (1, 1)


def test_scopes_gather_and_total_are_transposes():
    variables = torch.tensor([[0, 3], [3, 1], [2, 3]])
    scopes = [indexed(variables), dense(3, 2, torch.tensor([0, 2, 2])), dense(3, 2, 1)]
    values = torch.randn(4, dtype=torch.float64)
    messages = torch.randn(3, 2, dtype=torch.float64)
    for scope in scopes:
        left = (scope.gather(values) * messages).sum()
        right = (values * scope.total(messages, 4)).sum()
        assert torch.allclose(left, right)


BAD = {
    "labels not binary": (
        lambda: perceptron(random_inputs(0, 2, 3), torch.tensor([0, 2])),
        "0 or 1",
    ),
    "labels of the wrong length": (
        lambda: perceptron(random_inputs(0, 2, 3), torch.tensor([0])),
        "one per example",
    ),
    "NaN input": (
        lambda: perceptron(torch.tensor([[1.0, math.nan]]), torch.tensor([1])),
        "must be bits.*got nan",
    ),
    "input not a bit": (lambda: perceptron(torch.tensor([[1, 2]]), torch.tensor([1])), "got 2"),
    "no examples": (lambda: perceptron(torch.zeros(0, 3), torch.zeros(0)), "no examples"),
    "beta zero": (
        lambda: perceptron(random_inputs(0, 2, 3), random_labels(0, 2), 0.0),
        "beta must be positive",
    ),
    "beta NaN": (
        lambda: perceptron(random_inputs(0, 2, 3), random_labels(0, 2), math.nan),
        "beta must be positive",
    ),
    "beta of the wrong length": (
        lambda: perceptron(random_inputs(0, 2, 3), random_labels(0, 2), torch.ones(3)),
        "one per factor",
    ),
    "images not flattened": (
        lambda: perceptron(torch.ones(2, 1, 3, 3), random_labels(0, 2)),
        "flatten",
    ),
    "unknown coding": (
        lambda: perceptron(random_inputs(0, 2, 3), random_labels(0, 2), coding="ternary"),  # pyright: ignore[reportArgumentType] (meant)
        "unknown coding 'ternary'",
    ),
    "table too wide": (lambda: table(torch.ones(1, 2**21)), "limit is 20"),
    "table not a power of two": (lambda: table(torch.ones(1, 6)), "2\\^A entries"),
    "table of zeros": (lambda: table(torch.zeros(1, 4)), "only zero potentials"),
    "negative potential": (lambda: table(torch.tensor([[1.0, -1.0]])), "at least 0"),
    "wrong image channels": (
        lambda: network(paper_conv(), torch.ones(2, 3, 14, 14), random_labels(0, 2)),
        "1, height, width",
    ),
    "wrong number of inputs": (
        lambda: network(mlp(4), random_inputs(0, 2, 3), random_labels(0, 2)),
        "of 4 inputs",
    ),
    "class out of range": (
        lambda: network(mlp(3, (), 3), random_inputs(0, 2, 3), torch.tensor([0, 3])),
        "0 to 2",
    ),
    "network without weights": (
        lambda: network(torch.nn.ReLU(), random_inputs(0, 2, 3), random_labels(0, 2)),
        "no weights",
    ),
    "scope of another shape": (
        lambda: perceptron(random_inputs(0, 2, 3), random_labels(0, 2), scope=dense(2, 4)),
        "make them agree",
    ),
    "a variable twice": (lambda: indexed([[0, 0]]), "twice"),
    "empty graph": (lambda: factor_graph(), "no factors"),
    "variable out of range": (
        lambda: factor_graph(random_perceptron(0, 2, 3, 1.0, "bipolar"), num_variables=2),
        "has variable 2",
    ),
    "prior of the wrong shape": (
        lambda: factor_graph(random_perceptron(0, 2, 3, 1.0, "bipolar"), log_prior=torch.zeros(2)),
        "one log-odds per variable",
    ),
    "prior NaN": (
        lambda: factor_graph(
            random_perceptron(0, 2, 3, 1.0, "bipolar"), log_prior=torch.full((3,), math.nan)
        ),
        "NaN",
    ),
    "blackbox of the wrong shape": (
        lambda: blackbox(lambda states, which: states, 1, 3).score(all_states(3)[None]),
        "one potential each",
    ),
    "blackbox out of range": (
        lambda: blackbox(lambda states, which: states.sum(-1) * 1.0, 1, 3).score(
            all_states(3)[None]
        ),
        "outside \\[0, 1\\]",
    ),
    "factor across problems": (
        lambda: factor_graph(
            random_perceptron(0, 2, 3, 1.0, "bipolar"), problem=torch.tensor([0, 0, 1])
        ),
        "two problems",
    ),
    "nothing to join": (lambda: join([]), "at least one"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_the_remedy(case):
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [torch.uint8, torch.uint16, torch.uint32], ids=str)
def test_the_largest_unsigned_number_is_no_minus_one(kind):
    labels, most = torch.tensor([0, 1]), torch.iinfo(kind).max
    images = torch.tensor([[0, most], [most, 0]]).to(kind)
    for make in (perceptron, lambda x, y: network(mlp(2, (3,)), x, y)):
        with pytest.raises(ValueError, match=f"must be bits .* got {str(most)[0]}"):
            make(images, labels)
    if kind == torch.uint8:  # gray levels of a deep net
        levels = network(mlp(2, (3, 3)), images, labels).inputs
        assert levels.dtype == torch.uint8
        assert torch.equal(levels, images)


def test_centred_levels_are_read_by_deep_nets():
    images = torch.tensor([[0, 255], [9, 40]], dtype=torch.uint8)
    levels = centred(images, 40)
    assert levels.tolist() == [[-40, 215], [-31, 0]]
    assert torch.equal(network(mlp(2, (3, 3)), levels, torch.tensor([0, 1])).inputs, levels)
    for wrong in (256, -256, -(2**15)):
        beyond = torch.tensor([[0, wrong], [wrong, 0]], dtype=torch.int16)
        with pytest.raises(ValueError, match="inputs must be bits"):
            network(mlp(2, (3, 3)), beyond, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="inputs must be bits"):
        network(mlp(2, (3,)), levels, torch.tensor([0, 1]))
    for image, offset in ((images, 256), (images, -1), (levels, 3)):
        with pytest.raises(ValueError, match="gray levels are uint8, and the offset is from 0"):
            centred(image, offset)


def test_every_kind_is_a_factor():
    assert all(isinstance(make(1.0), Factors) for make in KINDS.values())


def test_factors_that_kernels_have_seen_can_still_move():
    factors = random_perceptron(0, 6, 5, 2.0, "bipolar")
    assert factors.rows.shape == (6, 5)
    assert factors.log_means(3).shape == (1, 4)
    moved = factors.to("cpu")
    assert torch.equal(moved.inputs, factors.inputs)
    assert torch.equal(moved.rows, factors.rows)


@pytest.mark.parametrize("update", [flip(5, backend="numba"), closed_form("gaussian")])
def test_examples_may_lie_in_memory_any_way(update):
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 2, (7, 30), generator=draw) * 2 - 1
    table = torch.randint(0, 2, (30, 3), generator=draw)
    strided = perceptron(inputs.T, table[:, 0], 2.0)
    plain = perceptron(inputs.T.contiguous(), table[:, 0].contiguous(), 2.0)
    belief, message = torch.linspace(-1, 1, 7).double(), torch.zeros(30, 7)
    found = [
        update.sweep(Key(0), each, belief, message, torch.ones(30)).messages
        for each in (strided, plain)
    ]
    assert torch.equal(*found)
