"""Chains on folds: scores of held-out rows, which select beta and calibrate probabilities.

Rows are divided into four stratified folds. For each fold, chains run on the other rows and score
the fold: one chain per candidate beta, several where rows are few. With few rows, chains whose
prior couples neighbouring thresholds run too. Of the settings, the one with the lowest log-loss on
these rows is taken, but only where it is better than the usual one: with noisy labels, a high beta
fits the noise, and so do thresholds that are independent of their neighbours. The calibration
curve is fitted to the same rows. With many rows one fold is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from vitrail.learning.effort import (
    BETA_SETS,
    CANDIDATE_BETAS,
    FOLD_BURN_IN,
    FOLDS,
    USUAL_BETAS,
    ChainPlan,
    couplings_tried,
    num_folds,
)
from vitrail.learning.examples import nets_of, stratified_folds, with_rare_raised
from vitrail.learning.posterior import CALIBRATION_ROWS, TrainingData, raw_margins_of
from vitrail.learning.sampling import SWEEPS_PER_DRAW, ChainRun, neighbours
from vitrail.model.calibration import Evidence, calibrate
from vitrail.random import Key
from vitrail.solvers.chains import random_starts
from vitrail.solvers.journal import Journal
from vitrail.solvers.progress import Progress

DRAWS = 16  # networks per beta and fold, of all its chains
FOLD_STEP = 2**30  # number of the step: no chain on all rows has these draws
STANDARD_ERRORS = 0.5  # by which others must be better than USUAL_BETAS


@dataclass(frozen=True)
class HeldOut:
    """Settings and scores from held-out rows."""

    betas: tuple[float, ...]  # for the chains on all rows
    coupling: float  # likewise
    evidence: Evidence  # of chains with these betas
    losses: Tensor  # (rows,) float64, −log of the probability of each label
    networks: Tensor  # (folds, K, N, A) bool, those that scored the rows


class FoldChains:
    """Chains on all rows but a fold; `networks` are valid even where `score` was interrupted."""

    def __init__(
        self,
        data: TrainingData,
        plan: ChainPlan,
        betas: Sequence[float] | None,
        seed: int,
        journal: Journal | None = None,
    ) -> None:
        """betas: of the chains on all rows; None selects them."""
        self._data, self._clip, program = data, plan.clip, plan.program
        self._draws, self._burn_in = DRAWS // plan.fold_chains, int(FOLD_BURN_IN * plan.burn_in)
        self.sweeps = self._burn_in + SWEEPS_PER_DRAW * (self._draws - 1)  # that `score` takes
        examples, fixed = data.examples, data.preprocessing
        coupled = bool((neighbours(fixed.encoder, fixed.bias) >= 0).any())
        couplings = couplings_tried(examples.num_rows, coupled)
        sets = BETA_SETS if betas is None else (tuple(betas),)
        self._sets = list(product(couplings, sets))
        # the usual ones run even where others are given: what is given by its usual value is equal
        tried = sorted({*CANDIDATE_BETAS, *(beta for one in sets for beta in one)})
        self.betas = tried * plan.fold_chains * len(couplings)
        self.couplings = [one for one in couplings for _ in range(len(tried) * plan.fold_chains)]
        self._folds = stratified_folds(examples, FOLDS, seed)[: num_folds(examples.num_rows)]
        nets = [
            with_rare_raised(one, fixed.scheme)
            for held in self._folds
            for one in nets_of(examples.share(1 - held), fixed.num_classes, fixed.scheme)
        ]
        key = Key(seed, FOLD_STEP)
        starts = random_starts(key, len(self.betas), len(nets), program.num_bits)
        self.run = ChainRun(key, program, nets, starts, self.betas, fixed, journal, self.couplings)

    def score(self, show: Progress | None) -> HeldOut:
        """Run the chains, and score the rows that they have not seen."""
        data, run = self._data, self.run
        run.show = show
        run.burn_in(self._burn_in)
        run.collect(self._draws)
        networks = torch.stack(run.networks).unflatten(2, (len(self._folds), -1))
        networks = networks.flatten(0, 1).transpose(0, 1)  # (folds, D·betas, N, A)
        held = []
        for fold in self._folds:
            rows = data.examples.share(fold)
            step = -(-len(rows) // (CALIBRATION_ROWS // len(self._folds)))
            held.append(rows.where(torch.arange(0, len(rows), max(1, step))))
        inputs = [rows.inputs for rows in held]
        evidence = Evidence(
            torch.cat(
                [raw_margins_of(run.program, *each) for each in zip(networks, inputs, strict=True)]
            ),
            torch.cat([rows.labels for rows in held]),
            torch.cat([rows.weight for rows in held]),
        )
        found, fixed, clip = [], data.preprocessing, self._clip
        classes, scheme = fixed.num_classes, fixed.scheme
        settings = list(zip(self.couplings, self.betas, strict=True))
        for coupling, betas in [(0.0, USUAL_BETAS), *self._sets]:
            chosen = torch.tensor([one == coupling and beta in betas for one, beta in settings])
            chosen = chosen.repeat(self._draws)
            mine = replace(evidence, raw_margins=evidence.raw_margins[:, chosen])
            table = calibrate(mine, classes, scheme, clip=clip).table
            probability = mine.probabilities(clip, table, classes, scheme)
            own = probability.gather(1, mine.labels[:, None])[:, 0].double()
            losses = -(own / probability.sum(1)).clamp(min=1e-3).log()
            found.append(HeldOut(betas, coupling, mine, losses, networks[:, chosen]))
        usual = found[0]

        def gained(one: HeldOut) -> float:
            gain = usual.losses - one.losses
            error = (evidence.weight * gain.square()).sum().sqrt()
            return float((evidence.weight * gain).sum() - STANDARD_ERRORS * error)

        return max(found[1:], key=gained)
