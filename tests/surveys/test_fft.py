"""The exact variable side against enumeration, on the log-odds grid, before rebinning."""

import math
from itertools import product

import pytest
import torch
from survey_graphs import HARD, SOFT, triangle

from vitrail.factors import table
from vitrail.graph import factor_graph, indexed
from vitrail.surveys.fft import belief_surveys, exact_surveys
from vitrail.surveys.fft import product as product_of
from vitrail.surveys.histogram import Grid, LogOddsGrid, point_mass


def surveys_on(wide: LogOddsGrid, *shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    size = (*shape, wide.points + 2)
    mass = -torch.log(torch.rand(size, generator=generator, dtype=torch.float64))
    return mass / mass.sum(-1, keepdim=True)


def enumerated(surveys: torch.Tensor, prior: float, wide: LogOddsGrid, out: int) -> torch.Tensor:
    """The cavity measure of factor `out` of one variable: [p=0, sums…, p=1], normalised."""
    others = [row for number, row in enumerate(surveys) if number != out]
    half = len(others) * wide.half
    mass = torch.zeros(2 * half + 3, dtype=torch.float64)
    for places in product(range(wide.points + 2), repeat=len(others)):
        chance, one, zero = 1.0, math.exp(prior), 1.0
        for row, place in zip(others, places, strict=True):
            chance *= float(row[place])
            if place == 0:
                p = 0.0
            elif place == wide.points + 1:
                p = 1.0
            else:
                p = 1 / (1 + math.exp(-(place - 1 - wide.half) * wide.step))
            one, zero = one * p, zero * (1 - p)
        if one + zero == 0:
            continue
        if one == 0 or zero == 0:
            place = 0 if one == 0 else -1
        else:
            place = 1 + sum(p - 1 - wide.half for p in places) + half
        mass[place] += chance * (one + zero)
    return mass / mass.sum()


@pytest.mark.parametrize("prior", [0.0, 0.7])
@pytest.mark.parametrize("half", [1, 2])
def test_convolution_equals_enumeration(half, prior):
    # 5 and 7 bins: 2·half + 1 log-odds points and two end atoms; 3 variables of 3 factors
    wide = LogOddsGrid(0.8, half)
    surveys = surveys_on(wide, 3, 3, seed=half)
    mass, _ = product_of(surveys, torch.full((3,), prior, dtype=torch.float64), wide, True)
    for variable, factor in product(range(3), range(3)):
        wanted = enumerated(surveys[variable], prior, wide, factor)
        assert (mass[variable, factor] - wanted).abs().max() < 1e-5
    # over all factors: the measure without a last one that says nothing
    silent = torch.zeros(3, 1, wide.points + 2, dtype=torch.float64)
    silent[:, 0, wide.half + 1] = 1.0
    beliefs, _ = product_of(surveys, torch.full((3,), prior, dtype=torch.float64), wide, False)
    for variable in range(3):
        rows = torch.cat([surveys[variable], silent[variable]])
        assert (beliefs[variable, 0] - enumerated(rows, prior, wide, 3)).abs().max() < 1e-5


def test_a_variable_of_one_factor_has_only_its_prior():
    wide = LogOddsGrid(0.5, 3)
    surveys = surveys_on(wide, 2, 1, seed=0)
    mass, log_odds = product_of(surveys, torch.zeros(2, dtype=torch.float64), wide, True)
    assert log_odds.tolist() == [0.0]
    assert torch.allclose(mass[:, 0], torch.tensor([0.0, 1.0, 0.0]).double())


def test_a_certain_one_and_a_certain_zero_contradict_each_other():
    wide = LogOddsGrid(0.5, 2)
    surveys = torch.zeros(1, 3, 7, dtype=torch.float64)
    surveys[0, 0, 0] = surveys[0, 1, -1] = surveys[0, 2, 3] = 1.0
    mass, _ = product_of(surveys, torch.zeros(1, dtype=torch.float64), wide, True)
    # leaving out either of the two resolves it
    assert mass[0, 0, -1] == pytest.approx(1)
    assert mass[0, 1, 0] == pytest.approx(1)
    assert torch.isfinite(mass).all()


@pytest.mark.parametrize("beta", [HARD, SOFT])
def test_point_masses_multiply_to_the_bp_cavity(beta):
    graph, grid = triangle(beta), Grid(201)
    message = torch.linspace(-1.5, 1.5, 9, dtype=torch.float64).view(3, 3)
    surveys = (point_mass(grid, message),)
    found = exact_surveys(graph, surveys, graph.log_prior, grid, 2**24)[0]
    scope = graph.blocks[0].scope
    cavity = scope.gather(graph.log_prior + scope.total(message, 3)) - message
    assert (found @ grid.values() - torch.sigmoid(cavity)).abs().max() < 0.01
    belief = belief_surveys(graph, surveys, graph.log_prior, grid, 2**24)[1]
    total = torch.sigmoid((graph.log_prior + scope.total(message, 3))[1])
    assert float(belief @ grid.values() - total) == pytest.approx(0, abs=0.01)


def test_a_variable_without_factors_has_only_its_prior():
    graph = factor_graph(table(torch.ones(1, 2), indexed([[0]])), num_variables=2)
    surveys = (point_mass(Grid(5), torch.zeros(1, 1)),)
    found = belief_surveys(graph, surveys, graph.log_prior, Grid(5), 2**24)
    assert found[1].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_a_product_out_of_reach_is_refused_with_the_way_out():
    many = factor_graph(table(torch.ones(5000, 2), indexed([[0]] * 5000)))
    surveys = (point_mass(Grid(201), torch.zeros(5000, 1)),)
    with pytest.raises(ValueError, match="use s4p, or fewer bins"):
        exact_surveys(many, surveys, many.log_prior, Grid(201), 2**24)
