"""Rows learned one by one in closed form: the same messages as by the moments of any net."""

import math

import numpy as np
import pytest
import torch

from vitrail.factors import network
from vitrail.graph import factor_graph
from vitrail.nn import mlp, program_of
from vitrail.random import Key
from vitrail.solvers import streaming
from vitrail.solvers.row_beliefs import RowBeliefs

INPUTS, MEMORY, FLOOR = 7, 5.0, 0.1


@pytest.mark.parametrize("hidden", [(), (4,), (5,)], ids=str)
@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("label", [0, 1])
def test_a_row_gives_the_messages_of_moments(hidden, low, label):
    program = program_of(mlp(INPUTS, hidden, 1), (INPUTS,))
    draw = torch.Generator().manual_seed(3)
    field = torch.randn(program.num_bits, generator=draw)
    x = low + (1 - low) * torch.randint(0, 2, (1, INPUTS), generator=draw)
    factors = network(
        program, x.to(torch.int8), torch.tensor([label]), torch.tensor([-math.log(FLOOR)])
    )
    graph = factor_graph(factors).with_prior(field)
    solver = streaming(batch=1, batches=1, rate=None, first=0.0)
    messages = solver.absorb(Key(0), graph, graph.blocks, solver.init(Key(0), graph)).field
    kept = math.exp(-1 / MEMORY)
    nets = RowBeliefs(program, np.stack([field.numpy()] * 2), np.full(2, kept), FLOOR)
    nets.agreement(x[0].numpy().astype(np.float32))
    nets.learn(np.array([2 * label - 1, 0]))
    np.testing.assert_allclose(nets.beliefs[0], kept * field + messages, atol=1e-4)
    np.testing.assert_array_equal(nets.beliefs[1] != field.numpy(), False)
