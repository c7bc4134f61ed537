"""Every baseline in the table keeps the protocol of a solver on the same small problems."""

import pytest
import torch

from vitrail.baselines import BASELINES
from vitrail.datasets import glass
from vitrail.factors import perceptron
from vitrail.graph import factor_graph, join
from vitrail.solvers import run

SETTINGS = {
    "straight_through": {"batch": 5},
    "bop": {"batch": 5},
    "bayesbinn": {"batch": 5},
    "annealing": {},
    "cpsat": {},
    "exhaustive": {},
}
STEPS = 12


def problems():
    """Two problems of different size, neither of which can be solved whole."""
    sets = [glass(40, 9, seed=1), glass(30, 11, seed=2)]
    return join([factor_graph(perceptron(data.inputs, data.labels)) for data in sets])


def solver_of(name):
    if name == "cpsat":
        pytest.importorskip("ortools")
    return BASELINES[name](**SETTINGS[name])


def test_every_baseline_has_a_case():
    assert SETTINGS.keys() == BASELINES.keys()


@pytest.fixture(scope="module")
def optimum():
    return run(BASELINES["exhaustive"](), problems(), max_steps=1).best_accuracy


@pytest.mark.parametrize("name", BASELINES)
def test_the_best_is_what_it_claims_to_be_and_no_better_than_the_optimum(name, optimum):
    graph = problems()
    solution = run(solver_of(name), graph, seed=1, max_steps=200)
    assert torch.equal(graph.accuracy(solution.best[None])[0], solution.best_accuracy)
    assert torch.equal(graph.accuracy(solution.weights[None])[0], solution.accuracy)
    assert bool((solution.best_accuracy >= solution.accuracy).all())
    assert bool((solution.best_accuracy <= optimum).all())
    # nothing that deserves the name of a rival stays far below on so small a problem
    assert bool((solution.best_accuracy > optimum - 0.1).all())


@pytest.mark.parametrize("name", BASELINES)
def test_a_run_is_a_pure_function_of_the_seed(name):
    first, again = (run(solver_of(name), problems(), seed=5, max_steps=STEPS) for _ in range(2))
    assert torch.equal(first.best, again.best)
    assert torch.equal(first.marginals, again.marginals)


@pytest.mark.parametrize("name", BASELINES)
def test_a_stopped_run_resumes_bit_for_bit(name, tmp_path):
    whole = run(solver_of(name), problems(), seed=3, max_steps=STEPS)
    place = tmp_path / "run.safetensors"
    run(solver_of(name), problems(), seed=3, max_steps=5, checkpoint=place, checkpoint_every=5)
    resumed = run(solver_of(name), problems(), seed=3, max_steps=STEPS, checkpoint=place)
    assert torch.equal(whole.marginals, resumed.marginals)
    assert torch.equal(whole.best, resumed.best)
