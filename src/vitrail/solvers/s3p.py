"""S3P: variable→factor surveys exactly, by convolution; the factor side is Algorithm 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.numerics import DEFAULT_MEMORY
from vitrail.random import Key
from vitrail.solvers.bp import PRIOR_SCALE
from vitrail.solvers.damping import Damping
from vitrail.solvers.sp import SurveyPropagation
from vitrail.solvers.sp_state import Part, SPState, Store, checked_settings
from vitrail.surveys.fft import belief_survey, exact_surveys
from vitrail.surveys.histogram import MASS_ONE, Split
from vitrail.surveys.variable import Cavities, cavity_address, drawn_values
from vitrail.updates import Update


@dataclass(frozen=True)
class S3P(SurveyPropagation):
    """The variable side exactly, by convolution; the factor side is Algorithm 2.

    For small problems: a variable of n factors costs O(n²·B log(n·B)) at every step, in batches
    too, because the product needs every survey.
    """

    def kind_of(self, graph: FactorGraph) -> int:
        return 0

    def variable(self, state: SPState) -> None:
        return None

    def prepare(self, graph: FactorGraph, state: SPState) -> tuple[Tensor, ...]:
        exact = exact_surveys(
            graph, state.surveys, state.prior, self.settings.grid, self.settings.memory
        )
        return exact.cavities

    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: Part
    ) -> Cavities:
        samples = self.settings.survey_samples
        address = cavity_address(key, part.factors.ids, samples, part.factors.arity)
        counts = torch.round(prepared[part.number][part.index] * MASS_ONE).to(torch.int64)
        odds = drawn_values(address, counts, self.settings.grid)
        return Cavities(odds, torch.full_like(odds[0], samples))

    def belief_surveys(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        rows = [
            belief_survey(graph, state.surveys, state.prior, self.settings.grid, variable)
            for variable in self.settings.watch
        ]
        return torch.stack(rows).to(torch.float32)


def s3p(
    update: Update,
    *,
    survey_samples: int = 100,
    bins: int = 201,
    damping: Damping | float = 0.2,
    batch: int | None = None,
    split: Split = "round",
    hard_ends: bool | None = None,
    prior_scale: float = PRIOR_SCALE,
    store: Store = "float32",
    watch: Sequence[int] = (),
    memory: int = DEFAULT_MEMORY,
) -> S3P:
    """Survey propagation with exact variable→factor surveys; small problems only.

    Args:
        update: Inner messages, any that takes cavities; its smoothing is set to 0.
        survey_samples: Draws from surveys for each factor.
        bins: Bins of a survey's histogram over [0, 1].
        damping: Share of the old survey that is kept, a number or a `Damping`.
        batch: Factors updated a step in each problem; None updates all.
        split: A value goes to the nearest bin ("round") or is shared by its neighbours ("linear").
        hard_ends: Whether bins 0 and 1 are certainties; None says yes for exact inner messages and
            reads them as 0.001 and 0.999 for sampled ones.
        prior_scale: Spread of the random prior (log-odds) that breaks symmetry; 0 for none.
        store: "fixed16" keeps 16-bit masses, half the memory of "float32".
        watch: Variables whose survey is kept at every step, `history["survey"]` (steps, W, B).
        memory: Bytes of scratch held at a time.

    Returns:
        The solver, for `run`.

    Examples:
        >>> from vitrail.updates import exact
        >>> s3p(exact(), bins=101).settings.survey_samples
        100
    """
    settings = checked_settings(
        update,
        survey_samples,
        bins,
        damping,
        batch,
        split,
        hard_ends,
        prior_scale,
        store,
        watch,
        memory,
    )
    return S3P(settings)
