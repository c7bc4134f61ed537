"""Configurations drawn from the posterior, including correlations between weights.

Independent draws from the marginals of Π potential_I(w) miss these correlations. A short Metropolis
chain starts at each such draw and flips single weights with probability min(1, exp(−beta·ΔE)),
where E is the unsatisfied weight. beta rises from `WARM_BETA` to its final value in the first half.
"""

from __future__ import annotations

import math

from torch import Tensor

from vitrail import interrupts
from vitrail.checks import checked_count
from vitrail.decode import samples
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.flip_search import Energy, Segment, flip_searches

WARM_BETA = 0.5  # initial beta: about half of the flips that violate a factor are accepted
MAX_BETA = 20.0  # used for hard factors: one in 5·10⁸ flips that violate one is accepted


def posterior_samples(
    key: Key,
    graph: FactorGraph,
    log_odds: Tensor,
    num: int,
    *,
    beta: float,
    sweeps: int = 20,
) -> Tensor:
    """`num` configurations (num, V) bool from chains started at the marginals (V,), log-odds.

    beta: inverse temperature per unit of weight; inf for hard factors. sweeps: proposals per
    weight. Cost: num·sweeps·V flips, compiled for networks of this package's layers. The graph's
    own beta and prior are not used.
    """
    checked_count("sweeps", sweeps, 1)
    if not beta > 0:
        raise ValueError(f"beta must be positive (math.inf for hard factors), got {beta}")
    cold = min(beta, MAX_BETA)
    bits = samples(key, log_odds, num)
    weight = graph.per_problem([block.weight.square() for block in graph.blocks]).sqrt()
    for search in flip_searches(graph):
        mine, unit = search.variables, float(weight[search.number])
        proposals = math.ceil(sweeps * len(mine) / 2)
        for half, warm in enumerate((min(WARM_BETA, cold), cold)):
            energy = Energy(0.0, 0.0, 1 / (warm * unit), 1 / (cold * unit))
            segment = Segment(energy, proposals, stop=False)
            bits[:, mine] = search.run(key.at(half), bits[:, mine], segment).last
            interrupts.check()
    return bits
