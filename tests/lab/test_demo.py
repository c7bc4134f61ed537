"""The demo's three scenes at a small size; the whole of it, for several seeds, is a long test."""

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


def test_every_scene_has_its_numbers(shown):
    assert [one.name for one in shown.digits] == [*demo.LEARNERS, "logistic regression"]
    for one in shown.digits:
        assert 0.1 < one.accuracy < 1
        assert 0 <= one.calibration_error <= 1
        assert ((one.confidence >= 0.1) & (one.confidence <= 1)).all()
    assert shown.pair.bits == 197
    assert shown.pair_accuracy > 0.9
    assert not shown.searches[0].unsatisfied
    assert all(search.constraints == 40 for search in shown.searches)
    assert shown.stopwatch.work > 0


def test_agreement_on_a_pixel_is_a_share_of_networks(shown):
    panes = demo.pixel_agreement(shown.committee)
    assert panes.shape == (10, 14, 14)
    assert np.abs(panes).max() <= 1
    share = (panes + 1) / 2 * len(shown.committee.networks)
    assert (np.abs(2 * share - np.round(2 * share)) < 1e-9).all()


def test_the_picture_is_written_and_the_table_fits_a_terminal(shown, tmp_path, monkeypatch, capsys):
    path = save(demo.figure(shown), tmp_path / "demo.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setenv("COLUMNS", "80")
    print_table(DEMO_HEAD, rows_of(shown))
    text = capsys.readouterr().out
    assert "…" not in text
    assert all(one.name in text for one in (*shown.digits, *shown.searches))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_what_the_demo_promises(seed):
    found = demo.run_demo(seed)
    votes, *others = (one.accuracy for one in found.digits)
    assert votes > max(others)
    assert [search.unsatisfied == 0 for search in found.searches] == [True, False]
