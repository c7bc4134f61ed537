"""Decoding of marginals to bits, for each variable alone or for configurations.

Thresholding takes the more probable value of every variable. Where variables are correlated, these
values need not be compatible, so the joint decoders score configurations:

    best_of         the best of n configurations drawn from the marginals
    sequential      block by block, most polarised first, given the values fixed before
    decoded         the best of threshold, best_of and sequential

Reinforcement is stronger: `vitrail.solvers.reinforced` decodes during message passing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, lanes32, thresholds

BLOCKS = 16  # of variables, fixed by `sequential` one after another


def threshold(key: Key, log_odds: Tensor) -> Tensor:
    """The more probable value of each variable, (V,) bool; for P = ½ it is random."""
    if bool((log_odds != 0).all()):
        return log_odds > 0
    zero = torch.zeros((), dtype=torch.int64, device=log_odds.device)
    coin = lanes32(key.of(Stream.DECODE), zero, zero, log_odds.shape[0]) >= 2**31
    return torch.where(log_odds == 0, coin, log_odds > 0)


def samples(key: Key, log_odds: Tensor, num: int, round_: int = 1) -> Tensor:
    """Configurations drawn from the marginals, independently per variable: (num, V) bool."""
    checked_count("num", num, 1)
    numbers = torch.arange(num, device=log_odds.device)
    address = torch.full_like(numbers, round_)
    return bernoulli(key.of(Stream.DECODE), address, numbers, thresholds(log_odds))


def best_of(key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64) -> Tensor:
    """The best of `num` draws from the marginals for each problem, (V,) bool."""
    return _best(graph, samples(key, log_odds, num))


def sequential(key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64) -> Tensor:
    """Fix the variables in BLOCKS blocks, the most polarised first, (V,) bool.

    For each block, `num` configurations are drawn from the marginals, with fixed variables at their
    values; the block is fixed to its values in the best of them, problem by problem. Cost
    num·BLOCKS evaluations of every factor.
    """
    fixed = torch.zeros_like(log_odds, dtype=torch.bool)
    bits = threshold(key, log_odds)
    rank = log_odds.abs().argsort(descending=True)
    for number, part in enumerate(rank.chunk(max(1, min(BLOCKS, len(rank))))):
        drawn = samples(key, log_odds, num, round_=2 + number)
        drawn = torch.where(fixed, bits, drawn)
        drawn[0] = torch.where(fixed, bits, threshold(key, log_odds))
        bits[part] = _best(graph, drawn)[part]
        fixed[part] = True
    return bits


def decoded(key: Key, graph: FactorGraph, log_odds: Tensor, num: int = 64) -> Tensor:
    """The best of the three decodings for each problem, (V,) bool."""
    candidates = (
        threshold(key, log_odds),
        best_of(key, graph, log_odds, num),
        sequential(key, graph, log_odds, num),
    )
    return _best(graph, torch.stack(candidates))


def _best(graph: FactorGraph, candidates: Tensor) -> Tensor:
    """The best of configurations (C, V) for each problem, (V,); the first of equal ones."""
    leader = graph.objective(candidates).argmax(0)[graph.problem]
    return candidates.gather(0, leader[None])[0]
