"""Chains of several nets: burn-in, draws, and diagnostics of mixing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vitrail import ranks
from vitrail.learning.examples import Examples
from vitrail.learning.posterior import raw_margins_of
from vitrail.learning.preprocessing import Preprocessing
from vitrail.model.voting import clipped_margins
from vitrail.nn import Program
from vitrail.random import Key
from vitrail.solvers.chains import CHECK_EVERY, Chains, Sample, warm_up
from vitrail.solvers.history import History
from vitrail.solvers.journal import Journal
from vitrail.solvers.progress import Progress
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder

SWAPS = 0.3  # share of proposals that move a threshold
SWEEPS_PER_DRAW = 2  # from one network to the next
MIXING_ROWS = 256  # at most, on which mixing is measured
LEAST_CHAINS, LEAST_DRAWS = 4, 12  # below, mixing is not assessed
MIN_EFFECTIVE_VOTES = 25  # independent undecided networks whose mean has the largest error allowed
MAX_R_HAT = 99.0  # where chains do not move


def neighbours(encoder: TableEncoder | BitColumns, bias: int) -> Tensor:
    """The next input of the same column, (I,) int64; −1 where there is none."""
    places = torch.arange(len(encoder.bit_names))
    following = torch.full((len(places) + bias,), -1)
    for span in encoder.spans:
        following[places[span][:-1]] = places[span][1:]
    if isinstance(encoder, TableEncoder):
        for code, span in zip(encoder.columns, encoder.spans, strict=True):
            if code.both and code.thresholds:  # one side of the thresholds ends, the other begins
                following[span.start + code.steps[-1]] = -1
    return following


class ChainRun:
    """Chains of several nets that burn in and then yield networks, with a history.

    starts (C, N, A): where chains begin. betas, couplings (C,): of the chains. fixed: what the
    inputs are.
    """

    def __init__(
        self,
        key: Key,
        program: Program,
        nets: Sequence[Examples],
        starts: Tensor,
        betas: Sequence[float],
        fixed: Preprocessing,
        journal: Journal | None = None,
        couplings: Sequence[float] | None = None,
    ) -> None:
        samples = [Sample(one.inputs, one.labels, one.weight) for one in nets]
        self.chains = Chains(
            key,
            samples,
            starts,
            partner=neighbours(fixed.encoder, fixed.bias),
            swaps=SWAPS,
            couplings=couplings,
            ordered=fixed.encoder.ordered if fixed.directions else (),
            world=ranks.current_world(),
            journal=journal,
        )
        self.program, self.betas, self.sweeps, self.history = program, betas, 0, History()
        self.networks: list[Tensor] = []  # (C, N, A) bool, draw by draw
        self.wrong: list[Tensor] = []  # (C, N), the weight of the examples that each gets wrong
        self.signs: list[Tensor] = []  # (rows, C, N) ±1, answers after each sweep between draws
        self._total = torch.stack([one.weight.sum() for one in nets]).clamp(min=1e-300)
        self.show: Progress | None = None

    def advance(self, sweeps: int, warm: Sequence[float], cold: Sequence[float]) -> None:
        """Run some sweeps, chain c's beta changing from warm[c] to cold[c]."""
        self.chains.advance(sweeps, warm, cold)
        self.sweeps += sweeps
        accuracy = 1 - self.chains.wrong / self._total
        self.history.add(accuracy=accuracy.mean(0), best=accuracy.amax(0))
        if self.show is not None:
            self.show(self.sweeps, accuracy.mean(0), accuracy.amax(0))

    def burn_in(self, sweeps: int, *, rising: bool = True) -> None:
        """Run without draws; rising: beta rises during the first half."""
        if rising:
            for count, warm, cold in warm_up(self.betas, sweeps):
                self.advance(count, warm, cold)
            return
        for first in range(0, sweeps, CHECK_EVERY):
            self.advance(min(CHECK_EVERY, sweeps - first), self.betas, self.betas)

    def collect(self, draws: int, rows: Tensor | None = None) -> None:
        """Draw networks of every chain, SWEEPS_PER_DRAW apart, in place of earlier ones.

        rows (R, I): on which answers are recorded after every sweep.
        """
        self.networks, self.wrong, self.signs = [self.chains.bits], [self.chains.wrong], []
        for _ in range(1, draws):
            if rows is None:
                self.advance(SWEEPS_PER_DRAW, self.betas, self.betas)
            else:
                for _ in range(SWEEPS_PER_DRAW):
                    self.advance(1, self.betas, self.betas)
                    raw = raw_margins_of(self.program, self.chains.bits, rows)
                    self.signs.append(clipped_margins(raw[..., 0], 1).to(torch.int8))
            self.networks.append(self.chains.bits)
            self.wrong.append(self.chains.wrong)


def mixing(signs: Sequence[Tensor], betas: Sequence[float]) -> dict[str, Any]:
    """R-hat and effective sample size of answers (rows, chains, N) per draw, for betas (chains,).

    `spread` is R-hat, √(V/W), W the mean variance within chains and V that of all with the same
    beta; 1 is well mixed. `effective_networks` is the effective sample size: the number of
    independent networks with the same standard error of their mean, which is `error`.
    """
    draws, chains = len(signs), len(betas)
    groups = [[at for at, one in enumerate(betas) if one == beta] for beta in sorted(set(betas))]
    if draws < 2 or min(len(group) for group in groups) < 2:
        return {"chains": chains, "draws": draws}
    answers = torch.stack(list(signs), 1).double()  # (rows, draws, chains, N)
    within = float(answers.var(1).mean())
    means = answers.mean(1)
    between = float(torch.stack([means[:, group].var(1).mean() for group in groups]).mean())
    total = within * (draws - 1) / draws + between
    share = min(1.0, total / (draws * between)) if between > 0 else 1.0
    r_hat = math.sqrt(total / within) if within > 0 else MAX_R_HAT
    return {
        "chains": chains,
        "draws": draws,
        "spread": round(min(r_hat, MAX_R_HAT), 3) if total > 0 else 1.0,
        "effective_networks": round(chains * draws * share, 1),
        "error": round(math.sqrt(total / (chains * draws * share)), 4),
    }


def mixing_warning(found: Mapping[str, Any]) -> str | None:
    """The warning about chains that do not mix, where there are enough draws."""
    known = found["draws"] >= LEAST_DRAWS and found["chains"] >= LEAST_CHAINS
    if not known or found.get("error", 0.0) ** 2 * MIN_EFFECTIVE_VOTES <= 1:
        return None
    return (
        f"the chains have not mixed: R-hat {found['spread']:.2f}, effective sample size "
        f"{found['effective_networks']:.0f} of {found['chains'] * found['draws']}; probabilities "
        "may be wrong, so check them on held-out rows"
    )
