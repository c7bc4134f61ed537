"""The figure of one variable's survey over the steps."""

import pytest
import torch

from vitrail.lab.experiments.fig3 import Config, belief_paths
from vitrail.lab.plots import survey_figure


@pytest.fixture(scope="module")
def panels():
    return belief_paths(Config(size=12, steps=5, survey_samples=(1, 10), shown_variable=0))


def test_every_solver_has_a_survey_for_every_step(panels):
    assert [panel.name.split(",")[0] for panel in panels] == ["BP", "SBP", "S4P", "S4P"]
    for panel in panels:
        assert panel.surveys.shape == (5, 31)
        assert torch.allclose(panel.surveys.sum(1), torch.ones(5), atol=1e-5)
        assert 0.5 <= panel.best <= 1


def test_one_track_sits_in_one_bin_and_many_spread(panels):
    assert [int((panel.surveys > 0).sum(1).max()) for panel in panels[:3]] == [1, 1, 1]
    assert int((panels[3].surveys > 0).sum(1).max()) > 1


def test_the_draws_of_sbp_are_those_of_the_largest_survey(panels):
    assert panels[1].name == "SBP, 50 draws"
    assert panels[3].name == "S4P, 10 tracks"


def test_the_figure_has_a_panel_for_each(panels):
    figure = survey_figure({panel.name: panel.surveys.numpy() for panel in panels}, columns=4)
    assert len(figure.axes) == 4
    assert figure.axes[0].get_title() == "BP, exact"
