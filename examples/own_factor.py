"""Your own factor and your own solver: one of three, walked and passed.

    python examples/own_factor.py

A factor is any function of bits. Here each wants exactly one of its three variables to be on. A
solver is an `init` and a `step` under the same loop as all others: the walk below picks a violated
factor and flips one of its variables.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail import FactorGraph, belief_propagation, blackbox, factor_graph, run
from vitrail.graph import Indexed
from vitrail.random import Key
from vitrail.solvers import Solver, linear, reinforced
from vitrail.solvers.base import Feedback, Info
from vitrail.updates import exact

VARIABLES, FACTORS = 60, 30
draw = torch.Generator().manual_seed(0)
seen = torch.stack([torch.randperm(VARIABLES, generator=draw)[:3] for _ in range(FACTORS)])


def one_of_three(states: Tensor, which: Tensor) -> Tensor:
    """Configurations (F, S, 3) → whether exactly one is on, (F, S)."""
    return states.sum(-1) == 1


graph = factor_graph(
    blackbox(one_of_three, FACTORS, 3, scope=Indexed(seen)), num_variables=VARIABLES
)


@dataclass(frozen=True)
class Walk(Solver[Tensor]):
    """Flip a variable of a violated factor; the state is the configuration, (V,) bool."""

    def init(self, key: Key, graph: FactorGraph) -> Tensor:
        return torch.zeros(graph.num_variables, dtype=torch.bool)

    def step(
        self, key: Key, graph: FactorGraph, state: Tensor, feedback: Feedback
    ) -> tuple[Tensor, Info]:
        violated = (state[seen].sum(-1) != 1).nonzero()[:, 0]
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
    "reinforced belief propagation": reinforced(belief_propagation(exact()), linear(0.02)),
}.items():
    solution = run(solver, graph, seed=1, max_steps=2000)
    satisfied = round(float(solution.best_accuracy) * FACTORS)
    print(f"{name}: {satisfied} of {FACTORS} satisfied after {solution.steps} steps")
