"""The capacity sweep: its units, its summary, and a figure from a resumable run."""

import json

import pytest

from vitrail.baselines import annealing
from vitrail.cli import main
from vitrail.lab.experiments import capacity
from vitrail.lab.experiments.capacity import SOLVERS, alpha_range, summary, trials, units
from vitrail.lab.experiments.experiment import column

LIMIT = 600.0  # seconds; kernels may have to be compiled first, on a busy machine


def test_ranges_of_alpha_include_their_ends():
    assert alpha_range("0.5:0.8:0.1") == [0.5, 0.6, 0.7, 0.8]
    assert alpha_range("0.3,0.75") == [0.3, 0.75]
    for text in ("a:b:c", "0.5:0.8:0", "-1", ""):
        with pytest.raises(ValueError, match="alpha"):
            alpha_range(text)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_solves_an_easy_instance(solver):
    rows = trials(101, 0.1, (1,), solver, LIMIT, "cpu")
    assert [row["unsatisfied"] for row in rows] == [0]


def test_the_seconds_of_annealing_are_those_of_all_restarts(monkeypatch):
    monkeypatch.setattr(capacity, "annealing", lambda: annealing(10_000))  # short, to restart often
    trials(51, 2.0, (1,), "annealing", 0.01, "cpu")  # kernels are ready when the clock runs
    rows = trials(51, 2.0, (1,), "annealing", 0.3, "cpu")
    assert column(rows, "unsatisfied")[0] > 0
    assert column(rows, "seconds")[0] >= 0.3


def test_instances_can_be_solved_side_by_side():
    rows = trials(101, 0.3, (1, 2, 3), "reinforced", LIMIT, "cpu")
    assert [row["seed"] for row in rows] == [1, 2, 3]
    assert all(row["unsatisfied"] == 0 for row in rows)


def test_the_summary_counts_what_was_solved():
    row = {"solver": "x", "n": 11, "alpha": 0.5, "seed": 0, "steps": 1}
    rows = [
        {**row, "unsatisfied": 0, "seconds": 1.0},
        {**row, "unsatisfied": 2, "seconds": 9.0},
        {**row, "unsatisfied": 0, "seconds": 3.0},
    ]
    (line,) = summary(rows)
    assert (line["trials"], line["solved"], line["seconds"]) == (3, 2 / 3, 2.0)
    assert line["low"] == pytest.approx(0.2077, abs=1e-4)  # Wilson's interval of 2 of 3
    assert line["high"] == pytest.approx(0.9385, abs=1e-4)


def test_bad_sweeps_are_refused():
    with pytest.raises(ValueError, match="unknown solvers"):
        units(11, [0.5], ["magic"], 1, 1.0)
    with pytest.raises(ValueError, match="odd"):
        units(10, [0.5], ["portfolio"], 1, 1.0)


def test_the_command_draws_and_does_not_run_twice(tmp_path, capsys):
    call = ["capacity", "--n", "51", "--alpha", "0.2,0.4", "--count", "2", "--json"]
    call += ["--out", str(tmp_path)]
    answers = []
    for _ in range(2):
        with pytest.raises(SystemExit) as stop:
            main(call)
        assert stop.value.code in (0, None)
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]  # seconds included, because the second reads the first
    assert [line["solved"] for line in answers[0]["rows"]] == [1.0, 1.0]
    assert (tmp_path / "capacity.png").stat().st_size > 10_000
