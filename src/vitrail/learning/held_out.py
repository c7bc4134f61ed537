"""Chains on folds: scores of held-out rows, which select beta and calibrate probabilities.

Rows are divided into four stratified folds. For each fold, chains run on the other rows, one per
candidate beta, and score the fold. Of the sets of betas, the one with the lowest log-loss on these
rows is taken, but only where it is clearly better than the usual one: with noisy labels, a high
beta fits the noise. The calibration curve is fitted to the same rows. With many rows one fold is
enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail import ranks
from vitrail.learning.examples import nets_of
from vitrail.learning.folds import stratified_folds
from vitrail.learning.posterior import CALIBRATION_ROWS, TrainingData, clip_of, leads_of
from vitrail.model.calibration import Evidence, calibrate
from vitrail.nn import Program
from vitrail.random import Key
from vitrail.solvers.chains import Chains, Sample, random_starts, warming
from vitrail.solvers.journal import Journal
from vitrail.solvers.progress import Progress

PARTS = 4
ENOUGH_ROWS = 2000  # judged; further parts would say little more
USUAL = (2.0, 5.0, 8.0)  # the first is better on noise, the last where labels follow a rule
OTHERS = ((1.0,), (1.0, 2.0), (5.0, 8.0))
SHORTER = 1 / 2  # of the burn-in of chains on all rows
DRAWS = 8  # networks of a chain
BETWEEN = 4  # sweeps from one network to the next
SWAPS = 0.3  # share of proposals that move a threshold
HELD_OUT_STEP = 2**30  # number of the step: no chain on all rows has these draws
STANDARD_ERRORS = 0.5  # by which others must be better than the usual


@dataclass(frozen=True)
class HeldOut:
    """What was learned from held-out rows."""

    betas: tuple[float, ...]  # for the chains on all rows
    evidence: Evidence  # of chains with these betas
    losses: Tensor  # (rows,) float64, −log of the probability of each label
    networks: Tensor  # (folds, K, N, A) bool, those that were asked

    @property
    def log_loss(self) -> float:
        weight = self.evidence.weight / self.evidence.weight.sum()
        return float((weight * self.losses).sum())


class Parts:
    """Chains on all rows but a part; `bits` is of use even where `judge` was interrupted."""

    def __init__(
        self,
        data: TrainingData,
        program: Program,
        partner: Tensor,
        betas: Sequence[float] | None,
        seed: int,
        journal: Journal | None = None,
    ) -> None:
        self._data, self._program, self._clip = data, program, clip_of(program)
        self._sets = (USUAL, *OTHERS) if betas is None else (tuple(betas),)
        # the usual ones run even where others are given: what is given by its usual value is equal
        self.betas = sorted({beta for one in (USUAL, *OTHERS, *self._sets) for beta in one})
        examples = data.examples
        share = stratified_folds(examples, PARTS, seed)
        self._held = share[: _parts(examples.num_rows)]
        nets = [
            one
            for held in self._held
            for one in nets_of(examples.share(1 - held), data.num_classes, data.scheme)
        ]
        key = Key(seed, HELD_OUT_STEP)
        starts = random_starts(key, len(self.betas), len(nets), program.num_bits)
        self._total = torch.stack([one.weight.sum() for one in nets]).clamp(min=1e-300)
        samples = [Sample(one.inputs, one.labels, one.weight) for one in nets]
        self._chains = Chains(
            key,
            samples,
            starts,
            partner=partner,
            swaps=SWAPS,
            world=ranks.here(),
            journal=journal,
        )
        self.moved = False

    @property
    def bits(self) -> Tensor:
        """Where the chains are, (betas·parts, N, A) bool, each having seen most rows."""
        bits = self._chains.bits
        return bits.unflatten(1, (len(self._held), -1)).flatten(0, 1)

    def sweeps(self, burn_in: int) -> int:
        """How many sweeps `judge` takes."""
        return int(SHORTER * burn_in) + BETWEEN * (DRAWS - 1)

    def judge(self, burn_in: int, show: Progress) -> HeldOut:
        """Run the chains, and ask them about the rows that they have not seen."""
        done = 0

        def go(sweeps: int, warm: Sequence[float], cold: Sequence[float]) -> None:
            nonlocal done
            self._chains.advance(sweeps, warm, cold)
            self.moved, done = True, done + sweeps
            right = 1 - self._chains.wrong / self._total
            show(done, right, right.amax(0))

        for sweeps, warm, cold in warming(self.betas, int(SHORTER * burn_in)):
            go(sweeps, warm, cold)
        drawn = [self._chains.bits]
        for _ in range(1, DRAWS):
            go(BETWEEN, self.betas, self.betas)
            drawn.append(self._chains.bits)
        networks = torch.stack(drawn).unflatten(2, (len(self._held), -1))  # (D, B, parts, N, A)
        said = [self._asked(networks[:, :, at], held) for at, held in enumerate(self._held)]
        lead, labels, weight = (torch.cat(parts) for parts in zip(*said, strict=True))
        evidence = Evidence(lead, labels, weight)
        found = [self._of(evidence, networks, betas) for betas in self._sets]
        best, gained = found[0], 0.0
        for one in found[1:]:
            gain = found[0].losses - one.losses
            error = (evidence.weight * gain.square()).sum().sqrt()
            bound = float((evidence.weight * gain).sum() - STANDARD_ERRORS * error)
            if bound > gained:
                best, gained = one, bound
        return best

    def _asked(self, networks: Tensor, held: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Leads (rows, D·B, N, O) of networks (D, B, N, A) on a part, its labels and weights."""
        most = CALIBRATION_ROWS // len(self._held)
        rows = self._data.examples.share(held)
        rows = rows.where(torch.arange(0, len(rows), max(1, -(-len(rows) // most))))
        lead = leads_of(self._program, networks.flatten(0, 1), rows.inputs)
        return lead, rows.labels, rows.weight

    def _of(self, evidence: Evidence, networks: Tensor, betas: tuple[float, ...]) -> HeldOut:
        chosen = torch.tensor([beta in betas for beta in self.betas]).repeat(DRAWS)
        mine = replace(evidence, leads=evidence.leads[:, chosen])
        asked = networks.flatten(0, 1)[chosen].transpose(0, 1)
        return HeldOut(betas, mine, self._losses(mine), asked)

    def _losses(self, evidence: Evidence) -> Tensor:
        """−log of the probability of each row's label, (rows,) float64."""
        classes, scheme = self._data.num_classes, self._data.scheme
        table = calibrate(evidence, classes, scheme, clip=self._clip).table
        probability = evidence.probabilities(self._clip, table, classes, scheme)
        own = probability.gather(1, evidence.labels[:, None])[:, 0].double()
        return -(own / probability.sum(1)).clamp(min=1e-3).log()


def enough(data: TrainingData) -> bool:
    """Whether there are rows to hold out."""
    return data.examples.num_rows >= 2 * PARTS


def chains_on_parts(rows: int) -> float:
    """How many chains on all rows would cost as much as those on parts of so many rows."""
    ladder = {beta for one in (USUAL, *OTHERS) for beta in one}
    return SHORTER * len(ladder) * _parts(rows)


def _parts(rows: int) -> int:
    """The number of parts that are judged."""
    return max(1, min(PARTS, -(-ENOUGH_ROWS * PARTS // max(1, rows))))
