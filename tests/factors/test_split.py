"""A graph taken apart and put together."""

import torch

from vitrail.factors import perceptron, table
from vitrail.factors.split import split
from vitrail.graph import factor_graph, indexed, join


def bits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)).bool()


def signs(seed: int, *shape: int) -> torch.Tensor:
    return bits(seed, *shape).to(torch.int8) * 2 - 1


def example():
    tables = table(torch.rand(4, 4), scope=indexed([[0, 3], [1, 2], [3, 1], [2, 0]]))
    return join(
        [
            factor_graph(perceptron(signs(1, 6, 5), bits(2, 6))),
            factor_graph(tables, log_prior=torch.arange(4.0)),
            factor_graph(perceptron(signs(3, 7, 5), bits(4, 7))),
        ]
    )


def test_parts_satisfy_what_the_whole_satisfies():
    graph = example()
    states = bits(5, 40, graph.num_variables)
    whole = graph.satisfied(states)
    parts = split(graph)
    assert len(parts) == 3
    for number, (part, variables) in enumerate(parts):
        torch.testing.assert_close(part.satisfied(states[:, variables])[:, 0], whole[:, number])
        torch.testing.assert_close(part.log_prior, graph.log_prior[variables])


def test_parts_keep_factor_ids_and_share_no_variable():
    graph = example()
    parts = split(graph)
    ids = [block.ids for part, _ in parts for block in part.blocks]
    assert torch.cat(ids).sort().values.tolist() == list(range(graph.num_factors))
    variables = torch.cat([variables for _, variables in parts])
    assert variables.sort().values.tolist() == list(range(graph.num_variables))
