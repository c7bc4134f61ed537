"""Energies: exact answers by elimination, Bethe's on trees, ground states by search."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import all_states

from vitrail import belief_propagation, blackbox, factor_graph, join, run, table
from vitrail.baselines import annealing
from vitrail.factors.table import encode
from vitrail.graph import indexed
from vitrail.solvers import Status, bethe, eliminate, elimination, log_partition, polish, run_stages
from vitrail.solvers.stages import Stage
from vitrail.updates import exact, flip


def random_graph(seed: int, num: int, scopes: dict[int, int], zeros: float = 0.0):
    """Tables of random potentials: arity → how many; and fields on the variables."""
    generator = torch.Generator().manual_seed(seed)
    blocks = []
    for arity, count in scopes.items():
        chosen = [torch.randperm(num, generator=generator)[:arity] for _ in range(count)]
        logs = 2 * torch.randn(count, 2**arity, generator=generator, dtype=torch.float64)
        if zeros:
            logs[:, 1:][torch.rand(count, 2**arity - 1, generator=generator) < zeros] = -torch.inf
        blocks.append(table(logs, indexed(torch.stack(chosen)), log=True))
    fields = torch.randn(num, generator=generator, dtype=torch.float64)
    return factor_graph(*blocks, num_variables=num, log_prior=fields)


def tree(seed: int, num: int, chain: bool = False):
    """A random tree, or a chain, of pair tables with fields."""
    generator = torch.Generator().manual_seed(seed)
    parent = [
        v - 1 if chain else int(torch.randint(v, (1,), generator=generator)) for v in range(1, num)
    ]
    logs = 1.5 * torch.randn(num - 1, 4, generator=generator, dtype=torch.float64)
    fields = torch.randn(num, generator=generator, dtype=torch.float64)
    edges = [(p, v) for v, p in enumerate(parent, 1)]
    return factor_graph(table(logs, indexed(edges), log=True), log_prior=fields)


def spin_glass(seed: int, edges: list[tuple[int, int]]):
    """E = −Σ J·s·s' with Gaussian couplings."""
    generator = torch.Generator().manual_seed(seed)
    coupling = torch.randn(len(edges), generator=generator, dtype=torch.float64)
    logs = torch.stack([coupling, -coupling, -coupling, coupling], 1)
    return factor_graph(table(logs, indexed(edges), log=True))


def grid_edges(side: int) -> list[tuple[int, int]]:
    cells = torch.arange(side * side).view(side, side)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    return [
        pair
        for a, b in pairs
        for pair in zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
    ]


def log_weights(graph):
    states = all_states(graph.num_variables)
    return states, -graph.energy(states)[:, 0]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num=st.integers(4, 9),
    pairs=st.integers(1, 12),
    triples=st.integers(1, 6),
    zeros=st.sampled_from([0.0, 0.2]),
)
def test_elimination_agrees_with_enumeration(seed, num, pairs, triples, zeros):
    graph = random_graph(seed, num, {2: pairs, 3: triples}, zeros)
    states, logs = log_weights(graph)
    answer = eliminate(graph)
    log_z = logs.logsumexp(0)
    torch.testing.assert_close(answer.log_z[0], log_z, rtol=0, atol=1e-9)
    weight = (logs - log_z).exp()
    torch.testing.assert_close(answer.marginals, weight @ states.double(), rtol=0, atol=1e-9)
    assert float(answer.energy[0]) == pytest.approx(float(-logs.max()), abs=1e-9)
    for block, found in zip(graph.blocks, answer.factor_marginals, strict=True):
        codes = encode(states[:, block.scope.index()])  # (2^V, F)
        wanted = torch.zeros_like(found).scatter_add_(1, codes.T, weight.expand(len(found), -1))
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


def test_elimination_of_twenty_variables_agrees_with_enumeration():
    graph = random_graph(3, 18, {2: 30})
    _, logs = log_weights(graph)
    answer = eliminate(graph)
    torch.testing.assert_close(log_partition(graph), answer.log_z)
    torch.testing.assert_close(answer.log_z[0], logs.logsumexp(0), rtol=0, atol=1e-9)


def test_elimination_of_several_problems_is_that_of_each():
    graphs = [random_graph(seed, 5, {2: 6, 3: 2}) for seed in range(3)]
    together = eliminate(join(graphs))
    for number, graph in enumerate(graphs):
        alone = eliminate(graph)
        torch.testing.assert_close(together.log_z[number], alone.log_z[0])
        mine = slice(5 * number, 5 * number + 5)
        torch.testing.assert_close(together.marginals[mine], alone.marginals)
        assert torch.equal(together.best[mine], alone.best)


def test_elimination_names_the_width_that_is_too_much():
    graph = random_graph(0, 30, {2: 400})
    with pytest.raises(ValueError, match=r"width (at least )?\d+ and needs .* the limit is"):
        eliminate(graph, memory=2**20)


def test_a_contradiction_has_no_probability():
    both = table(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), indexed([[0], [0]]))
    answer = eliminate(factor_graph(both))
    assert float(answer.log_z[0]) == -math.inf
    assert answer.marginals.isnan().all()
    assert run(elimination(), factor_graph(both)).status[0] == Status.CONTRADICTION


def test_elimination_is_a_solver():
    graph = spin_glass(1, grid_edges(4))
    solution = run(elimination(), graph)
    answer = eliminate(graph)
    assert torch.equal(solution.best, answer.best)
    torch.testing.assert_close(solution.marginals, answer.marginals)
    torch.testing.assert_close(solution.energy, answer.energy)


@pytest.mark.parametrize("chain", [False, True], ids=["tree", "chain"])
@pytest.mark.parametrize("seed", range(4))
def test_belief_propagation_is_exact_on_trees(seed, chain):
    graph = tree(seed, 30, chain)
    solver = belief_propagation(exact(), damping=0.0, prior_scale=0.0)
    found = bethe(graph, run(solver, graph, max_steps=60).state)
    answer = eliminate(graph)
    for name in ("log_z", "marginals"):
        wanted = getattr(answer, name)
        torch.testing.assert_close(getattr(found, name), wanted, rtol=0, atol=1e-6)
    (joint,), (wanted,) = found.factor_marginals, answer.factor_marginals
    torch.testing.assert_close(joint, wanted, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.entropy, found.log_z + found.energy)


def test_bethe_is_close_where_couplings_are_weak():
    """On loopy graphs an approximation: its error falls with the couplings."""
    errors = []
    for scale in (0.5, 0.1):
        block: Any = spin_glass(5, grid_edges(4)).blocks[0]
        logs = torch.log(block.potential) * scale
        graph = factor_graph(table(logs, block.scope, log=True))
        solver = belief_propagation(exact(), damping=0.3, prior_scale=0.0)
        found = bethe(graph, run(solver, graph, max_steps=300).state)
        errors.append(float((found.log_z - eliminate(graph).log_z).abs()))
    assert errors[0] < 0.1
    assert errors[1] < 1e-3


def test_energy_counts_what_a_table_was_divided_by():
    graph = factor_graph(table(torch.tensor([[1.0, 2.0, 3.0, 8.0]])), log_prior=torch.ones(2))
    energy = graph.energy(torch.tensor([[True, True], [True, False]]))[:, 0]
    torch.testing.assert_close(
        energy, -torch.tensor([8.0, 2.0]).double().log() - torch.tensor([2.0, 1.0]).double()
    )


def test_constraints_are_counted_and_have_no_energy():
    clauses = table(torch.tensor([[0.0, 1.0, 1.0, 1.0]]), beta=2.0)
    graph = factor_graph(clauses)
    assert not graph.has_energies
    assert run(polish(10), graph, max_steps=1).energy is None


@pytest.mark.parametrize("seed", range(20))
def test_search_finds_the_ground_state_of_twelve_spins(seed):
    edges = [(a, b) for a in range(12) for b in range(a)]
    graph = spin_glass(seed, edges)
    solution = run(polish(20_000), graph, seed=seed, max_steps=8)
    torch.testing.assert_close(solution.energy, eliminate(graph).energy)
    torch.testing.assert_close(solution.energy, graph.energy(solution.best[None])[0])


@pytest.mark.parametrize(
    "solver", [polish(5_000, steps=4), annealing(20_000, steps=4)], ids=["polish", "annealing"]
)
def test_functions_with_energies_are_searched_by_energy(solver):
    graph = spin_glass(2, [(a, b) for a in range(6) for b in range(a)])
    whole = table(-graph.energy(all_states(6)[:, [5, 4, 3, 2, 1, 0]]).T, log=True)

    def potential(states, _which):
        return whole.potential[0][encode(states)]

    function = blackbox(potential, 1, 6, energies=True)
    for block in (whole, function):
        found = run(solver, factor_graph(block), seed=0, max_steps=4)
        assert float(graph.energy(found.best[None])) == pytest.approx(
            float(eliminate(graph).energy)
        )


def test_the_best_of_messages_is_that_of_the_lowest_energy():
    graph = spin_glass(4, [(a, b) for a in range(12) for b in range(a)])
    solver = belief_propagation(flip(8), damping=0.5)
    solution = run(solver, graph, seed=3, max_steps=30)
    assert solution.energy is not None
    assert float(solution.history["best_energy"][-1]) == pytest.approx(float(solution.energy))
    assert (solution.history["best_energy"].diff(dim=0) <= 0).all()
    last = graph.energy(solution.weights[None])[0]
    assert (solution.energy <= last + 1e-9).all()


def test_a_stage_that_lowers_the_energy_is_named():
    graph = spin_glass(6, [(a, b) for a in range(12) for b in range(a)])
    bp = belief_propagation(flip(2), damping=0.5)
    found = run_stages([Stage("sbp", bp, 1), Stage("polish", polish(20_000), 8)], graph)
    assert found.found_by == ("polish",)
    torch.testing.assert_close(found.energy, eliminate(graph).energy)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_search_finds_the_ground_state_of_a_grid(seed):
    graph = spin_glass(seed, grid_edges(15))
    solution = run(polish(16_000_000, chains=96), graph, seed=seed, max_steps=8)
    torch.testing.assert_close(solution.energy, eliminate(graph).energy)


@pytest.mark.long
def test_log_z_of_a_grid_of_18_by_18_is_exact():
    """Twice the same value by both orders of elimination would be no proof; symmetry is one."""
    graph = spin_glass(0, grid_edges(18))
    answer = eliminate(graph)
    torch.testing.assert_close(answer.marginals, torch.full_like(answer.marginals, 0.5))
