"""Your own factor and your own solver: a puzzle of parities, walked and passed.

    python examples/own_factor.py

A factor is any function of bits. Here each wants three of 60 variables to have an odd sum. A
solver is an `init` and a `step` under the same loop as all others: the walk below picks a violated
factor and flips one of its variables.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail import FactorGraph, belief_propagation, blackbox, factor_graph, run
from vitrail.graph import SparseScope
from vitrail.random import Key
from vitrail.solvers import Solver
from vitrail.solvers.base import Feedback, Info
from vitrail.updates import exact

VARIABLES, FACTORS = 60, 36
draw = torch.Generator().manual_seed(0)
seen = torch.stack([torch.randperm(VARIABLES, generator=draw)[:3] for _ in range(FACTORS)])


def odd(states: Tensor, which: Tensor) -> Tensor:
    """Configurations (F, S, 3) → whether each has an odd sum, (F, S)."""
    return states.sum(-1) % 2 == 1


graph = factor_graph(blackbox(odd, FACTORS, 3, scope=SparseScope(seen)), num_variables=VARIABLES)


@dataclass(frozen=True)
class Walk(Solver[Tensor]):
    """Flip a variable of a violated factor; the state is the configuration, (V,) bool."""

    def init(self, key: Key, graph: FactorGraph) -> Tensor:
        return torch.zeros(graph.num_variables, dtype=torch.bool)

    def step(
        self, key: Key, graph: FactorGraph, state: Tensor, feedback: Feedback
    ) -> tuple[Tensor, Info]:
        violated = (state[seen].sum(-1) % 2 == 0).nonzero()[:, 0]
        flipped = state.clone()
        if len(violated):
            lot = torch.Generator().manual_seed(1000 * key.seed + key.step)
            factor = violated[torch.randint(len(violated), (1,), generator=lot)]
            place = torch.randint(3, (1,), generator=lot)
            flipped[seen[factor, place]] ^= True
        moved = torch.full_like(feedback.accuracy, float(len(violated) > 0))
        return flipped, Info(moved, FACTORS, torch.zeros_like(feedback.active))

    def log_odds(self, graph: FactorGraph, state: Tensor) -> Tensor:
        return state.double() * 2 - 1


for name, solver in {
    "a walk": Walk(),
    "belief propagation": belief_propagation(exact(), damping=0.3),
}.items():
    solution = run(solver, graph, seed=1, max_steps=2000)
    satisfied = round(float(solution.best_accuracy) * FACTORS)
    print(f"{name}: {satisfied} of {FACTORS} parities after {solution.steps} steps")
