"""What the figures share: pairs of rows, and differences over independent draws."""

import math

import pytest
import torch

from vitrail.factors import table
from vitrail.graph import factor_graph
from vitrail.lab.experiments.claims import Difference
from vitrail.lab.experiments.experiment import curve, difference, plus_minus
from vitrail.lab.experiments.methods import GD, SBP, Rate, solve, tuned


def rows(changes):
    """One row per (repeat, size), with `changes[repeat][size]` in the column `best`."""
    return [
        {"repeat": repeat, "size": size, "best": value}
        for repeat, values in enumerate(changes)
        for size, value in enumerate(values)
    ]


def test_rows_of_one_draw_count_once():
    nothing = rows([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    gains = rows([[0.1, 0.3], [0.2, 0.2], [0.4, 0.6]])
    found = difference(nothing, gains, ("repeat", "size"), "best")
    assert found.count == 3
    assert found.mean == pytest.approx(0.3)
    # the means of the draws are 0.2, 0.2, 0.5
    assert found.error == pytest.approx(math.sqrt((0.01 + 0.01 + 0.04) / 2 / 3))


def test_pairs_are_found_whatever_the_order_of_the_rows():
    before, after = rows([[0.1, 0.2], [0.3, 0.4]]), rows([[0.2, 0.3], [0.4, 0.5]])
    found = difference(before[::-1], after, ("repeat", "size"), "best")
    assert found.mean == pytest.approx(0.1)
    assert found.error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("count", "quantile"), [(2, 12.706), (5, 2.776), (12, 2.201), (20, 2.093), (1000, 1.962)]
)
def test_intervals_are_those_of_students_t(count, quantile):
    assert Difference(0.0, 1.0, count).half_width == pytest.approx(quantile, abs=0.005)


def test_curves_and_cells_have_mean_and_spread():
    line = curve("SBP", rows([[1.0], [3.0]]), "size", "best")
    assert line.x == [0]
    assert line.y == [2.0]
    assert line.band == ([pytest.approx(2 - math.sqrt(2))], [pytest.approx(2 + math.sqrt(2))])
    assert plus_minus([1.0, 3.0], 2) == "2.00 ± 1.41"


def test_gd_steps_as_it_was_tuned_for_the_size():
    rates = (Rate(50, 0.03, "sgd"), Rate(1000, 0.01))
    assert tuned(rates, 50, 8) == GD(optimiser="sgd", lr=0.03, batch=8)
    assert tuned(rates, 51, 8) == GD(optimiser="adam", lr=0.01, batch=8)
    assert tuned(rates, 5000, 8) == GD(optimiser="adam", lr=0.01, batch=8)


def test_a_run_that_begins_with_a_solution_is_scored_by_its_start():
    free = factor_graph(table(torch.ones(1, 4)))  # any configuration satisfies it
    outcome, _ = solve(SBP(), free, epochs=3, seed=0)
    assert outcome.solution.steps == 0
    row = outcome.row(0)
    assert [row[name] for name in ("best", "decoded", "last", "early", "fifth")] == [1.0] * 5
