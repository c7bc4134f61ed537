"""S3P: variable→factor surveys exactly, by convolution; the factor side is Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from vitrail.decode import threshold
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.s4p import s4p
from vitrail.solvers.sp import FactorChunk, SPState, SurveyPropagation
from vitrail.surveys.fft import belief_surveys, exact_surveys
from vitrail.surveys.histogram import MASS_ONE
from vitrail.surveys.variable import Cavities, belief_address, cavity_address, drawn_values
from vitrail.updates import Update


@dataclass(frozen=True)
class S3P(SurveyPropagation):
    """A variable of n factors costs O(n²·B log(n·B)) at every step, in batches too."""

    def variable_kind(self, graph: FactorGraph) -> int:
        return 0

    def variable(self, state: SPState) -> None:
        return None

    def prepare(self, graph: FactorGraph, state: SPState) -> tuple[Tensor, ...]:
        return exact_surveys(graph, state.surveys, state.prior, self.grid, self.memory).cavities

    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: FactorChunk
    ) -> Cavities:
        samples = self.survey_samples
        address = cavity_address(key, part.factors.ids, samples, part.factors.arity)
        counts = torch.round(prepared[part.number][part.index] * MASS_ONE).to(torch.int64)
        odds = drawn_values(address, counts, self.grid)
        return Cavities(odds, torch.full_like(odds[0], samples))

    def candidates(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        """The decoded mean, then draws of every variable from its belief: (1 + R, V) bool."""
        decoded = threshold(key, self.log_odds(graph, state))
        counts = torch.round(self._beliefs(graph, state) * MASS_ONE).to(torch.int64)
        number = len(state.prior)
        address = belief_address(key, self.survey_samples, number, state.prior)
        drawn = drawn_values(address, counts, self.grid)
        return torch.cat([decoded[None], torch.where(drawn == 0, decoded, drawn > 0)])

    def belief_surveys(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        watched = torch.tensor(self.watch, device=graph.device)
        return self._beliefs(graph, state)[watched].to(torch.float32)

    def _beliefs(self, graph: FactorGraph, state: SPState) -> Tensor:
        """The survey of every variable, (V, B) float64."""
        return belief_surveys(graph, state.surveys, state.prior, self.grid, self.memory)


def s3p(update: Update, **settings: Any) -> S3P:
    """Survey propagation with exact variable→factor surveys; small problems only.

    Args:
        update: Update of the inner messages; its smoothing is set to 0.
        **settings: Options of `s4p`, except `variable` and `feed`.

    Examples:
        >>> from vitrail.updates import exact
        >>> s3p(exact(), bins=101).survey_samples
        100
    """
    sampled = sorted({"variable", "feed"} & settings.keys())
    if sampled:
        raise TypeError(
            f"s3p does not sample surveys at variables: {sampled[0]} is an option of s4p"
        )
    made = s4p(update, **settings)
    return S3P(**{part.name: getattr(made, part.name) for part in fields(S3P)})
