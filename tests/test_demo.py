"""The demo's race on a small share of its images; the whole of it is a long test."""

import subprocess
import sys
import time

import pytest

from vitrail.baselines import straight_through
from vitrail.data import mnist
from vitrail.demo import BATCH, figure, race, train
from vitrail.plots import save
from vitrail.solvers import belief_propagation
from vitrail.updates import flip

PAIR = mnist(pair=(3, 5)).take(640, seed=0)
SOLVERS = {
    "belief propagation": belief_propagation(flip(5), damping=0.9, batch=BATCH),
    "straight-through": straight_through(batch=BATCH),
}


def test_both_solvers_learn_and_the_figure_is_written(tmp_path):
    results = [train(name, solver, PAIR, seed=0) for name, solver in SOLVERS.items()]
    for result in results:
        assert result.bits == 196
        assert result.train_best >= result.train_last
        assert result.train_best > 0.8
        assert 0.5 < result.test_best <= 1.0
    path = save(figure(results), tmp_path / "demo.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["demo.png"]


def test_the_same_seed_gives_the_same_network():
    solver = SOLVERS["belief propagation"]
    first, again = (train("bp", solver, PAIR, seed=3).solution for _ in range(2))
    assert first.best.equal(again.best)
    assert first.marginals.equal(again.marginals)


@pytest.mark.long
def test_the_demo_takes_less_than_a_minute(tmp_path):
    begun = time.perf_counter()
    command = [sys.executable, "-m", "vitrail", "demo", "--seed", "1"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    assert time.perf_counter() - begun < 60
    assert "belief propagation" in outcome.stdout
    assert (tmp_path / "vitrail-demo.png").exists()


@pytest.mark.long
def test_belief_propagation_reaches_what_the_docs_promise():
    assert race(seed=0)[0].train_best >= 0.898
