"""Compiled searches against batched evaluation of the same chain, and against the graph."""

import pytest
import torch

from vitrail.factors import blackbox, network, perceptron
from vitrail.graph import factor_graph
from vitrail.nn import BinaryConv1d, BinaryLinear, Flatten, Sequential, Sign, mlp, paper_conv
from vitrail.random import Key
from vitrail.solvers.flip_search import Energy, Segment, errors, flip_searches, ramp


def bits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)).bool()


def signs(seed: int, *shape: int) -> torch.Tensor:
    return bits(seed, *shape).to(torch.int8) * 2 - 1


def classes(seed: int, num_factors: int, num_classes: int) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(0, num_classes, (num_factors,), generator=draws)


WHOLE = torch.tensor([1.0, 2.0, 3.0] * 20)
CASES = {
    "linear": perceptron(signs(1, 60, 21), bits(2, 60)),
    "linear, even, 0/1": perceptron(bits(3, 60, 12).to(torch.int8), bits(4, 60), coding="binary"),
    "linear, weighted": perceptron(signs(5, 60, 15), bits(6, 60), weight=WHOLE),
    "one hidden": network(mlp(11, (3,)), signs(7, 60, 11), bits(8, 60)),
    "one hidden, weighted": network(mlp(11, (3,)), signs(7, 60, 11), bits(8, 60), weight=WHOLE),
    "one hidden, 0/1": network(mlp(11, (4,), coding="binary"), signs(7, 60, 11), bits(8, 60)),
    "series": network(
        Sequential(BinaryConv1d(2, 3, 3), Sign(), Flatten(), BinaryLinear(15, 1)),
        signs(15, 60, 2, 7),
        bits(16, 60),
    ),
    "two hidden, classes": network(mlp(9, (5, 4), 3), signs(9, 60, 9), classes(10, 60, 3)),
    "conv": network(paper_conv(), signs(11, 60, 1, 14, 14), bits(12, 60)),
}
# longer than one stretch of examples of the kernel
MANY = network(mlp(9, (2,)), signs(13, 5000, 9), bits(14, 5000))


def by_evaluation(factors):
    """The same factors as a black box, which no kernel can look into."""

    def score(states, which):
        return factors.select(which).score(states)

    return blackbox(score, factors.num_factors, factors.arity, weight=factors.weight)


def searched(factors, energy, proposals=400, seed=5, free=None):
    graph = factor_graph(factors)
    (search,) = flip_searches(graph)
    starts = bits(99, 3, graph.num_variables)
    segment = Segment(energy, proposals, 0.25, 0.75, free=free)
    return graph, search.run(Key(seed, step=2), starts, segment)


@pytest.mark.parametrize("name", [*CASES, "many examples"])
def test_kernels_take_the_steps_of_batched_evaluation(name):
    factors = MANY if name == "many examples" else CASES[name]
    proposals = 60 if name == "many examples" else 400
    graph, fast = searched(factors, errors(), proposals)
    _, slow = searched(by_evaluation(factors), errors(), proposals)
    assert torch.equal(fast.last, slow.last)
    assert torch.equal(fast.best, slow.best)
    torch.testing.assert_close(fast.best_score, slow.best_score)
    assert not torch.equal(fast.last, bits(99, 3, graph.num_variables))


@pytest.mark.parametrize("name", CASES)
def test_weights_that_are_not_free_stay_and_kernels_agree_on_the_others(name):
    free = torch.tensor([1, 4, 5, 8])
    graph, fast = searched(CASES[name], errors(), free=free)
    _, slow = searched(by_evaluation(CASES[name]), errors(), free=free)
    assert torch.equal(fast.last, slow.last)
    moved = (fast.last != bits(99, 3, graph.num_variables)).any(0)
    assert set(torch.nonzero(moved)[:, 0].tolist()) <= set(free.tolist())
    assert bool(moved.any())


@pytest.mark.parametrize("energy", [errors(), ramp()], ids=["errors", "ramp"])
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_the_graph(name, energy):
    graph, found = searched(CASES[name], energy)
    torch.testing.assert_close(found.best_score, graph.satisfied(found.best)[:, 0])
    torch.testing.assert_close(found.last_score, graph.satisfied(found.last)[:, 0])
    assert bool((found.best_score >= found.last_score).all())


def test_real_weights_are_searched_to_the_rounding_stated():
    weight = torch.rand(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    graph, found = searched(perceptron(signs(1, 60, 15), bits(2, 60), weight=weight), ramp())
    exact = graph.satisfied(found.best)[:, 0]
    torch.testing.assert_close(found.best_score, exact, rtol=0.0, atol=60 * 0.5 / 4096)


def test_searches_differ_by_chain_seed_and_step():
    factors = CASES["linear"]
    graph = factor_graph(factors)
    (search,) = flip_searches(graph)
    same = torch.zeros(2, 21, dtype=torch.bool)

    def last(seed, step):
        return search.run(Key(seed, step), same, Segment(ramp(), 500)).last

    assert not torch.equal(last(1, 0)[0], last(1, 0)[1])
    assert not torch.equal(last(1, 0), last(2, 0))
    assert not torch.equal(last(1, 0), last(1, 1))
    assert torch.equal(last(1, 0), last(1, 0))


def test_a_ramp_is_refused_where_there_are_no_margins():
    with pytest.raises(ValueError, match="a ramp needs the margins"):
        searched(by_evaluation(CASES["linear"]), ramp())


@pytest.mark.parametrize(
    "wrong", [(-1.0, 1.0, 1.0, 0.1), (1.0, 1.0, 0.1, 1.0), (1.0, 1.0, 1.0, 0.0)]
)
def test_an_energy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="start ≥ end > 0"):
        Energy(*wrong)
