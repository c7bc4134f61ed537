"""Batches as CUDA graphs: the same bits as kernels launched one by one."""

import gc

import pytest
import torch
from torch import nn

from vitrail.baselines import bayesbinn, straight_through
from vitrail.factors import network
from vitrail.graph import factor_graph
from vitrail.nn import BinaryConv2d, BinaryLinear, Flatten, MaxPool2d, Sign, Threshold, mlp
from vitrail.solvers import geometric, replay, run, streaming

if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

BATCH, BATCHES, STEPS = 32, 8, 5  # 40 batches
ROWS = 5 * BATCH + 7  # the last batch of an epoch is smaller
SIDE, CLASSES = 12, 4


def small_mlp():
    return nn.Sequential(Flatten(), *mlp(SIDE * SIDE, (31, 31), CLASSES))


def small_conv():
    return nn.Sequential(
        BinaryConv2d(1, 8, 5, stride=2, padding=2),
        Threshold(),
        BinaryConv2d(8, 8, 3, stride=2),
        Threshold(),
        Flatten(),
        BinaryLinear(8 * 2 * 2, CLASSES),
    )


def small_pool():
    return nn.Sequential(
        BinaryConv2d(1, 8, 3), Sign(), MaxPool2d(2), Flatten(), BinaryLinear(8 * 5 * 5, CLASSES)
    )


CASES = {
    "mlp on gray levels": (small_mlp, "levels"),
    "mlp on 0/1": (small_mlp, "0/1"),
    "mlp on ±1": (small_mlp, "±1"),
    "conv on gray levels": (small_conv, "levels"),
    "conv on 0/1": (small_conv, "0/1"),
    "pool on ±1": (small_pool, "±1"),
}
each = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def repeatable(monkeypatch):
    """Convolutions whose sums have an order."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


def graph_of(name):
    make, kind = CASES[name]
    draws = torch.Generator().manual_seed(5)
    labels = torch.randint(CLASSES, (ROWS,), generator=draws)
    levels = torch.randint(256, (ROWS, 1, SIDE, SIDE), generator=draws, dtype=torch.uint8)
    levels[..., SIDE // 2 :] = 0  # background; labels are noise, so that no run ends early
    bits = (levels > 127).to(torch.int8)
    inputs = {"levels": levels, "0/1": bits, "±1": 2 * bits - 1}[kind]
    weight = 0.5 + torch.rand(ROWS, generator=draws)
    return factor_graph(network(make(), inputs, labels, beta=4.0, weight=weight)).to("cuda")


def solver(**settings):
    return streaming(batch=BATCH, batches=BATCHES, beta=geometric(1.0, 4.0, STEPS), **settings)


def ran(graph, of=None, **settings):
    return run(of or solver(), graph, seed=2, max_steps=STEPS, score_every=STEPS, **settings)


def recorded(graph):
    """The graph of a batch that was recorded for these factors, if any."""
    made = graph._prepared
    return [found for found in made.values() if isinstance(found, replay.Replay)]


def assert_same(one, other):
    assert torch.equal(one.state.field, other.state.field)
    assert torch.equal(one.state.squares, other.state.squares)
    assert torch.equal(one.state.best, other.state.best)
    assert torch.equal(one.marginals, other.marginals)
    assert torch.equal(one.history["rate"], other.history["rate"])


@pytest.fixture
def plainly(monkeypatch):
    """Runs a fresh graph without recording."""

    def plain(name, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(replay, "_RECORDS", False)
            graph = graph_of(name)
            found = ran(graph, **settings)
            assert not recorded(graph)
        return found

    return plain


@each
def test_a_recorded_batch_gives_the_same_bits(name, plainly):
    graph = graph_of(name)
    found = ran(graph)
    assert len(recorded(graph)) == 1
    assert_same(found, plainly(name))


@pytest.mark.parametrize(
    "of",
    [straight_through(batch=BATCH), bayesbinn(batch=BATCH, samples=2)],
    ids=["ste", "bayesbinn"],
)
@each
def test_a_recorded_gradient_gives_the_same_bits(name, of, plainly):
    graph = graph_of(name)
    found = ran(graph, of=of)
    assert len(recorded(graph)) == 1
    plain = plainly(name, of=of)
    assert torch.equal(found.weights, plain.weights)
    assert torch.equal(found.marginals, plain.marginals)


def test_what_was_recorded_serves_other_priors_and_temperatures():
    graph = graph_of("mlp on gray levels")
    first = ran(graph)
    shifted = graph.with_prior(torch.full_like(graph.log_prior, 0.25)).with_beta(2.0)
    other = ran(shifted)
    assert len(recorded(shifted)) == 1
    assert not torch.equal(first.marginals, other.marginals)
    fresh = graph_of("mlp on gray levels")
    fresh = fresh.with_prior(torch.full_like(graph.log_prior, 0.25)).with_beta(2.0)
    assert_same(other, ran(fresh))
    assert_same(first, ran(graph))


def test_a_stopped_run_resumes_bit_for_bit(tmp_path, plainly):
    name, place = "conv on gray levels", tmp_path / "run.safetensors"
    whole = ran(graph_of(name))
    run(solver(), graph_of(name), seed=2, max_steps=2, score_every=STEPS, checkpoint=place)
    assert_same(whole, ran(graph_of(name), checkpoint=place))
    assert_same(whole, plainly(name))


def test_where_nothing_can_be_recorded_results_are_the_same(monkeypatch, plainly):
    name = "mlp on 0/1"

    def refuse(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    graph = graph_of(name)
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "graph", refuse)
        found = ran(graph)
    assert not recorded(graph)
    assert_same(found, plainly(name))


def test_memory_does_not_grow_with_batches():
    graph = graph_of("conv on 0/1")
    ran(graph)
    gc.collect()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        ran(graph)
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_a_recorded_computation_keeps_what_it_reads():
    """Memory that it reads from is not given to others."""
    place = torch.zeros(64, device="cuda")

    def recorded():
        order = torch.arange(63, -1, -1, device="cuda")
        return replay.replay(lambda: (place[order],), [place])

    reversed_ = recorded()
    assert reversed_ is not None
    others = [torch.zeros(64, dtype=torch.int64, device="cuda") for _ in range(256)]
    values = torch.arange(64.0, device="cuda")
    assert torch.equal(reversed_(values)[0], values.flip(0))
    assert len(others) == 256
