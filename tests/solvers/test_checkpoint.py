"""Runs that are killed, cut short or damaged go on as if nothing had happened, or say why not."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from oracles import random_inputs, random_labels
from torch import nn

from vitrail.factors import blackbox, network, perceptron
from vitrail.graph import factor_graph
from vitrail.nn import BinaryLinear
from vitrail.random import Key
from vitrail.solvers import CheckpointError, belief_propagation, checkpoint, run
from vitrail.solvers.checkpoint import previous_path, read, write
from vitrail.updates import counting, flip

SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
from test_checkpoint_case import graph, solver
from vitrail.solvers import run
solution = run(solver(), graph(), seed=3, max_steps=60, checkpoint={path!r}, checkpoint_every=5,
               on_step=lambda step, feedback, info: time.sleep({pause}))
"""
CASE = """
import torch
from oracles import random_inputs, random_labels
from vitrail.factors import perceptron
from vitrail.graph import factor_graph
from vitrail.solvers import belief_propagation
from vitrail.updates import flip

def graph():
    return factor_graph(perceptron(random_inputs(4, 80, 21), random_labels(4, 80), 2.0))

def solver():
    return belief_propagation(flip(4), damping=0.6, batch=9)
"""


def make_graph():
    return factor_graph(perceptron(random_inputs(4, 80, 21), random_labels(4, 80), 2.0))


def make_solver():
    return belief_propagation(flip(4), damping=0.6, batch=9)


def same(left, right):
    assert torch.equal(left.best, right.best)
    assert torch.equal(left.weights, right.weights)
    assert torch.equal(left.marginals, right.marginals)
    assert torch.equal(left.state.messages[0], right.state.messages[0])
    assert left.status == right.status
    for name in left.history.columns:
        assert torch.equal(left.history[name], right.history[name]), name
    assert (left.steps, left.evaluations) == (right.steps, right.evaluations)


def test_a_stopped_run_ends_as_if_it_had_not_stopped(tmp_path):
    whole = run(make_solver(), make_graph(), seed=3, max_steps=60)
    path = tmp_path / "run.ckpt"
    run(make_solver(), make_graph(), seed=3, max_steps=23, checkpoint=path, checkpoint_every=5)
    resumed = run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path)
    same(whole, resumed)


def test_a_killed_process_is_resumed_to_the_identical_result(tmp_path):
    whole = run(make_solver(), make_graph(), seed=3, max_steps=60)
    path = tmp_path / "run.ckpt"
    (tmp_path / "test_checkpoint_case.py").write_text(CASE)
    tests = str(Path(__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + SCRIPT.format(
        tests=tests, path=str(path), pause=0.05
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    deadline = time.time() + 60
    while not path.exists() and time.time() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    assert read(path)[1]["step"] < 60
    same(whole, run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path))


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped"])
def test_a_damaged_checkpoint_gives_way_to_the_previous_one(tmp_path, damage):
    whole = run(make_solver(), make_graph(), seed=3, max_steps=60)
    path = tmp_path / "run.ckpt"
    run(make_solver(), make_graph(), seed=3, max_steps=23, checkpoint=path, checkpoint_every=5)
    assert previous_path(path).exists()
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[-10] ^= 0xFF
    else:
        data = data[: len(data) // 2 if damage == "truncated" else 0]
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="damaged"):
        read(path)
    with pytest.warns(RuntimeWarning, match="damaged.*going on from"):
        resumed = run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path)
    same(whole, resumed)


def test_when_both_are_damaged_the_run_refuses(tmp_path):
    path = tmp_path / "run.ckpt"
    run(make_solver(), make_graph(), max_steps=23, checkpoint=path, checkpoint_every=5)
    path.write_bytes(b"")
    previous_path(path).write_bytes(b"")
    with (
        pytest.warns(RuntimeWarning, match="going on from"),
        pytest.raises(CheckpointError, match="choose another file for a new run"),
    ):
        run(make_solver(), make_graph(), max_steps=60, checkpoint=path)


@pytest.mark.parametrize("change", ["seed", "solver", "data"])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change):
    path = tmp_path / "run.ckpt"
    run(make_solver(), make_graph(), seed=3, max_steps=5, checkpoint=path)
    solver = belief_propagation(flip(5), batch=9) if change == "solver" else make_solver()
    graph = make_graph()
    if change == "data":
        graph = factor_graph(perceptron(random_inputs(5, 80, 21), random_labels(4, 80), 2.0))
    with pytest.raises(CheckpointError, match="belongs to another run"):
        run(solver, graph, seed=4 if change == "seed" else 3, max_steps=9, checkpoint=path)


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_text("not a checkpoint at all")
    with pytest.raises(CheckpointError, match="choose another file for a new run"):
        run(make_solver(), make_graph(), max_steps=5, checkpoint=path)


def test_a_full_disk_leaves_the_old_checkpoint_and_says_so(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    write(path, {"x": torch.ones(3)}, {"step": 1})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left on device; free some space"):
        write(path, {"x": torch.zeros(3)}, {"step": 2})
    assert read(path)[1]["step"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_saves_before_it_returns(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = run(make_solver(), make_graph(), seed=3, max_steps=60)

    def stop(step, feedback, info):
        if step == 7:
            raise KeyboardInterrupt

    run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path, on_step=stop)
    assert read(path)[1]["step"] == 7
    same(whole, run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path))


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", "vitrail-checkpoint-1")
        run(make_solver(), make_graph(), seed=3, max_steps=10, checkpoint=path, checkpoint_every=5)
    kept = path.read_bytes()
    with pytest.raises(CheckpointError, match="of this version of vitrail; start the run again"):
        run(make_solver(), make_graph(), seed=3, max_steps=60, checkpoint=path)
    assert path.read_bytes() == kept


def threshold_graph(data):
    """The same lambda over other data: nothing but the data tells two of them apart."""
    wanted = torch.arange(4.0)[:, None]  # no sum is all four
    return factor_graph(
        blackbox(lambda states, which: (states * data).sum(-1) == 5 + wanted[which], 4, 9)
    )


class Level(nn.Module):
    """A net of a user's own with a constant in it."""

    def __init__(self, level):
        super().__init__()
        self.layer = BinaryLinear(9, 1)
        self.register_buffer("level", torch.tensor(level))

    def forward(self, x):
        return self.layer(x) - self.level


def module_graph(level):
    inputs, labels = random_inputs(4, 12, 9), random_labels(4, 12)
    return factor_graph(network(Level(level), inputs, labels))


OTHERS = {
    "data of a lambda": (threshold_graph, torch.arange(9.0), torch.arange(9.0).flip(0)),
    "buffer of a module": (module_graph, 0.0, 3.0),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_problem_under_the_same_name_is_refused(tmp_path, case):
    make, one, other = OTHERS[case]
    solver, path = belief_propagation(counting(16)), tmp_path / "run.ckpt"
    settings = {"max_steps": 4, "tolerance": 0.0, "checkpoint": path}
    first = run(solver, make(one), **settings)
    assert torch.equal(run(solver, make(one), **settings).best, first.best)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        run(solver, make(other), **settings)


def test_another_schedule_under_the_same_name_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"

    def solver(last):
        return belief_propagation(flip(4), damping=lambda step: last if step else 0.5)

    run(solver(0.25), make_graph(), max_steps=4, checkpoint=path)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        run(solver(0.75), make_graph(), max_steps=8, checkpoint=path)


def test_a_run_from_another_start_is_refused(tmp_path):
    path, solver, graph = tmp_path / "run.ckpt", make_solver(), make_graph()
    run(solver, graph, max_steps=4, checkpoint=path, state=solver.init(Key(1), graph))
    with pytest.raises(CheckpointError, match="start"):
        run(solver, graph, max_steps=8, checkpoint=path, state=solver.init(Key(2), graph))


def test_a_function_that_cannot_be_told_from_others_takes_no_checkpoint(tmp_path):
    lock = threading.Lock()

    def score(states, which):
        with lock:
            return states.sum(-1) > 3

    graph, path = factor_graph(blackbox(score, 4, 9)), tmp_path / "run.ckpt"
    with pytest.raises(CheckpointError, match=r"lock.*or run without a checkpoint"):
        run(belief_propagation(counting(16)), graph, max_steps=3, checkpoint=path)
    assert not path.exists()


def test_a_folder_is_not_taken_for_a_damaged_file(tmp_path):
    with pytest.raises(CheckpointError, match=r"is a folder; name a file in it, such as .*run\.ck"):
        run(make_solver(), make_graph(), max_steps=3, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="is not there; make it"):
        run(make_solver(), make_graph(), max_steps=3, checkpoint=tmp_path / "nowhere" / "run.ckpt")
