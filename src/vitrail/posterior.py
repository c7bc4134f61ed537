"""Networks drawn from the marginals, how much each counts, and how sure margins make us."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitrail.model import SHARE_LATTICE, class_chances, iter_margins, net_chances
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.solvers import Feedback
from vitrail.solvers.polish import polish
from vitrail.training import Examples, graph_of

SCALES = tuple(2.0 ** (k / 2) for k in range(-16, 7))  # candidates for the scale of margins
EVIDENCE = 100.0  # one percent of the examples is worth a factor of e at the most
FLIPS_PER_WEIGHT = 20  # proposals of a network's local search
CALIBRATION_ROWS = 4096  # enough to place one number


def sampled_networks(log_odds: Tensor, num: int, seed: int) -> Tensor:
    """`num` configurations drawn from marginals (R, N, A) log-odds, R in turn: (num, N, A) bool."""
    starts, nets, weights = log_odds.shape
    which = torch.arange(num)
    chances = thresholds(log_odds).reshape(starts, nets * weights)[which % starts]
    drawn = bernoulli(Key(seed).of(Stream.DECODE), which, torch.ones_like(which), chances)
    return drawn.reshape(num, nets, weights)


def refined(module: nn.Module, nets: list[Examples], networks: Tensor, seed: int) -> Tensor:
    """Each of the networks (K, N, A) after a short local search of its own, (K, N, A) bool.

    Marginals forget how bits depend on each other: a network drawn from them bit by bit is near
    good ones but seldom good. A search of a few flips a weight mends that, and because starts and
    flips differ, what comes out differs wherever the examples leave a choice.
    """
    present = [number for number, examples in enumerate(nets) if len(examples.labels)]
    graph = graph_of(module, [nets[number] for number in present], beta=1.0, restarts=1)
    count, _, weights = networks.shape
    search = polish(FLIPS_PER_WEIGHT * weights * count, chains=count)
    key, everywhere = Key(seed), torch.ones(len(present), dtype=torch.bool)
    state = search.start(key, graph, networks[:, present].flatten(1))
    feedback = Feedback(torch.zeros(len(present), dtype=torch.float64), everywhere)
    state, _ = search.step(key, graph, state, feedback)
    found = networks.clone()
    found[:, present] = state.bits.reshape(count, len(present), weights)
    return found


def likelihood_shares(
    module: nn.Module, nets: list[Examples], networks: Tensor, beta: float
) -> Tensor:
    """Share of each network, ∝ exp(strength·satisfied weight): (K, N) float64.

    strength = min(beta, EVIDENCE / weight of all examples): the posterior for few examples; for
    many a flatter one, because networks from message passing are too few to be a fair sample of
    it and the single best would count alone. Shares lie on the lattice and add up to exactly 1.
    Networks count alike for a net without examples.
    """
    log_likelihood = torch.zeros(networks.shape[:2], dtype=torch.float64)
    present = [number for number, examples in enumerate(nets) if len(examples.labels)]
    graph = graph_of(module, [nets[number] for number in present], beta, restarts=1)
    strength = torch.minimum(torch.tensor(beta), EVIDENCE / graph.weight_per_problem())
    log_likelihood[:, present] = strength * graph.satisfied(networks[:, present].flatten(1))
    shares = torch.softmax(log_likelihood, 0)
    whole = torch.floor(shares * SHARE_LATTICE)
    whole[shares.argmax(0), torch.arange(shares.shape[1])] += SHARE_LATTICE - whole.sum(0)
    return whole / SHARE_LATTICE


def fitted_scale(
    module: nn.Module, nets: list[Examples], networks: Tensor, shares: Tensor
) -> float:
    """The scale of margins under which the training labels are likeliest, of a grid.

    With a net per pair the chances of the pairs are fitted, each on its own examples.
    """
    losses = torch.zeros(len(SCALES), dtype=torch.float64)
    for net, examples in enumerate(nets):
        if not len(examples.labels):
            continue
        every = -(-len(examples.labels) // CALIBRATION_ROWS)
        labels, weight = examples.labels[::every], examples.weight[::every]
        mine, share, first = networks[:, net : net + 1], shares[:, net : net + 1], 0
        for margins in iter_margins(module, mine, examples.inputs[::every]):
            rows = slice(first, first + len(margins))
            for number, scale in enumerate(SCALES):
                chances = class_chances(net_chances(margins, scale), share, 2, pairs=False)
                right = chances.gather(1, labels[rows, None])[:, 0]
                losses[number] -= (weight[rows] * torch.log(right.clamp(min=1e-9))).sum()
            first = rows.stop
    return SCALES[int(losses.argmin())]
