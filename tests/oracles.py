"""Slow and obvious answers that the fast ones are held to: enumeration and closed forms."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from vitrail.factors import Factors, Network, Table, blackbox, network, perceptron, table
from vitrail.graph import FactorGraph, Scope
from vitrail.nn import Coding, mlp
from vitrail.random import thresholds


def all_states(arity: int) -> Tensor:
    """Every configuration, (2^A, A) bool."""
    return torch.tensor(list(itertools.product([False, True], repeat=arity)), dtype=torch.bool)


def potentials(factors: Factors, states: Tensor) -> Tensor:
    """Potential of every factor at configurations (S, A), (F, S)."""
    return factors.log_potential(states.expand(factors.num_factors, -1, -1)).exp()


def messages_by_definition(factors: Factors, probability: Tensor) -> tuple[Tensor, Tensor]:
    """p̃(1) and p̃(0) by summing the definition; probability is P(w=1) of the cavities, (F, A)."""
    return conditional_means(probability, potentials(factors, all_states(factors.arity)))


def conditional_means(probability: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """E[value | w_i = 1] and E[value | w_i = 0] for every i, (F, A); value is (F, 2^A)."""
    arity = probability.shape[1]
    states = all_states(arity)
    likelihood = torch.where(states, probability[:, None], 1 - probability[:, None])
    one, zero = torch.empty_like(probability), torch.empty_like(probability)
    for i in range(arity):
        others = [j for j in range(arity) if j != i]
        weighted = value * likelihood[:, :, others].prod(-1)
        one[:, i] = weighted[:, states[:, i]].sum(1)
        zero[:, i] = weighted[:, ~states[:, i]].sum(1)
    return one, zero


def marginals_by_enumeration(graph: FactorGraph) -> Tensor:
    """P(w=1) of every variable of the joint distribution, (V,) float64."""
    states = all_states(graph.num_variables)
    log_weight = states.double() @ graph.log_prior
    for block in graph.blocks:
        index = block.scope.index().expand(block.num_factors, block.arity)
        local = states[:, index].transpose(0, 1)  # (F, 2^V, A)
        log_weight += block.log_potential(local).sum(0)
    weight = torch.exp(log_weight - log_weight.max())
    return (weight @ states.double()) / weight.sum()


def quantised(log_odds: Tensor) -> Tensor:
    """The probability that a sampled update really draws with, float64."""
    return thresholds(log_odds).double() / 65536


def bernstein_bound(variance: Tensor, draws: Tensor | float, false_alarm: float) -> Tensor:
    """How far a mean of `draws` values in [0, 1] strays, except with probability `false_alarm`.

    Bernstein: P(|mean − expectation| ≥ t) ≤ 2·exp(−n·t²/(2σ² + 2t/3)). No normal approximation.
    """
    log = math.log(2 / false_alarm)
    draws = torch.as_tensor(draws, dtype=torch.float64)
    linear = log / (3 * draws)
    return linear + torch.sqrt(linear**2 + 2 * variance * log / draws)


def random_inputs(seed: int, num: int, arity: int, zeros: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randint(0, 2, (num, arity), generator=generator) * 2 - 1
    if zeros:
        inputs[torch.rand(num, arity, generator=generator) < 0.2] = 0
    return inputs


def random_labels(seed: int, num: int, classes: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randint(0, classes, (num,), generator=generator)


def random_cavity(seed: int, num: int, arity: int) -> Tensor:
    """Log-odds (F, 1, A) with probabilities from 0.01 to 0.99, both ends included when they fit."""
    generator = torch.Generator().manual_seed(seed + 2)
    probability = 0.01 + 0.98 * torch.rand(num, 1, arity, generator=generator, dtype=torch.float64)
    probability[0, 0, 0], probability[-1, 0, -1] = 0.01, 0.99
    return torch.logit(probability)


def random_perceptron(seed: int, num: int, arity: int, beta: float, coding: Coding) -> Network:
    inputs = random_inputs(seed, num, arity, zeros=True)
    return perceptron(inputs, random_labels(seed, num), beta, coding=coding)


def random_table(seed: int, num: int, arity: int, beta: float, scope: Scope | None = None) -> Table:
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(num, *(2,) * arity, generator=generator, dtype=torch.float64)
    values[values < 0.2] = 0.0
    values[(slice(None), *(0,) * arity)] = 1.0  # no row of zeros
    return table(values, scope, beta)


def random_network(
    seed: int, num: int, inputs: int, hidden: tuple[int, ...], outputs: int, beta: float
) -> Factors:
    labels = random_labels(seed, num, max(2, outputs))
    return network(mlp(inputs, hidden, outputs), random_inputs(seed, num, inputs), labels, beta)


def random_blackbox(seed: int, num: int, arity: int, beta: float) -> Factors:
    """Satisfied when the number of ones, plus the factor's number, is divisible by three."""
    return blackbox(
        lambda states, which: (states.sum(-1) + which[:, None]) % 3 == 0, num, arity, beta
    )
