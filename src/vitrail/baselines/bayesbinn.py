"""BayesBiNN: a mean-field Bernoulli posterior by natural gradient (Meng et al. 2020).

arXiv 2002.10778. Its state is one natural parameter per weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.baselines.gradient import (
    START_SCALE,
    Gradient,
    GradientSolver,
    checked_rate,
    value_at,
)
from vitrail.checks import checked_count, checked_positive
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, lanes32
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order

MIN_VARIANCE = 1e-6  # of a weight, 1 − tanh²(λ), so that certain weights can still change


@dataclass(frozen=True)
class BayesState:
    """Natural parameters λ, half the log-odds."""

    natural: Tensor  # (V,) float32
    order: Order


@dataclass(frozen=True)
class BayesBiNN(GradientSolver[BayesState]):
    """Bayesian learning rule with relaxed samples.

        w = tanh((λ + δ)/τ),   δ = ½ log(u/(1−u)),   u uniform
        λ ← (1 − lr)·λ − lr·(M·(1 − w²)/(τ·(1 − tanh²λ))·∂loss/∂w − prior/2)

    M is the weight of the problem's factors times `evidence`, τ the `temperature` of the
    relaxation; `samples` draws of w are averaged. P(w = 1) = 1/(1 + exp(−2λ)).
    """

    lr: float | Schedule
    temperature: float
    samples: int
    evidence: float

    def first_state(self, noise: Tensor, order: Order) -> BayesState:
        return BayesState((START_SCALE * noise).to(torch.float32), order)

    def signs(self, key: Key, graph: FactorGraph, state: BayesState) -> Tensor:
        return torch.tanh((state.natural + self._noise(key, graph)) / self.temperature)

    def updated(self, state: BayesState, taken: Gradient) -> BayesState:
        graph, signs = taken.graph, taken.signs
        slope = (1 - signs * signs) * taken.value / self.temperature
        variance = (1 - torch.tanh(state.natural) ** 2).clamp(min=MIN_VARIANCE)
        weight = (self.evidence * graph.weight_per_problem)[graph.problem].float()
        pull = weight * slope.sum(0) / variance - graph.log_prior.float() / 2
        rate = value_at(self.lr, taken.key.step)
        moved = (1 - rate) * state.natural - rate * pull
        return BayesState(torch.where(taken.active, moved, state.natural), taken.order)

    def _noise(self, key: Key, graph: FactorGraph) -> Tensor:
        """Logistic noise over two, (samples, V) float32."""
        which = torch.arange(self.samples, device=graph.device)
        lanes = lanes32(
            key.of(Stream.CONFIGURATION), torch.zeros_like(which), which, graph.num_variables
        )
        return (torch.logit((lanes.double() + 0.5) / 2**32) / 2).float()

    def log_odds(self, graph: FactorGraph, state: BayesState) -> Tensor:
        return 2 * state.natural.double()


def bayesbinn(
    *,
    lr: float | Schedule = 0.01,
    temperature: float = 1.0,
    samples: int = 1,
    evidence: float = 1.0,
    batch: int | None = 128,
) -> BayesBiNN:
    """BayesBiNN for any net of `vitrail.nn`, run like any solver.

    Args:
        lr: Step of the natural gradient, a number or a function of the step.
        temperature: Of the relaxation; lower is closer to bits, with noisier gradients.
        samples: Relaxed configurations per step.
        evidence: Weight of an example relative to the prior.
        batch: Examples per step in each problem; None takes all.

    Examples:
        >>> bayesbinn(lr=0.001).samples
        1
    """
    return BayesBiNN(
        Batches(batch),
        checked_rate("lr", lr),
        checked_positive("temperature", temperature),
        checked_count("samples", samples, 1),
        checked_positive("evidence", evidence),
    )
