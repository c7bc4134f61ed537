"""How wide nets are and how long chains run: what rows, bits and classes leave time for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitrail.learning.examples import Examples
from vitrail.learning.held_out import BETWEEN, chains_on_parts
from vitrail.learning.posterior import LEAST_NETWORKS
from vitrail.learning.preprocessing import multilayer
from vitrail.nn import Program

WIDTHS = (63, 31, 15, 7, 3)  # odd, so that the units' vote has no tie
WIDE_FROM = 2000  # rows from which the widest pays
FEW = 64  # rows per class, below which narrower nets do as well, and more of them better
UNITS = 31 * 128  # hidden units of all networks: more networks where they are narrow
WORK = 2e10  # words looked at, about a minute on one core; wider nets than that allows are cut
COLLECTING = 0.5  # of that work at most, for more networks than the least
PROPOSAL = 64  # words that drawing and judging a proposal costs, however few its rows are
REWRITING = 2  # times the words where rows per class are few: most flips are accepted there
CHAINS = 16  # starts: what one chain does not find another does
BURN_IN = 150  # sweeps; half of them while beta rises
SHORTEST = 20  # sweeps of burn-in, however large the table


def effort(num_inputs: int, nets: Sequence[Examples], hidden: Any) -> tuple[Program, int]:
    """The net, and how many sweeps of burn-in its chains can afford."""
    rows = max(one.num_rows for one in nets)
    chains = CHAINS + chains_on_parts(rows)

    def work(width: int, sweeps: int) -> float:
        return chains * sweeps * _words(num_inputs, width, nets)

    widths = WIDTHS[3:] if _few(nets) else WIDTHS[rows < WIDE_FROM :]
    fitting = [width for width in widths if work(width, BURN_IN) <= WORK]
    layers = (fitting or widths[-1:])[:1] if isinstance(hidden, str) else tuple(hidden)
    sweeps = int(min(1.0, WORK / work(sum(layers) or 1, BURN_IN)) * BURN_IN)
    return multilayer((num_inputs,), layers, 1), max(SHORTEST, sweeps)


def _words(num_inputs: int, width: int, nets: Sequence[Examples]) -> int:
    """Words that a sweep of one chain of every net looks at."""
    times = REWRITING if _few(nets) else 1
    each = sum(max(PROPOSAL, times * -(-len(one) // 64)) for one in nets)
    return (num_inputs + 1) * width * each


def _few(nets: Sequence[Examples]) -> bool:
    """Whether rows per class are few."""
    return max(one.num_rows for one in nets) < FEW * max(2, len(nets))


def how_many(networks: int | str, program: Program, nets: Sequence[Examples]) -> int:
    """The number of networks asked for; "auto" is more of narrow ones, as far as time allows."""
    if not isinstance(networks, str):
        return networks
    (width,) = program.hidden or (1,)
    each_draw = CHAINS * BETWEEN * _words(program.num_inputs, width, nets)
    draws = min(UNITS // max(width, WIDTHS[-1]) // CHAINS, int(COLLECTING * WORK / each_draw))
    return max(LEAST_NETWORKS, draws * CHAINS)
