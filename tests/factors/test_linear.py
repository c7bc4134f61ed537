"""Tables of one-layer problems against the graph they were read from."""

import pytest
import torch
from torch import nn

from vitrail.factors import network, perceptron, table
from vitrail.factors.linear import linear_problems
from vitrail.graph import factor_graph, indexed, join
from vitrail.nn import BinaryLinear, Sign, mlp


def bits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)).bool()


def signs(seed: int, *shape: int) -> torch.Tensor:
    return bits(seed, *shape).to(torch.int8) * 2 - 1


def graphs():
    one = factor_graph(perceptron(signs(1, 9, 5), bits(2, 9)))
    weighted = factor_graph(
        perceptron(signs(3, 4, 5), bits(4, 4), weight=torch.tensor([1.0, 2.0, 0.0, 3.0]))
    )
    net = factor_graph(
        network(nn.Sequential(BinaryLinear(7, 1), Sign()), signs(5, 6, 7), bits(6, 6))
    )
    rows = torch.tensor([[4, 0, 2], [1, 3, 0]])
    sparse = factor_graph(
        perceptron(signs(7, 2, 3), bits(8, 2), scope=indexed(rows)),
        perceptron(signs(9, 3, 5), bits(10, 3)),
    )
    binary = factor_graph(perceptron(signs(11, 8, 6).clamp(min=0), bits(12, 8), coding="binary"))
    return {
        "one": one,
        "joined": join([one, weighted]),
        "joined with a network": join([one, net]),
        "sparse": sparse,
        "binary": binary,
    }


@pytest.mark.parametrize("name", graphs())
def test_tables_satisfy_what_the_graph_satisfies(name):
    graph = graphs()[name]
    problems = linear_problems(graph)
    assert problems is not None
    states = bits(99, 50, graph.num_variables)
    expected = graph.satisfied(states)
    for number, problem in enumerate(problems):
        met = torch.stack([problem.satisfied(state[problem.variables]) for state in states])
        torch.testing.assert_close(met.double() @ problem.weight, expected[:, number])


def test_other_factors_have_no_table():
    assert linear_problems(factor_graph(table(torch.rand(1, 4)))) is None
    assert linear_problems(factor_graph(network(mlp(5, (2,)), signs(1, 3, 5), bits(2, 3)))) is None


@pytest.mark.parametrize(
    ("weight", "counts"), [([0.5, 1.5, 0.0], [1, 3, 0]), ([48.0, 53.0, 0.0], [48, 53, 0])]
)
def test_counts_are_whole_weights_or_in_units_of_the_smallest(weight, counts):
    graph = factor_graph(perceptron(signs(1, 3, 5), bits(2, 3), weight=torch.tensor(weight)))
    (problem,) = linear_problems(graph) or []
    assert problem.counts().tolist() == counts


def test_weights_that_cannot_be_counted_are_refused():
    graph = factor_graph(perceptron(signs(1, 2, 5), bits(2, 2), weight=torch.tensor([1.0, 1.3])))
    (problem,) = linear_problems(graph) or []
    with pytest.raises(ValueError, match="multiples of the smallest"):
        problem.counts()
