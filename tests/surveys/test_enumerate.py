"""The oracle itself: its means follow BP, and it refuses what it cannot enumerate."""

import pytest
import torch
from enumerated_surveys import factor_surveys, variable_surveys
from survey_graphs import HARD, SOFT, random_surveys, triangle

from vitrail.random import Key
from vitrail.surveys.fft import exact_surveys
from vitrail.surveys.histogram import Grid
from vitrail.updates import exact


@pytest.mark.parametrize("beta", [HARD, SOFT])
@pytest.mark.parametrize("bins", [5, 7])
def test_with_the_linear_split_survey_means_follow_bp(bins, beta):
    graph, grid = triangle(beta), Grid(bins, "linear")
    surveys: tuple[torch.Tensor, ...] = random_surveys(graph, bins)
    message = torch.logit(surveys[0].double() @ grid.values())
    scope, update = graph.blocks[0].scope, exact()
    for _ in range(4):
        surveys = factor_surveys(
            graph, variable_surveys(graph, surveys, graph.log_prior, grid), grid
        )
        belief = graph.log_prior + scope.total(message, 3)
        cavity = (scope.gather(belief) - message)[:, None]
        estimate = update.estimate(Key(0), graph.blocks[0], cavity)
        message = (estimate.log_one - estimate.log_zero)[:, 0]
        means = surveys[0] @ grid.values()
        assert (means - torch.sigmoid(message)).abs().max() < 1e-6


@pytest.mark.parametrize("bins", [5, 7])
def test_convolution_comes_near_enumeration_on_the_probability_grid(bins):
    # only the split onto the log-odds grid and ties of the grid lie between the two
    graph, grid = triangle(HARD), Grid(bins, "linear")
    surveys = random_surveys(graph, bins)
    found = exact_surveys(graph, surveys, graph.log_prior, grid, 2**24)
    wanted = variable_surveys(graph, surveys, graph.log_prior, grid)
    assert 0.5 * (found[0] - wanted[0]).abs().sum(-1).max() < 0.01


def test_too_many_combinations_are_refused():
    graph = triangle(HARD)
    with pytest.raises(ValueError, match="use fewer bins or a smaller graph"):
        factor_surveys(graph, random_surveys(graph, 501), Grid(501))
