"""A series from a sensor: a small convolution over time that finds a worn bearing.

    python examples/sensor_series.py

A sound bearing hums; a worn one also knocks, at times that differ from recording to recording. A
convolution looks for the knock wherever it is. Only signs of the signal are used: one bit a sample.
"""

import torch
from torch import nn

from vitrail import factor_graph, network
from vitrail.nn import BinaryConv1d, BinaryLinear, Sign, num_weights, set_bits
from vitrail.solvers import portfolio, run_stages

LENGTH, KNOCK = 48, torch.tensor([1.0, 1, -1, 1, -1, 1, -1, -1])


def recordings(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Signs of noise, (count, 1, LENGTH); the worn ones (label 1) with four knocks inside."""
    draw = torch.Generator().manual_seed(seed)
    series = torch.randn(count, LENGTH, generator=draw).sign()
    labels = torch.arange(count) % 2
    for row in labels.nonzero()[:, 0]:
        for start in torch.randperm(LENGTH // 8, generator=draw)[:4] * 8:
            series[row, start : start + 8] = KNOCK
    return series[:, None], labels


net = nn.Sequential(BinaryConv1d(1, 3, 8, stride=8), Sign(), nn.Flatten(), BinaryLinear(18, 1))
series, labels = recordings(400, seed=0)
graph = factor_graph(network(net, series.to(torch.int8), labels, beta=2.0))
solution = run_stages(portfolio(graph), graph, seed=0)
set_bits(net, solution.best)

unseen, truth = recordings(1000, seed=1)
right = (net(unseen)[:, 0] > 0) == (truth == 1)
print(f"{num_weights(net)} bits: {float(right.float().mean()):.3f} of unseen recordings right")
