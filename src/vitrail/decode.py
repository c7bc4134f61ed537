"""Marginals to bits: each variable by itself, or all of them as one question.

Thresholding asks every variable for its likelier value. Where variables are correlated the
answers need not go together, so the joint decoders look at whole configurations:

    best_of         the best of n configurations drawn from the marginals
    sequential      variables settled block by block, most polarised first, given the others' draws
    decoded         whichever of threshold, best_of and sequential satisfies most

Reinforcement is the fourth way, and the strongest: `vitrail.solvers.reinforced` decodes while
messages still pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, lanes32, thresholds

BLOCKS = 16  # of variables that `sequential` settles one after another


def threshold(key: Key, log_odds: Tensor) -> Tensor:
    """Each variable's likelier value, (V,) bool: P > ½ is one, exactly ½ is settled by a coin."""
    if bool((log_odds != 0).all()):
        return log_odds > 0
    zero = torch.zeros((), dtype=torch.int64, device=log_odds.device)
    coin = lanes32(key.of(Stream.DECODE), zero, zero, log_odds.shape[0]) >= 2**31
    return torch.where(log_odds == 0, coin, log_odds > 0)


def samples(key: Key, log_odds: Tensor, num: int, round_: int = 1) -> Tensor:
    """Configurations drawn from the marginals, each variable by itself: (num, V) bool."""
    checked_count("num", num, 1)
    numbers = torch.arange(num, device=log_odds.device)
    address = torch.full_like(numbers, round_)
    return bernoulli(key.of(Stream.DECODE), address, numbers, thresholds(log_odds))


def best_of(key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64) -> Tensor:
    """Of `num` draws from the marginals, the best for each problem, (V,) bool."""
    return _best(graph, samples(key, log_odds, num))


def sequential(
    key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64, blocks: int = BLOCKS
) -> Tensor:
    """Settle the variables in `blocks` parts, the most polarised first, (V,) bool.

    For each part the rest is drawn `num` times from the marginals; the part takes the values it
    has in the draw that satisfies most, problem by problem, and keeps them from then on. So each
    part is chosen knowing the ones before it. Cost num·blocks evaluations of every factor.
    """
    settled = torch.zeros_like(log_odds, dtype=torch.bool)
    bits = threshold(key, log_odds)
    rank = log_odds.abs().argsort(descending=True)
    for number, part in enumerate(rank.chunk(max(1, min(blocks, len(rank))))):
        drawn = samples(key, log_odds, num, round_=2 + number)
        drawn = torch.where(settled, bits, drawn)
        drawn[0] = torch.where(settled, bits, threshold(key, log_odds))
        bits[part] = _best(graph, drawn)[part]
        settled[part] = True
    return bits


def decoded(key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64) -> Tensor:
    """Whichever decoding satisfies most, problem by problem, (V,) bool."""
    ways = (
        threshold(key, log_odds),
        best_of(key, graph, log_odds, num),
        sequential(key, graph, log_odds, num),
    )
    return _best(graph, torch.stack(ways))


def _best(graph: FactorGraph, candidates: Tensor) -> Tensor:
    """The best of (C, V) configurations for each problem, (V,); the first of equals."""
    leader = graph.objective(candidates).argmax(0)[graph.problem]
    return candidates.gather(0, leader[None])[0]
