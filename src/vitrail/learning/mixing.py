"""How far chains agree: R-hat and the effective sample size of what they say on some rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vitrail.learning.posterior import TrainingData
from vitrail.model.model import outputs_of
from vitrail.model.voting import clipped_margins, leads
from vitrail.nn import Program

WATCHED = 256  # rows at most on which mixing is measured
LEAST_CHAINS, LEAST_DRAWS = 4, 12  # below, nothing is said about mixing
MIN_EFFECTIVE_VOTES = 25  # independent undecided networks whose mean has the largest error allowed
MOST_SPREAD = 99.0  # where chains stand still


class Watch:
    """What chains say on some rows, sweep after sweep: that is where they must agree."""

    def __init__(self, data: TrainingData, program: Program) -> None:
        examples = data.examples
        self._rows = examples.inputs[:: -(-len(examples) // WATCHED)]
        self._program = program
        self.said: list[Tensor] = []

    def look(self, networks: Tensor) -> None:
        """Remember what networks (C, N, A) say."""
        for outputs in outputs_of(self._program, networks, self._rows):  # the rows are one chunk
            self.said.append(clipped_margins(leads(outputs)[..., 0], 1).to(torch.int8))

    def mixing(self, betas: Sequence[float]) -> dict[str, Any]:
        """How far they agree; nothing is known of them where no sweep was watched."""
        if not self.said:
            return {"draws": 0, "chains": len(betas)}
        return mixing(torch.stack(self.said, 1).double(), betas)


def mixing(said: Tensor, betas: Sequence[float]) -> dict[str, Any]:
    """How far chains agree on rows: `said` (rows, draws, chains, N), and the beta of each chain.

    `spread` is R-hat, √(V/W), W the mean variance within chains and V that of all with the same
    beta; 1 is well mixed. `effective_networks` is the effective sample size: the number of
    independent networks with the same standard error of their mean, which is `error`.
    """
    draws, chains = said.shape[1:3]
    groups = [[at for at, one in enumerate(betas) if one == beta] for beta in sorted(set(betas))]
    if draws < 2 or min(len(group) for group in groups) < 2:
        return {"chains": chains, "draws": draws}
    within = float(said.var(1).mean())
    means = said.mean(1)
    between = float(torch.stack([means[:, group].var(1).mean() for group in groups]).mean())
    whole = within * (draws - 1) / draws + between
    share = min(1.0, whole / (draws * between)) if between > 0 else 1.0
    apart = math.sqrt(whole / within) if within > 0 else MOST_SPREAD
    return {
        "chains": chains,
        "draws": draws,
        "spread": round(min(apart, MOST_SPREAD), 3) if whole > 0 else 1.0,
        "effective_networks": round(chains * draws * share, 1),
        "error": round(math.sqrt(whole / (chains * draws * share)), 4),
    }


def unmixed(found: Mapping[str, Any]) -> str | None:
    """The warning about chains that do not agree, where enough is known of them."""
    known = found["draws"] >= LEAST_DRAWS and found["chains"] >= LEAST_CHAINS
    if not known or found.get("error", 0.0) ** 2 * MIN_EFFECTIVE_VOTES <= 1:
        return None
    return (
        f"the chains have not mixed: R-hat {found['spread']:.2f}, effective sample size "
        f"{found['effective_networks']:.0f} of {found['chains'] * found['draws']}; probabilities "
        "may be wrong, so check them on held-out rows"
    )
