"""Width of nets and length of chains, by rows, bits and classes.

Work is counted in words of 64 rows that proposals process, at about 2 ns per word on one core. It
grows with the rows of all nets, between bounds; `effort` multiplies it. With the same work, more
hidden units and fewer sweeps are about as good as the reverse, down to 40 sweeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitrail.learning.examples import Examples
from vitrail.learning.posterior import LEAST_NETWORKS
from vitrail.learning.preprocessing import multilayer
from vitrail.learning.sampling import SWEEPS_PER_DRAW
from vitrail.learning.table import EFFORTS
from vitrail.nn import Program

WIDTHS = (63, 31, 15, 7, 3)  # odd, so that the units' vote has no tie
WIDE_FROM = 2000  # rows from which the widest net is more accurate
FEW = 64  # rows per class, below which narrower nets are as accurate
UNITS = 31 * 128  # hidden units of all networks: more networks where they are narrow
WORK_PER_ROW = 4.5e5  # words per row and net
ALONE = 1.5  # times that where there is one net
LEAST_WORK = 5e8  # words, about a second of one core
MOST_WORK, NETS = 1.1e10, 10  # words at most for so many nets; more nets get more by the root
MOST_NETS = 40  # number of nets beyond which work no longer grows
COLLECTING = 0.5  # of the work at most, for more networks than the least
PROPOSAL = 24  # fixed cost of a proposal, in words
BLOCK = 8  # words that are processed together
CHAINS = 16  # random starts per net
BURN_IN = 150  # sweeps; half of them while beta rises
WIDER_FROM = 40  # sweeps that a wider net must be able to afford
SHORTEST = 20  # sweeps of burn-in, however large the table
FOLDS = 4  # of which as many are held out as the rows need
HELD_OUT_ROWS = 1000  # more rows hardly change beta and calibration
FOLD_BURN_IN = 1 / 2  # of the burn-in of chains on all rows
# per beta and fold, where rows are few: one chain may miss a mode. With more than NETS nets, as
# many as cost the same; on 24 classes one did as well as four
FOLD_CHAINS = 4
USUAL_BETAS = (2.0, 5.0, 8.0)  # the first is better on noise, the last where labels follow a rule
BETA_SETS = (USUAL_BETAS, (0.5,), (0.5, 1.0), (1.0,), (1.0, 2.0), (5.0, 8.0))
COUPLING = 1.5  # of neighbouring thresholds, a candidate with few rows: for noisy labels
UNCOUPLED_ROWS = 1000  # from which it is no candidate
CANDIDATE_BETAS = sorted({beta for one in BETA_SETS for beta in one})


@dataclass(frozen=True)
class ChainPlan:
    """Net and work of its chains."""

    program: Program
    burn_in: int  # sweeps
    networks: int  # per net
    fold_chains: int  # per beta and fold
    clip: int  # limit of margins, √units: the scale of random margins


def plan_chains(
    nets: Sequence[Examples],
    hidden: Any,
    networks: int | str = "auto",
    effort: str = "normal",
) -> ChainPlan:
    """The plan within the work that rows and nets allow.

    hidden, networks: as in `FitOptions`; "auto" is more networks of narrow nets. effort: a name of
    EFFORTS.
    """
    num_inputs = nets[0].inputs.shape[1]
    rows = max(one.num_rows for one in nets)
    few = rows < FEW * max(2, len(nets))  # rows per class
    most = EFFORTS[effort] * MOST_WORK * max(1.0, min(len(nets), MOST_NETS) / NETS) ** 0.5
    each = WORK_PER_ROW * (ALONE if len(nets) == 1 else 1)
    work = min(most, EFFORTS[effort] * max(LEAST_WORK, each * sum(map(len, nets))))
    # words that a sweep of one chain of every net processes, per hidden unit
    words = (num_inputs + 1) * sum(PROPOSAL + BLOCK * -(-len(one) // (64 * BLOCK)) for one in nets)
    # chains on all rows, and those on the folds as so many that cost as much
    chains = CHAINS + FOLD_BURN_IN * len(CANDIDATE_BETAS) * num_folds(rows)
    if isinstance(hidden, str):
        widths = WIDTHS[3:] if few else WIDTHS[rows < WIDE_FROM :]
        wide = [width for width in widths if int(work / (chains * words * width)) >= WIDER_FROM]
        layers = ((wide or widths[-1:])[0],)
    else:
        layers = tuple(hidden)
    units = sum(layers) or 1
    longest, sweeps = (int(limit / (chains * words * units)) for limit in (most, work))
    least = max(SHORTEST, min(WIDER_FROM, longest))
    if isinstance(networks, str):
        affordable = int(COLLECTING * work / (CHAINS * SWEEPS_PER_DRAW * words * units))
        draws = min(UNITS // max(units, WIDTHS[-1]) // CHAINS, affordable)
        networks = max(LEAST_NETWORKS, draws * CHAINS)
    program = multilayer((num_inputs,), layers, 1)
    burn_in = min(BURN_IN, max(least, sweeps))
    clip = 2 * math.isqrt(layers[0] if layers else num_inputs) + 1
    fold_chains = max(1, FOLD_CHAINS * NETS // max(NETS, len(nets))) if few else 1
    return ChainPlan(program, burn_in, networks, fold_chains, clip)


def couplings_tried(rows: int, neighbours: bool) -> tuple[float, ...]:
    """The couplings among which held-out rows select; neighbours: whether any inputs have them."""
    return (0.0, COUPLING) if neighbours and rows < UNCOUPLED_ROWS else (0.0,)


def num_folds(rows: int) -> int:
    """The number of folds that are held out."""
    return max(1, min(FOLDS, -(-HELD_OUT_ROWS * FOLDS // max(1, rows))))
