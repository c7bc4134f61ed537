"""How wide nets are and how long chains run: what rows, bits and classes leave time for.

Work is counted in words of 64 rows that proposals process, at about 2 ns per word on one core. It
grows with the rows of all nets, between bounds; `effort` multiplies it. With the same work, more
hidden units and fewer sweeps are about as good as the reverse, down to 40 sweeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitrail.learning.examples import Examples
from vitrail.learning.held_out import SWEEPS_PER_DRAW, equivalent_chains
from vitrail.learning.posterior import LEAST_NETWORKS
from vitrail.learning.preprocessing import multilayer
from vitrail.learning.table import EFFORTS
from vitrail.nn import Program

WIDTHS = (63, 31, 15, 7, 3)  # odd, so that the units' vote has no tie
WIDE_FROM = 2000  # rows from which the widest pays
FEW = 64  # rows per class, below which narrower nets do as well, and more of them better
UNITS = 31 * 128  # hidden units of all networks: more networks where they are narrow
WORK_PER_ROW = 4.5e5  # words per row and net
LEAST_WORK = 5e8  # words, about a second of one core
MOST_WORK, NETS = 1.1e10, 10  # words at most for so many nets; more nets get more by the root
COLLECTING = 0.5  # of the work at most, for more networks than the least
PROPOSAL = 24  # words that drawing and judging a proposal costs, however few its rows are
BLOCK = 8  # words that are processed together
CHAINS = 16  # starts: what one chain does not find another does
BURN_IN = 150  # sweeps; half of them while beta rises
WIDER_FROM = 40  # sweeps that a wider net must be able to afford
SHORTEST = 20  # sweeps of burn-in, however large the table


class Effort:
    """The work that chains on these nets may take.

    num_inputs: of a net. nets: their examples. effort: a name of EFFORTS.
    """

    def __init__(self, num_inputs: int, nets: Sequence[Examples], effort: str = "normal") -> None:
        self.num_inputs, self.nets = num_inputs, nets
        self.rows = max(one.num_rows for one in nets)
        self.few = self.rows < FEW * max(2, len(nets))  # rows per class
        self.most = EFFORTS[effort] * MOST_WORK * max(1.0, len(nets) / NETS) ** 0.5
        work = max(LEAST_WORK, WORK_PER_ROW * sum(map(len, nets)))
        self.work = min(self.most, EFFORTS[effort] * work)

    def plan(self, hidden: Any) -> tuple[Program, int]:
        """The net, and how many sweeps of burn-in its chains can afford."""
        chains = CHAINS + equivalent_chains(self.rows)

        def sweeps(width: int, work: float = self.work) -> int:
            return int(work / (chains * self._words(width)))

        layers = tuple(hidden) if not isinstance(hidden, str) else ()
        if isinstance(hidden, str):
            widths = WIDTHS[3:] if self.few else WIDTHS[self.rows < WIDE_FROM :]
            wide = [width for width in widths if sweeps(width) >= WIDER_FROM]
            layers = tuple((wide or widths[-1:])[:1])
        units = sum(layers) or 1
        least = max(SHORTEST, min(WIDER_FROM, sweeps(units, self.most)))
        return multilayer((self.num_inputs,), layers, 1), min(BURN_IN, max(least, sweeps(units)))

    def num_networks(self, networks: int | str, program: Program) -> int:
        """The number of networks asked for; "auto" is more of narrow ones, as time allows."""
        if not isinstance(networks, str):
            return networks
        (width,) = program.hidden or (1,)
        each_draw = CHAINS * SWEEPS_PER_DRAW * self._words(width)
        affordable = int(COLLECTING * self.work / each_draw)
        draws = min(UNITS // max(width, WIDTHS[-1]) // CHAINS, affordable)
        return max(LEAST_NETWORKS, draws * CHAINS)

    def _words(self, width: int) -> int:
        """Words that a sweep of one chain of every net processes."""
        each = sum(PROPOSAL + BLOCK * -(-len(one) // (64 * BLOCK)) for one in self.nets)
        return (self.num_inputs + 1) * width * each
