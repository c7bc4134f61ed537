"""BayesBiNN: a mean-field Bernoulli posterior by natural gradient (Meng et al. 2020).

arXiv 2002.10778. Where belief propagation keeps a message per factor and weight, this keeps one
natural parameter per weight and follows the gradient of the expected loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.baselines.gradient import (
    Loss,
    at,
    batch_loss,
    check_graph,
    checked_choice,
    checked_positive,
    checked_rate,
    settled,
)
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, lanes32, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order
from vitrail.updates.base import checked_count

START_SCALE = 0.1  # spread of the first natural parameters: near P(w = 1) = ½
LEAST_VARIANCE = 1e-6  # of a weight, 1 − tanh²(λ), so that a settled one can still be moved


@dataclass(frozen=True)
class BayesState:
    """Natural parameters λ, half the log-odds."""

    natural: Tensor  # (V,) float32
    order: Order


@dataclass(frozen=True)
class BayesBiNN(Solver[BayesState]):
    """Bayesian learning rule with relaxed samples.

        w = tanh((λ + δ)/τ),   δ = ½ log(u/(1−u)),   u uniform, one of our counter-based draws
        λ ← (1 − lr)·λ − lr·(M·(1 − w²)/(τ·(1 − tanh²λ))·∂loss/∂w − prior/2)

    M is the weight of the problem's factors, `samples` draws of w are averaged. λ decides:
    P(w = 1) = 1/(1 + exp(−2λ)). `temperature` τ is that of the relaxation; `evidence` scales M.
    """

    lr: float | Schedule
    temperature: float
    samples: int
    evidence: float
    batches: Batches
    loss: Loss

    def init(self, key: Key, graph: FactorGraph) -> BayesState:
        check_graph(graph)
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        return BayesState((START_SCALE * noise).to(torch.float32), self.batches.start(graph))

    def step(
        self, key: Key, graph: FactorGraph, state: BayesState, feedback: Feedback
    ) -> tuple[BayesState, Info]:
        selected, order = self.batches.select(key, graph, state.order, feedback)
        signs = torch.tanh((state.natural + self._noise(key, graph)) / self.temperature)
        with torch.enable_grad():
            signs = signs.requires_grad_()
            loss, evaluations = batch_loss(graph, selected, (signs + 1) / 2, self.loss)
            (gradient,) = torch.autograd.grad(loss, signs)
        signs = signs.detach()
        slope = (1 - signs * signs) * gradient / self.temperature
        variance = (1 - torch.tanh(state.natural) ** 2).clamp(min=LEAST_VARIANCE)
        weight = (self.evidence * graph.weight_per_problem)[graph.problem].float()
        pull = weight * slope.sum(0) / variance - graph.log_prior.float() / 2
        rate = at(self.lr, key.step)
        moved = (1 - rate) * state.natural - rate * pull
        after = torch.where(feedback.active[graph.problem], moved, state.natural)
        residual = settled(graph, 2 * state.natural, 2 * after)
        info = Info(residual, evaluations, torch.zeros_like(residual, dtype=torch.bool))
        return BayesState(after, order), info

    def _noise(self, key: Key, graph: FactorGraph) -> Tensor:
        """Logistic noise over two, (samples, V) float32."""
        which = torch.arange(self.samples, device=graph.device)
        lanes = lanes32(
            key.of(Stream.CONFIGURATION), torch.zeros_like(which), which, graph.num_variables
        )
        return (torch.logit((lanes.double() + 0.5) / 2**32) / 2).float()

    def log_odds(self, graph: FactorGraph, state: BayesState) -> Tensor:
        return 2 * state.natural.double()

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


def bayesbinn(
    *,
    lr: float | Schedule = 0.01,
    temperature: float = 1.0,
    samples: int = 1,
    evidence: float = 1.0,
    batch: int | None = 128,
    loss: Loss = "hinge",
) -> BayesBiNN:
    """BayesBiNN for any net of `vitrail.nn`, run like any solver.

    Args:
        lr: Step of the natural gradient, a number or a function of the step.
        temperature: Of the relaxation of samples; low is nearer to bits, with noisier gradients.
        samples: Relaxed configurations a step.
        evidence: How much each example counts against the prior.
        batch: Examples a step in each problem; None takes all.
        loss: "hinge" or "logistic" (cross-entropy), of the margin in units of √inputs.

    Returns:
        The solver, for `run`.

    Examples:
        >>> bayesbinn(lr=0.001).samples
        1
    """
    checked_choice("loss", loss, Loss)
    return BayesBiNN(
        checked_rate("lr", lr),
        checked_positive("temperature", temperature),
        checked_count("samples", samples, 1),
        checked_positive("evidence", evidence),
        Batches(batch),
        loss,
    )
