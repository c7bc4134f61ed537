"""The demo's three examples at a small size; at full size they are a long test."""

import numpy as np
import pytest

from vitrail.cli.options import print_table
from vitrail.cli.research import DEMO_HEAD, rows_of
from vitrail.lab import demo
from vitrail.lab.plots import save


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SHOTS", 3)
        patch.setattr(demo, "TEST_IMAGES", 200)
        patch.setattr(demo, "INPUTS", 101)
        patch.setattr(demo, "ALPHA", 0.4)
        patch.setattr(demo, "WARM_UP", 0.05)
        few = {**demo.LEARNERS, "many networks vote": {"predictor": "posterior", "networks": 16}}
        patch.setattr(demo, "LEARNERS", few)
        yield demo.run_demo(seed=3)


def test_every_example_has_its_numbers(shown):
    digits, pair, searches = shown.rows[:4], shown.rows[4], shown.rows[5:]
    assert [row.method for row in digits] == [*demo.LEARNERS, "logistic regression"]
    for row in digits:
        assert 0.3 < row.accuracy < 1
        assert 0 <= row.calibration_error <= 1
    assert pair.bits == 197
    assert pair.accuracy > 0.9
    assert [row.method for row in searches] == list(demo.SEARCHES)
    assert searches[0].accuracy == 1
    assert len({row.problem for row in shown.rows}) == 3
    assert shown.stopwatch.work > 0


def test_agreement_on_a_pixel_is_a_share_of_networks(shown):
    assert shown.pixels.shape == (10, 14, 14)
    assert np.abs(shown.pixels).max() <= 1
    share = (shown.pixels + 1) / 2 * 16
    assert (np.abs(2 * share - np.round(2 * share)) < 1e-9).all()


def test_the_picture_is_written_and_the_table_fits_a_terminal(shown, tmp_path, monkeypatch, capsys):
    path = save(demo.figure(shown), tmp_path / "demo.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setenv("COLUMNS", "80")
    print_table(DEMO_HEAD, rows_of(shown))
    text = capsys.readouterr().out
    assert "…" not in text
    assert all(row.method in text and row.problem in text for row in shown.rows)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_votes_are_best_and_only_messages_solve_the_search(seed):
    found = demo.run_demo(seed)
    votes, *others = (row.accuracy for row in found.rows[:4])
    assert votes > max(others)
    assert [row.accuracy == 1 for row in found.rows[5:]] == [True, False]
