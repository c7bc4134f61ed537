"""The Bethe approximation: log Z, energy, entropy and factor marginals from messages.

    b_I(w) ∝ f_I(w)·Π_i exp(cavity_i·w_i),      b_i = sigmoid(belief_i)
    U = −Σ_I Σ_w b_I·log f_I − Σ_i b_i·log_prior_i
    S = Σ_I H(b_I) + Σ_i (1 − d_i)·H(b_i),      log Z = S − U

where d_i is the number of factors of variable i (Yedidia, Freeman and Weiss 2005). Exact on trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.brief import brief
from vitrail.factors import Factors
from vitrail.factors.table import decode, log_potentials
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.bp import BPState
from vitrail.updates import exact

MAX_SWEEPS = 100  # of the messages in float64
TOLERANCE = 1e-12  # log-odds; smaller changes count as converged


@dataclass(frozen=True)
class BetheEstimate:
    """The Bethe approximation for V variables and P problems, in nats."""

    log_z: Tensor  # (P,) float64, minus the Bethe free energy at temperature 1
    energy: Tensor  # (P,) float64, the mean energy
    entropy: Tensor  # (P,) float64
    marginals: Tensor  # (V,) float64, P(w = 1)
    factor_marginals: tuple[Tensor, ...]  # (F, 2^A) float64 per block, variable j being bit j
    residual: float  # largest change of a message in the last sweep, log-odds

    def __repr__(self) -> str:
        return brief(self, **vars(self))


def bethe(graph: FactorGraph, state: BPState) -> BetheEstimate:
    """The Bethe free energy and its parts at the messages of belief propagation.

    A solver's messages are rounded, so undamped exact sweeps in float64 first refine them, as long
    as each sweep brings them closer to a fixed point. The random prior that breaks symmetry is
    left out.

    Args:
        graph: Factors of at most 20 variables each, on one rank.
        state: Messages, `solution.state` of `belief_propagation`.

    Returns:
        log Z, energy, entropy and marginals; on trees they equal those of `eliminate`.

    Examples:
        >>> from vitrail import belief_propagation, factor_graph, run, table
        >>> from vitrail.updates import exact
        >>> graph = factor_graph(table(torch.tensor([[2.0, 1.0, 1.0, 2.0]])))
        >>> solution = run(belief_propagation(exact(), damping=0.0), graph)
        >>> round(float(bethe(graph, solution.state).log_z.exp()), 6)
        6.0
    """
    messages, residual = _refine(graph, [message.double() for message in state.messages])
    belief = graph.log_prior + graph.total(messages)
    marginals = torch.sigmoid(belief)
    energies, entropies, joints = [], [], []
    degree = torch.zeros_like(belief)
    for block, message in zip(graph.blocks, messages, strict=True):
        joint, logs = _joint(block, block.scope.gather(belief) - message)
        joints.append(joint)
        energies.append(-torch.where(joint > 0, joint * logs, 0.0).sum(1))
        entropies.append(-torch.xlogy(joint, joint).sum(1))
        degree += block.scope.total(torch.ones_like(message), graph.num_variables)
    other = 1 - marginals
    of_variables = -(torch.xlogy(marginals, marginals) + torch.xlogy(other, other))
    entropy = graph.per_problem(entropies) + graph.over_variables((1 - degree) * of_variables)
    energy = graph.per_problem(energies) - graph.over_variables(marginals * graph.log_prior)
    return BetheEstimate(entropy - energy, energy, entropy, marginals, tuple(joints), residual)


def _joint(block: Factors, cavity: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities of all configurations of the factors, and their log potentials, (F, 2^A)."""
    logs = log_potentials(block)
    states = decode(torch.arange(logs.shape[1], device=logs.device), block.arity)
    return torch.softmax(logs + cavity @ states.double().T, 1), logs


def _refine(graph: FactorGraph, messages: list[Tensor]) -> tuple[list[Tensor], float]:
    """Messages after sweeps in float64 that bring them closer to a fixed point."""
    update, key = exact(), Key(0)
    best, residual = messages, torch.inf
    for _ in range(MAX_SWEEPS):
        belief = graph.log_prior + graph.total(messages)
        swept = [
            update.messages(key, block, belief, message).log_odds
            for block, message in zip(graph.blocks, messages, strict=True)
        ]
        pairs = zip(swept, messages, strict=True)
        change = max(float((new - old).abs().max()) for new, old in pairs)
        if change >= residual:
            break
        best, messages, residual = swept, swept, change
        if change < TOLERANCE:
            break
    return best, residual
