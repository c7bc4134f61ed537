"""The training problems of the figures, many of one size as one graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from torch import nn

from vitrail.datasets import Dataset, digits, glass, mnist, stained_glass
from vitrail.factors import network, perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.lab.experiments.methods import Method, solve
from vitrail.lab.experiments.units import Row, Rows
from vitrail.nn import paper_conv, paper_mlp

Family = Literal["glass", "stained glass, 1 hidden", "stained glass, 2 hidden", "digits"]
Net = Literal["linear", "mlp", "conv"]
SETTINGS = ("samples", "survey_samples", "bins", "damping")  # distinguish methods of one name


def problems(
    family: Family, num_inputs: int, size: int, repeats: int, first: int = 0
) -> list[Dataset]:
    """`repeats` problems of `size` examples with seeds from `first` on; sizes are nested."""
    makers = {
        "glass": lambda seed: glass(size, num_inputs, seed),
        "stained glass, 1 hidden": lambda seed: stained_glass(size, num_inputs, seed),
        "stained glass, 2 hidden": lambda seed: stained_glass(
            size, num_inputs, seed, hidden_layers=2
        ),
        "digits": lambda seed: digits(size, seed=seed),
    }
    return [makers[family](seed) for seed in range(first, first + repeats)]


def linear_graph(datasets: Sequence[Dataset]) -> FactorGraph:
    """One linear unit for each data set, all in one graph."""
    return join([factor_graph(perceptron(data.inputs, data.labels)) for data in datasets])


def solve_linear(
    family: Family,
    sizes: tuple[tuple[int, int], ...],
    repeats: int,
    method: Method,
    epochs: int,
    seed: int,
    first: int = 0,
) -> Rows:
    """One method on `repeats` problems of each size (inputs, examples), all in one graph."""
    sets = [
        (inputs, size, first + repeat, data)
        for inputs, size in sizes
        for repeat, data in enumerate(problems(family, inputs, size, repeats, first))
    ]
    outcome, _ = solve(method, linear_graph([data for *_, data in sets]), epochs, seed)
    own = {name: getattr(method, name, None) for name in SETTINGS}
    return [
        {
            **described(inputs, size, repeat, method.name, family=family),
            **own,
            **outcome.row(number),
        }
        for number, (inputs, size, repeat, _) in enumerate(sets)
    ]


def described(weights: int, examples: int, repeat: int, method: str, **more: str) -> Row:
    """The columns that identify the problem and the method of a row."""
    alpha = examples / weights
    problem = {"weights": weights, "examples": examples, "alpha": alpha, "repeat": repeat}
    return {**more, **problem, "method": method}


@cache
def _module(net: Net) -> nn.Module | None:
    """One module per net, so that the blocks of many problems can be merged."""
    return {"linear": lambda: None, "mlp": paper_mlp, "conv": paper_conv}[net]()


def _graph(net: Net, data: Dataset, test: bool) -> FactorGraph:
    data = data.shaped() if net == "conv" else data
    inputs = data.test_inputs if test else data.inputs
    labels = data.test_labels if test else data.labels
    module = _module(net)
    if module is None:
        return factor_graph(perceptron(inputs, labels))
    return factor_graph(network(module, inputs, labels))


def mnist_graphs(
    net: Net, pair: tuple[int, int], size: int | None, seeds: Sequence[int]
) -> tuple[FactorGraph, FactorGraph]:
    """Training and test graphs: `size` images drawn by each seed (None: all), one problem each."""
    images = mnist(pair)
    sets = [images if size is None else images.take(size, seed) for seed in seeds]
    train, test = (join([_graph(net, data, test) for data in sets]) for test in (False, True))
    return train, test
