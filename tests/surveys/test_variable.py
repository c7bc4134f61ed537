"""Draws of variable→factor surveys against enumeration and closed forms."""

import math

import pytest
import torch
from enumerated_surveys import factor_surveys, variable_surveys
from survey_graphs import HARD, SOFT, random_surveys, triangle

from vitrail.factors import table
from vitrail.graph import factor_graph, indexed
from vitrail.random import Key
from vitrail.solvers import Feedback
from vitrail.solvers.s4p import S4P, s4p
from vitrail.solvers.sp import SPState
from vitrail.surveys import gaussian, tilted, weighted
from vitrail.surveys.histogram import Grid, point_mass
from vitrail.surveys.variable import belief_address, effective_draws, log_means, mean_log_odds
from vitrail.updates import exact

FORMS = {"weighted": weighted(), "tilted": tilted(), "gaussian": gaussian()}


def one_step(solver: S4P, graph, state: SPState, step: int = 1):
    feedback = Feedback(
        torch.zeros(graph.num_problems, dtype=torch.float64),
        torch.ones(graph.num_problems, dtype=torch.bool),
    )
    return solver.step(Key(5).at(step), graph, state, feedback)


@pytest.mark.parametrize("beta", [HARD, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize("bins", [5, 7])
@pytest.mark.parametrize("form", ["weighted", "tilted"])
def test_one_update_comes_near_exact_survey_propagation(form, bins, beta):
    graph, grid = triangle(beta), Grid(bins)
    surveys = random_surveys(graph, bins)
    solver = s4p(
        exact(),
        survey_samples=100_000,
        bins=bins,
        damping=0.0,
        variable=FORMS[form],
        feed="histogram",
    )
    state, info = one_step(solver, graph, solver.start(Key(5), graph, surveys, graph.log_prior))
    cavities = variable_surveys(graph, surveys, graph.log_prior, grid)
    wanted = factor_surveys(graph, cavities, grid)
    distance = 0.5 * (state.surveys[0] - wanted[0]).abs().sum(-1)
    assert distance.max() < 0.02
    assert info.starved == 0


def star(surveys: torch.Tensor, form: str, samples: int = 100):
    """One variable of n arity-1 factors with the given surveys (n, B), all started."""
    count, bins = surveys.shape[0], surveys.shape[1]
    rows = torch.tensor([[1.0, 1.0]]).expand(count, 2)
    graph = factor_graph(table(rows, indexed([[0]] * count)))
    solver = s4p(exact(), survey_samples=samples, bins=bins, variable=FORMS[form])
    state = solver.start(Key(2), graph, [surveys[:, None]], graph.log_prior)
    return graph, solver, state


@pytest.mark.parametrize("form", FORMS)
def test_belief_draws_have_the_mean_of_the_marginal(form):
    # E[p] under the measure is Z1/(Z1 + Z0); 5 standard errors of 40,000 draws in [0, 1], and for
    # the Gaussian form the distance of its law from the true one at 12 factors
    generator = torch.Generator().manual_seed(1)
    surveys = torch.rand(12, 21, generator=generator) ** 4
    surveys[:, 0] = surveys[:, -1] = 0.0
    surveys = surveys / surveys.sum(-1, keepdim=True)
    graph, solver, state = star(surveys, form, samples=40_000)
    address = belief_address(Key(3), 40_000, 1, state.prior)
    tracks = solver.sampler(state).tracks(
        address, state.draws, state.means, state.prior, solver.grid
    )
    weight = torch.ones_like(tracks.log_odds)
    if tracks.log_weight is not None:
        weight = torch.exp(tracks.log_weight - tracks.log_weight.max())
    drawn = (weight * torch.sigmoid(tracks.log_odds)).sum() / weight.sum()
    error = 5 * 0.5 / math.sqrt(float(effective_draws(torch.round(weight * 1000).long())))
    marginal = solver.marginals(graph, state)[0]
    assert abs(float(drawn - marginal)) < error + (0.03 if form == "gaussian" else 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_of_fifty_thousand_factors_neither_underflows_nor_drifts(form):
    generator = torch.Generator().manual_seed(0)
    surveys = torch.rand(50_000, 5, generator=generator)
    surveys[:, 0] = surveys[:, -1] = 0.0
    surveys = surveys / surveys.sum(-1, keepdim=True)
    graph, solver, state = star(surveys, form, samples=20)
    assert torch.isfinite(state.draws).all()
    assert torch.isfinite(solver.log_odds(graph, state)).all()
    after, info = one_step(solver, graph, state)
    assert torch.isfinite(after.draws).all()
    # factors that allow everything say ½; damping 0.2 leaves a fifth of the old surveys
    assert torch.allclose(after.surveys[0].sum(-1), torch.ones(50_000, 1), atol=1e-5)
    again = solver.start(Key(5), graph, after.surveys, state.prior)
    assert torch.equal(again.means, after.means)
    assert info.effective_samples is not None
    assert info.effective_samples >= (1 if form == "weighted" else 20)


@pytest.mark.parametrize("form", FORMS)
def test_sums_kept_in_batches_are_the_sums_made_anew(form):
    graph = triangle(SOFT)
    solver = s4p(exact(), survey_samples=50, bins=31, batch=1, variable=FORMS[form])
    state = solver.start(Key(5), graph, random_surveys(graph, 31), graph.log_prior)
    for step in range(1, 7):
        state, _ = one_step(solver, graph, state, step)
    # each factor's contribution again, from its survey and the step of its last update
    draws, means = torch.zeros_like(state.draws), torch.zeros_like(state.means)
    for part in solver._chunks(Key(5), graph, state, 0, torch.arange(3)):
        draws += part.factors.scope.total(part.draws, 3)
        means += part.factors.scope.total(part.means, 3)
    assert torch.equal(draws, state.draws)
    assert torch.equal(means, state.means)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", [-50.0, 50.0])
def test_certain_surveys_make_certain_beliefs(form, end):
    surveys = point_mass(Grid(5), torch.tensor([end, 0.3, -0.4], dtype=torch.float64))
    graph, solver, state = star(surveys, form)
    assert float(solver.marginals(graph, state)[0]) == (1.0 if end > 0 else 0.0)
    assert torch.isfinite(solver.log_odds(graph, state)).all()
    assert (solver.candidates(Key(1), graph, state)[:, 0] == (end > 0)).all()


@pytest.mark.parametrize("form", FORMS)
def test_certainties_of_both_kinds_are_a_contradiction_without_nan(form):
    surveys = point_mass(Grid(5), torch.tensor([-50.0, 50.0, 0.0], dtype=torch.float64))
    graph, solver, state = star(surveys, form)
    assert torch.isfinite(solver.log_odds(graph, state)).all()
    after, _ = one_step(solver, graph, state)
    assert torch.isfinite(after.surveys[0]).all()
    # one hard factor wants 1, another 0: after a full update both products are zero
    wants = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    torn = factor_graph(table(wants, indexed([[0], [0]])))
    full = s4p(exact(), bins=5, variable=FORMS[form], damping=0.0)
    after, info = one_step(full, torn, full.init(Key(0), torn))
    assert info.contradiction.all()
    assert torch.isfinite(full.log_odds(torn, after)).all()


def test_weighted_without_any_mass_falls_back_on_the_means():
    # half the mass at each end for two factors: a draw of opposite certainties has no mass
    surveys = torch.zeros(3, 5)
    surveys[:2, 0], surveys[:2, -1], surveys[2, 2] = 0.5, 0.5, 1.0
    graph, solver, state = star(surveys, "weighted", samples=1)
    for step in range(1, 6):
        state, info = one_step(solver, graph, state, step)
        assert torch.isfinite(state.surveys[0]).all()
        assert info.effective_samples is not None


def test_log_means_count_zeros_instead_of_taking_their_log():
    mass = torch.tensor([[[4, 0, 0], [0, 0, 4], [2, 0, 2]]])
    log_one, zeros_one, log_zero, zeros_zero = log_means(mass, Grid(3))[:, 0]
    assert zeros_one.tolist() == [1, 0, 0]
    assert zeros_zero.tolist() == [0, 1, 0]
    assert log_one.tolist() == pytest.approx([0, 0, math.log(0.5)], abs=1e-7)
    assert log_zero.tolist() == pytest.approx([0, 0, math.log(0.5)], abs=1e-7)
    total = mean_log_odds(log_means(mass, Grid(3))[:, 0].sum(1), torch.zeros(()).double())
    assert float(total) == 0
