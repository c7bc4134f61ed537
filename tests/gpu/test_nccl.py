"""Sums over NCCL, by a group of one rank: more than one wants as many GPUs.

A world of two is told that its other rank has nothing to add, so that every sum of a step goes
through the group; what is found must be what it is when gloo carries the sums.
"""

from typing import Any

import pytest
import torch.distributed as dist

from vitrail import factor_graph, perceptron, ranks, run
from vitrail.datasets import glass
from vitrail.ranks import World
from vitrail.solvers import belief_propagation, s4p
from vitrail.updates import closed_form, flip

SOLVERS = {
    "flips in batches": belief_propagation(flip(5), damping=0.5, batch=16),
    "exact, with what is ruled out": belief_propagation(closed_form(), damping=0.5),
    "surveys": s4p(flip(5), survey_samples=20, bins=31),
}


def found_over(
    backend: str, device: str, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], int]:
    """Marginals of rank 0 of two, and the bytes that it has handed over."""
    data = glass(60, 31, seed=4)
    graph = factor_graph(perceptron(data.inputs, data.labels, 2.0)).to(device)
    world, store = World(0, 2), dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    try:
        with monkeypatch.context() as here:
            here.setattr(ranks, "_membership", ranks._Membership(world, store))
            solution = run(solver, graph.shared(world), seed=3, max_steps=4)
    finally:
        dist.destroy_process_group()
    return solution.marginals.tolist(), world.bytes_sent


@pytest.mark.gpu
@pytest.mark.parametrize("name", SOLVERS)
def test_sums_over_nccl_are_those_over_gloo(name: str, monkeypatch: pytest.MonkeyPatch):
    over_nccl = found_over("cpu:gloo,cuda:nccl", "cuda", SOLVERS[name], monkeypatch)
    over_gloo = found_over("gloo", "cuda", SOLVERS[name], monkeypatch)
    assert over_nccl == over_gloo
    assert over_nccl[1] > 0
