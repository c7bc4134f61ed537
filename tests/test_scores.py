import numpy as np
import pytest

from vitrail.scores import calibration_error, calibration_gaps, coverage, reliability

CONFIDENCE = np.array([0.55, 0.95, 0.97, 1.0])
RIGHT = np.array([False, True, True, False])


def test_the_calibration_error_weighs_bins_by_their_rows():
    expected = (1 * abs(0 - 0.55) + 3 * abs(2 / 3 - (0.95 + 0.97 + 1.0) / 3)) / 4
    assert calibration_error(CONFIDENCE, RIGHT) == pytest.approx(expected)
    bins = reliability(CONFIDENCE, RIGHT)
    assert [rows for _, _, rows in bins] == [1, 3]
    assert sum(rows * abs(a - c) for c, a, rows in bins) / 4 == pytest.approx(expected)


def test_gaps_of_parts_add_up_to_those_of_all_rows():
    parts = [calibration_gaps(CONFIDENCE[part], RIGHT[part], 15) for part in ([0, 2], [1, 3])]
    np.testing.assert_allclose(sum(parts), calibration_gaps(CONFIDENCE, RIGHT, 15))


def test_coverage_takes_the_highest_confidence_first():
    assert coverage(CONFIDENCE, RIGHT, 4) == [(1, 0.0), (2, 0.5), (3, 2 / 3), (4, 0.5)]
