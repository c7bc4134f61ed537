"""Formulas by survey propagation: solved near the threshold, checked clause by clause."""

import numpy as np
import pytest
import torch

from vitrail import factor_graph, table
from vitrail.graph import indexed
from vitrail.solvers import solve_formula


def formula(num: int, alpha: float, seed: int, width: int = 3):
    random = np.random.default_rng(seed)
    count = round(alpha * num)
    scope = np.stack([random.choice(num, width, replace=False) for _ in range(count)])
    allowed = np.ones((count, 2**width))
    allowed[np.arange(count), random.integers(0, 2**width, count)] = 0.0
    block = table(torch.from_numpy(allowed), indexed(torch.from_numpy(scope)))
    return factor_graph(block, num_variables=num)


@pytest.mark.parametrize(("num", "alpha"), [(500, 3.5), (1000, 4.1)])
def test_a_random_formula_is_solved(num, alpha):
    graph = formula(num, alpha, 1)
    found = solve_formula(graph, seed=1)
    assert found.unsatisfied == 0
    assert float(graph.accuracy(found.best[None])) == 1.0


def test_clauses_of_different_width_and_fixed_variables_are_met():
    unit = table(torch.tensor([[0.0, 1.0]]), indexed([[0]]))
    implied = table(torch.tensor([[1.0, 0.0, 1.0, 1.0]] * 3), indexed([[0, 1], [1, 2], [2, 3]]))
    graph = factor_graph(unit, implied)
    found = solve_formula(graph)
    assert found.unsatisfied == 0
    assert found.best.tolist() == [True] * 4


def test_the_same_seed_gives_the_same_assignment():
    graph = formula(300, 3.8, 2)
    one, other = (solve_formula(graph, seed=4) for _ in range(2))
    assert torch.equal(one.best, other.best)


def test_what_no_assignment_meets_is_counted():
    both = table(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), indexed([[0], [0]]))
    assert solve_formula(factor_graph(both), flips=100).unsatisfied == 1


def test_other_factors_are_refused():
    parity = table(torch.tensor([[0.0, 1.0, 1.0, 0.0]]))
    with pytest.raises(ValueError, match="made of clauses"):
        solve_formula(factor_graph(parity))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_variables_near_the_threshold(seed):
    graph = formula(10_000, 4.2, seed)
    assert solve_formula(graph, seed=seed).unsatisfied == 0
