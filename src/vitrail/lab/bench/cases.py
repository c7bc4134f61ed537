"""Rows of the benchmark: every net, update and backend, and the paper's formulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vitrail.datasets import mnist
from vitrail.factors import Network, network, perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.lab.bench import paper
from vitrail.lab.bench.measure import Ceilings, measured, peak_bytes
from vitrail.nn import paper_conv, paper_mlp
from vitrail.numerics import DEFAULT_MEMORY, SAMPLED_LIMIT
from vitrail.random import Key
from vitrail.solvers import s4p
from vitrail.solvers.base import Feedback
from vitrail.updates import Update, closed_form, counting, flip
from vitrail.updates.base import Backend

BETA = 3.0
SAMPLES = 5  # the paper's
SURVEY_SAMPLES = 100
BINS = 201
ERROR_FACTORS = 100  # messages compared with the reference
REFERENCE_SAMPLES = 30_000
PAPER_SECONDS = 6.0  # spent on a slice of the paper's formulation
KEY = Key(11)


@dataclass(frozen=True)
class BenchRow:
    """One measurement; None where a column does not apply."""

    net: str
    solver: str
    update: str
    backend: str
    device: str
    samples: int
    factors: int
    seconds: float  # of one update of all factors
    squared_error: float | None = None  # of log-odds messages against a high-sample reference
    peak_bytes: int | None = None
    per_second: float | None = None  # 16-bit draws; for ceilings, the quantity they are named after
    share_of_philox: float | None = None  # of the draws per second of a bare Philox loop
    speedup: float | None = None  # the paper's seconds / these
    efficiency: float | None = None  # the paper's seconds × squared error / these
    extrapolated: bool = False  # timed on a slice of the factors and scaled up
    size: str | None = None  # the size that grows, in rows of growth
    values: list[int] | None = None  # of that size
    times: list[float] | None = None  # seconds at each; of the processor, on a CPU
    exponent: float | None = None  # of time against that size


@dataclass(frozen=True)
class Net:
    """A net on MNIST's digits 0 and 1, with beliefs and messages as in the middle of a run."""

    name: str
    factors: Network
    belief: Tensor  # (A,) float64
    message: Tensor  # (F, A) float32

    def part(self, count: int) -> Net:
        index = torch.arange(min(count, self.factors.num_factors), device=self.belief.device)
        return replace(self, factors=self.factors.select(index), message=self.message[index])


def nets(device: str, share: float) -> Iterator[Net]:
    """Linear (196 weights), MLP (394) and conv (89)."""
    data = mnist(pair=(0, 1))
    count = max(ERROR_FACTORS, round(share * len(data.labels)))
    inputs, labels = data.inputs[:count], data.labels[:count]
    images = data.shaped().inputs[:count]
    for name, factors in (
        ("linear", perceptron(inputs, labels, BETA)),
        ("mlp", network(paper_mlp(), inputs, labels, BETA)),
        ("conv", network(paper_conv(), images, labels, BETA)),
    ):
        draw = torch.Generator().manual_seed(0)
        belief = torch.randn(factors.arity, generator=draw, dtype=torch.float64)
        message = 0.1 * torch.randn(count, factors.arity, generator=draw)
        yield Net(name, factors.to(device), belief.to(device), message.to(device))


def updates(net: str, backends: tuple[Backend, ...]) -> Iterator[tuple[str, Backend, int, Update]]:
    """Name, backend, samples and update of every row of a net."""
    for backend in backends:
        if net != "conv":
            yield "flip", backend, SAMPLES, flip(SAMPLES, backend=backend)
        if net == "conv" or backend != "torch":
            yield "counting", backend, 64, counting(64, backend=backend)
    if net == "conv":
        yield "counting", backends[-1], 512, counting(512, backend=backends[-1])
    if net == "linear":
        compiled = backends[-1]
        for samples in (64, 500):
            yield "flip", compiled, samples, flip(samples, backend=compiled)
        yield "closed_form", "torch", 0, closed_form("gaussian")


def belief_rows(
    net: Net, device: str, backends: tuple[Backend, ...], ceiling: Ceilings
) -> Iterator[BenchRow]:
    """The paper's row of a net, then ours."""
    from vitrail.kernels.dispatch import BackendError

    small = net.part(ERROR_FACTORS)
    truth = _reference(small)
    chunk = _fastest_chunk(net, device)
    theirs = _paper_messages(small, chunk)
    first = _paper_row(net, chunk, device, float((theirs - truth).square().mean()))
    yield first
    for name, backend, samples, update in updates(net.name, backends):
        try:
            ours = update.messages(KEY, small.factors, small.belief, small.message).log_odds
        except BackendError:
            continue  # no kernel of this backend for this net
        error = float((ours - truth).square().mean())
        found = measured(
            lambda update=update: update.messages(KEY, net.factors, net.belief, net.message), device
        )
        row = replace(
            first,
            update=name,
            backend=backend,
            samples=samples,
            seconds=found.seconds,
            squared_error=error,
            peak_bytes=found.peak_bytes,
            speedup=first.seconds / found.seconds,
            efficiency=first.seconds * (first.squared_error or 0) / (found.seconds * error),
            extrapolated=False,
        )
        if name in ("flip", "counting"):
            draws = net.message.numel() * samples / found.seconds
            share = draws / ceiling.lanes_per_second
            row = replace(row, per_second=draws, share_of_philox=share)
        yield row


def _reference(net: Net) -> Tensor:
    """Messages from many draws, with a key that no measured row uses."""
    counted = net.name == "conv"
    update = counting(2 * REFERENCE_SAMPLES) if counted else flip(REFERENCE_SAMPLES)
    return update.messages(Key(12), net.factors, net.belief, net.message).log_odds


def _paper_messages(net: Net, chunk: int) -> Tensor:
    """Messages of all factors of the net by the paper's formulation, `chunk` factors at a time."""
    cavity = (net.belief - net.message.double()).clamp(-SAMPLED_LIMIT, SAMPLED_LIMIT)
    index = torch.arange(net.factors.num_factors, device=cavity.device)
    return torch.cat(
        [
            paper.messages(net.factors.select(part), cavity[part], SAMPLES)
            for part in index.split(chunk)
        ]
    ).double()


def _fastest_chunk(net: Net, device: str) -> int:
    """Factors at a time for which the paper's formulation runs fastest."""
    times = {}
    for chunk in (1, 2, 4, 8, 16, 32) if device == "cpu" else (4, 16, 64, 256):
        part = net.part(chunk)
        work = measured(lambda part=part, m=chunk: _paper_messages(part, m), device, 0.05, 3)
        times[work.seconds / len(part.message)] = chunk
        if work.seconds > PAPER_SECONDS / 4:
            break
    return times[min(times)]


def _paper_row(net: Net, chunk: int, device: str, error: float) -> BenchRow:
    one = measured(lambda: _paper_messages(net.part(chunk), chunk), device, 0.1, 3)
    affordable = round(PAPER_SECONDS / 3 * chunk / one.seconds)
    part = net.part(max(chunk, affordable))
    spent = measured(lambda: _paper_messages(part, chunk), device, PAPER_SECONDS / 3, 3)
    total = net.factors.num_factors
    return BenchRow(
        *(net.name, "bp", "paper", "torch", device, SAMPLES, total),
        spent.seconds * total / len(part.message),
        error,
        one.peak_bytes,
        speedup=1.0,
        efficiency=1.0,
        extrapolated=total > len(part.message),
    )


def survey_rows(net: Net, device: str, backends: tuple[Backend, ...]) -> Iterator[BenchRow]:
    """S4P on the linear net: the paper's 5-D draw on a slice, then our step on all factors."""
    total, arity = net.message.shape
    one = net.part(1).factors
    surveys = torch.rand(1, arity, BINS, device=device)
    draws = SURVEY_SAMPLES, SAMPLES
    work = partial(paper.survey_messages, one, surveys, *draws)
    theirs = measured(work, device, PAPER_SECONDS / 2, 5)
    first = BenchRow(
        *("linear", "s4p", "paper", "torch", device, SAMPLES, total),
        theirs.seconds * total,
        peak_bytes=theirs.peak_bytes,
        speedup=1.0,
        extrapolated=True,
    )
    yield first
    for backend in backends:
        count = total if backend != "torch" else min(total, 64)
        graph = factor_graph(net.part(count).factors.to("cpu")).to(device)
        # the state is built within, so that the surveys themselves are counted
        held, _ = peak_bytes(lambda graph=graph, name=backend: survey_step(graph, name)(), device)
        seconds = measured(survey_step(graph, backend), device, 0.1, 1).seconds * total / count
        yield replace(
            first,
            update="flip",
            backend=backend,
            seconds=seconds,
            peak_bytes=held,
            speedup=first.seconds / seconds,
            extrapolated=count < total,
        )


def survey_step(
    graph: FactorGraph, backend: Backend, survey_samples: int = SURVEY_SAMPLES, bins: int = BINS
) -> Callable[[], object]:
    """One update of all factors by S4P, the state going on from call to call."""
    solver = s4p(
        flip(SAMPLES, backend=backend),
        survey_samples=survey_samples,
        bins=bins,
        memory=DEFAULT_MEMORY if graph.device.type == "cpu" else 4 * DEFAULT_MEMORY,
    )
    feedback = Feedback(
        torch.zeros(1, dtype=torch.float64, device=graph.device),
        torch.ones(1, dtype=torch.bool, device=graph.device),
    )
    state, count = solver.init(KEY, graph), 0

    def step() -> None:
        nonlocal state, count
        state, _ = solver.step(KEY.at(count), graph, state, feedback)
        count += 1

    return step
