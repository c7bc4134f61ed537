"""Networks of the posterior, and how sure margins make us."""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.decode import samples
from vitrail.model import SHARE_LATTICE, class_chances, iter_margins, net_chances
from vitrail.nn import Program
from vitrail.random import MAX_SEED, Key
from vitrail.solvers.sampling import posterior_samples
from vitrail.training import Examples, graph_of

NEAR = 4.0  # log-odds: a chain near a network begins with two percent of its bits flipped
SCALES = tuple(2.0 ** (k / 2) for k in range(-16, 11))  # candidates for the scale of margins
CALIBRATION_ROWS = 4096  # enough to place one number


def posterior_networks(
    program: Program,
    nets: list[Examples],
    log_odds: Tensor,
    best: Tensor,
    num: int,
    beta: float,
    seed: int,
) -> Tensor:
    """`num` networks of the posterior, (num, N, A) bool, by short chains.

    Every other chain begins at a draw from the marginals (N, A), log-odds, the others near the
    best network (N, A): marginals cover more of the posterior, the best network lies where most
    of its mass is. A net without examples is drawn from its marginals alone.
    """
    present = [number for number, examples in enumerate(nets) if len(examples.labels)]
    graph = graph_of(program, [nets[number] for number in present], beta, restarts=1)
    networks = samples(Key(seed), log_odds.flatten(), num).reshape(num, *log_odds.shape)
    near_best = torch.where(best, NEAR, -NEAR).double()
    for first, start in enumerate((log_odds, near_best)):
        mine = slice(first, None, 2)
        count = len(range(num)[mine])
        if count:
            key = Key((seed + first) % MAX_SEED)
            drawn = posterior_samples(key, graph, start[present].flatten(), count, beta=beta)
            networks[mine, present] = drawn.reshape(count, len(present), -1)
    return networks


def equal_shares(num: int, nets: int) -> Tensor:
    """Shares (num, nets) that add up to exactly 1 on their lattice; the first takes the rest."""
    shares = torch.full((num, nets), SHARE_LATTICE // num, dtype=torch.float64)
    shares[0] += SHARE_LATTICE - shares.sum(0)
    return shares / SHARE_LATTICE


def fitted_scale(program: Program, nets: list[Examples], networks: Tensor, shares: Tensor) -> float:
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
        for margins in iter_margins(program, mine, examples.inputs[::every]):
            rows = slice(first, first + len(margins))
            for number, scale in enumerate(SCALES):
                chances = class_chances(net_chances(margins, scale), share, 2, pairs=False)
                right = chances.gather(1, labels[rows, None])[:, 0]
                losses[number] -= (weight[rows] * torch.log(right.clamp(min=1e-9))).sum()
            first = rows.stop
    return SCALES[int(losses.argmin())]
