"""Grids, binning, integer draws, storage and rebinning of surveys."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.random import Key, lanes32
from vitrail.surveys.histogram import (
    LATTICE,
    MASS_ONE,
    Grid,
    draw,
    histogram,
    log_odds_grid,
    masses,
    normalised,
    point_mass,
    positions,
    relative_masses,
    scaled,
    to_log_odds,
    to_probability,
)


def dirichlet(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    mass = -torch.log(torch.rand(*shape, generator=generator, dtype=torch.float64))
    return mass / mass.sum(-1, keepdim=True)


def test_even_bins_are_refused_with_the_reason():
    with pytest.raises(
        ValueError, match="odd so that 0, ½ and 1 are grid points, got 200; use 201"
    ):
        Grid(200)


@pytest.mark.parametrize(("bins", "split"), [(1, "round"), (2001, "round"), (5, "nearest")])
def test_a_grid_that_cannot_be_is_refused(bins, split):
    with pytest.raises(ValueError, match=r"bins must be|unknown split"):
        Grid(bins, split)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("bins", [3, 5, 31, 201])
def test_zero_half_and_one_are_grid_points(bins, p):
    survey = point_mass(Grid(bins), torch.logit(torch.tensor(p, dtype=torch.float64)))
    assert survey[round(p * (bins - 1))] == 1


@pytest.mark.parametrize("bins", [5, 31, 201, 1025])
def test_logs_of_bins_are_the_nearest_points_of_the_lattice(bins):
    grid = Grid(bins, hard_ends=False)
    tables = grid.tables()
    exact = [[math.log(tilt / grid.tilt_unit) for tilt in row] for row in tables.tilt.tolist()]
    error = (tables.log - torch.tensor(exact, dtype=torch.float64)).abs()
    assert error.max() <= 0.5001 / LATTICE


def test_a_tie_goes_to_the_even_bin_even_when_rounding_blurs_it():
    # p = (k + ½)/4 comes out of logs a few ulps off; without the snap it would go either way
    grid, halves = Grid(5), torch.arange(4, dtype=torch.float64) + 0.5
    for blur in (-1e-9, 0.0, 1e-9):
        odds = torch.logit((halves + blur) / 4)
        assert torch.round(positions(grid, odds)).tolist() == [0, 2, 2, 4]


def test_the_linear_split_keeps_the_mean():
    grid = Grid(7, "linear")
    p = torch.linspace(0, 1, 101, dtype=torch.float64)
    survey = point_mass(grid, torch.logit(p))
    assert (survey.double() @ grid.values() - p).abs().max() < 1e-6


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**44 - 1))
def test_scaling_a_lane_is_exact(lane, total):
    got = scaled(torch.tensor(lane), torch.tensor(total))
    assert int(got) == lane * total >> 32


def test_draws_have_the_frequencies_of_the_weights():
    # χ² of 10⁵ draws over 6 possible bins; a false alarm once in 10⁴ (5 degrees of freedom)
    weights = torch.tensor([0, 3, 1, 0, 7, 2, 2, 5])
    ids, samples = torch.zeros(1, dtype=torch.int64), torch.arange(100_000)
    bins = draw(weights, lanes32(Key(3), ids, samples, 1)[:, 0])
    counts = torch.bincount(bins, minlength=8).double()
    expected = weights.double() / weights.sum() * len(bins)
    assert (counts[weights == 0] == 0).all()
    possible = weights > 0
    chi2 = ((counts - expected)[possible].square() / expected[possible]).sum()
    assert chi2 < 25.74


def test_the_smallest_and_largest_lanes_draw_the_first_and_last_bins_with_mass():
    weights = torch.tensor([0, 1, 5, 1, 0])
    assert draw(weights, torch.tensor([0, 2**32 - 1])).tolist() == [1, 3]


def test_a_histogram_does_not_depend_on_the_order_of_draws():
    grid = Grid(31)
    generator = torch.Generator().manual_seed(0)
    odds = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    mass = torch.randint(0, MASS_ONE, (50, 4), generator=generator)
    order = torch.randperm(50, generator=generator)
    assert torch.equal(histogram(grid, odds, mass), histogram(grid, odds[order], mass[order]))


def test_masses_far_below_the_range_of_floats_keep_their_ratio():
    log_mass = torch.tensor([-5000.0, -5000.0 + math.log(2), -torch.inf], dtype=torch.float64)
    assert relative_masses(log_mass).tolist() == [MASS_ONE // 2, MASS_ONE, 0]
    assert relative_masses(torch.full((3,), -torch.inf)).tolist() == [0, 0, 0]


def test_integer_masses_are_those_of_the_survey():
    survey = dirichlet(20, 31).float()
    drawn = masses(survey).double()
    assert (drawn / drawn.sum(-1, keepdim=True) - survey).abs().max() < 1e-6


@pytest.mark.parametrize("hard_ends", [True, False])
def test_what_a_bin_means_adds_up_to_one(hard_ends):
    grid = Grid(201, hard_ends=hard_ends)
    tables = grid.tables()
    assert (tables.tilt.sum(0) == grid.tilt_unit).all()
    p = tables.tilt[0] / grid.tilt_unit
    assert p[0] == (0 if hard_ends else 0.001)
    assert torch.allclose(p[1:-1], grid.values()[1:-1].float())
    assert torch.allclose(tables.log_odds[1:-1], torch.logit(grid.values()[1:-1]), atol=1e-7)
    assert bool(tables.zero.any()) == hard_ends


@pytest.mark.parametrize("hard_ends", [True, False])
def test_going_to_log_odds_and_back_keeps_mass_and_nearly_the_mean(hard_ends):
    grid = Grid(31, "linear", hard_ends)
    survey = dirichlet(10, 31)
    wide = log_odds_grid(grid)
    assert wide.step <= 4 / 30
    there = to_log_odds(grid, survey, wide)
    assert torch.allclose(there.sum(-1), torch.ones(10, dtype=torch.float64))
    if hard_ends:
        assert torch.equal(there[:, 0], survey[:, 0])
        assert torch.equal(there[:, -1], survey[:, -1])
    back = to_probability(grid, there, wide.values())
    assert torch.allclose(back.sum(-1), torch.ones(10, dtype=torch.float64))
    assert ((back - survey) @ grid.values()).abs().max() < 1e-3


def test_counts_without_mass_are_all_zero():
    assert normalised(torch.zeros(2, 5, dtype=torch.int64)).sum() == 0
