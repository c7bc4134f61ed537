"""The paper's formulation, which everything is measured against, computes what it should."""

import pytest
import torch
from cases_of_kernels import generator, perceptrons

from vitrail.factors import network
from vitrail.lab.bench import paper
from vitrail.nn import paper_conv, paper_mlp
from vitrail.random import Key
from vitrail.updates import exact


def net(name):
    draw = generator(0)
    labels = torch.randint(0, 2, (3,), generator=draw)
    if name == "linear":
        return perceptrons(3, 196)
    if name == "mlp":
        inputs = torch.randint(0, 2, (3, 196), generator=draw)
        return network(paper_mlp(), inputs, labels, beta=3.0)
    images = torch.randint(0, 2, (3, 1, 14, 14), generator=draw)
    return network(paper_conv(), images, labels, beta=3.0)


@pytest.mark.parametrize("name", ["linear", "mlp", "conv"])
def test_its_networks_are_ours(name):
    factors = net(name)
    bits = torch.rand(3, 40, factors.arity, generator=generator(1)) < 0.5
    assert torch.equal(paper._satisfied(factors, bits), factors.score(bits))


def test_its_messages_approach_the_exact_ones():
    """20,000 draws per message; log-odds stray by 0.05 at these temperatures in five sigma."""
    factors = perceptrons(4, 5, beta=1.0)
    cavity = torch.randn(4, 5, generator=generator(2), dtype=torch.float64)
    torch.manual_seed(0)
    found = paper.messages(factors, cavity, 20_000)
    truth = exact().estimate(Key(0), factors, cavity[:, None])
    assert torch.allclose(found.double(), (truth.log_one - truth.log_zero)[:, 0], atol=0.05)


def test_its_surveys_are_normalised():
    factors = perceptrons(2, 6)
    surveys = torch.rand(2, 6, 21, generator=generator(3))
    torch.manual_seed(0)
    new = paper.survey_messages(factors, surveys, 30, 5)
    assert torch.allclose(new.sum(-1), torch.ones(2, 6))
