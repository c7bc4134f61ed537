"""Factor→variable surveys: masses, ties, starvation and which updates may serve."""

import pytest
import torch

from vitrail.factors import perceptron
from vitrail.graph import factor_graph
from vitrail.random import Key
from vitrail.surveys.factor_update import factor_histogram, mixed, without_smoothing
from vitrail.surveys.histogram import MASS_ONE, Grid, point_mass
from vitrail.updates import Estimate, counting, exact, flip
from vitrail.updates.counting import Counting


def estimate_of(one: list[float], zero: list[float]) -> Estimate:
    shape = 1, len(one), 1
    return Estimate(
        torch.tensor(one).double().log().view(shape),
        torch.tensor(zero).double().log().view(shape),
        0,
    )


def test_mass_is_the_sum_of_both_estimates_in_the_bin_of_their_ratio():
    counts = factor_histogram(Grid(5), estimate_of([0.4, 0.0, 0.3], [0.0, 0.2, 0.3]))[0, 0]
    assert (counts / counts.sum()).tolist() == pytest.approx([1 / 6, 0, 1 / 2, 0, 1 / 3], abs=1e-6)


def test_draws_with_both_estimates_zero_carry_no_mass():
    some = factor_histogram(Grid(5), estimate_of([0.0, 0.5], [0.0, 0.0]))[0, 0]
    assert some.tolist() == [0, 0, 0, 0, MASS_ONE]
    assert factor_histogram(Grid(5), estimate_of([0.0, 0.0], [0.0, 0.0])).sum() == 0


def test_an_edge_without_mass_keeps_its_survey():
    old = torch.tensor([[[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]]])
    counts = torch.tensor([[[0, 0, 0], [0, 0, 7]]])
    new = mixed(old, counts, torch.tensor([[[0.25]]]))
    assert torch.allclose(new, torch.tensor([[[0.2, 0.8, 0.0], [0.75, 0.0, 0.25]]]))


def test_integer_hits_alone_decide_bins_and_masses():
    # what a compiled kernel looks up: every pair of hits out of 5, hard and soft
    for beta in (float("inf"), 1.0):
        factors = perceptron(torch.tensor([[1, 1, 1]]), torch.tensor([1]), beta)
        hits = torch.cartesian_prod(torch.arange(6), torch.arange(6)).double()
        one, zero = factors.log_mean(hits[None, :, 0], 5.0), factors.log_mean(hits[None, :, 1], 5.0)
        together = factor_histogram(Grid(201), Estimate(one[..., None], zero[..., None], 0))
        floor = float(factors.floor)
        wanted = torch.zeros(201)
        for a, b in hits.tolist():
            p1, p0 = (floor + (1 - floor) * h / 5 for h in (a, b))
            if p1 + p0 > 0:
                position = p1 / (p1 + p0) * 200
                twice = round(2 * position, 5)
                bin_ = round(twice / 2)
                wanted[bin_] += p1 + p0
        got = together[0, 0] / together.sum()
        assert torch.allclose(got, wanted / wanted.sum(), atol=1e-6)


def test_smoothing_is_taken_out():
    inner = without_smoothing(counting(64))
    assert isinstance(inner, Counting)
    assert inner.smoothing == 0
    assert without_smoothing(flip(5)) == flip(5)


def test_a_point_mass_reproduces_the_bp_message_up_to_binning():
    inputs = torch.tensor([[1, -1, 1, 1, -1]])
    graph = factor_graph(perceptron(inputs, torch.tensor([1]), 2.0))
    cavity = torch.tensor([[0.3, -1.0, 2.0, 0.0, 0.5]], dtype=torch.float64)
    estimate = exact().estimate(Key(0), graph.blocks[0], cavity[:, None])
    counts = factor_histogram(Grid(201), estimate)
    message = estimate.log_one[:, 0] - estimate.log_zero[:, 0]
    assert torch.equal(counts / counts.sum(-1, keepdim=True), point_mass(Grid(201), message))
