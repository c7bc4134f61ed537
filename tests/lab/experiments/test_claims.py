"""Verdicts follow from numbers by stated rules."""

import math

import pytest

from vitrail.lab.experiments.claims import (
    Difference,
    Verdict,
    deviation,
    found_or_decoded,
    mean,
    paired,
    verdict_of,
)

CLEAR_GAIN = Difference(0.1, 0.01, 20)
CLEAR_LOSS = Difference(-0.1, 0.01, 20)
NOTHING = Difference(0.01, 0.02, 20)


def test_paired_differences_have_their_mean_and_standard_error():
    difference = paired([1.0, 2.0, 3.0, 6.0], [0.0, 2.0, 2.0, 4.0])
    assert difference.mean == 1.0
    assert difference.error == pytest.approx(math.sqrt((0 + 1 + 0 + 1) / 3 / 4))


def test_one_pair_alone_is_no_evidence():
    assert verdict_of([paired([1.0], [0.0])]) == Verdict.OPEN


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([CLEAR_GAIN, CLEAR_GAIN], Verdict.HOLDS),
        ([CLEAR_GAIN, NOTHING], Verdict.PARTLY),
        ([NOTHING], Verdict.OPEN),
        ([CLEAR_GAIN, CLEAR_LOSS], Verdict.FAILS),
    ],
)
def test_a_claim_is_judged_by_all_its_differences(differences, verdict):
    assert verdict_of(differences) == verdict


def test_samples_of_different_length_are_refused():
    with pytest.raises(ValueError, match="compare the same problems"):
        paired([1.0], [1.0, 2.0])


def test_mean_and_standard_deviation():
    assert mean([1.0, 3.0]) == 2.0
    assert deviation([1.0, 3.0]) == pytest.approx(math.sqrt(2))
    assert deviation([1.0]) == 0.0


@pytest.mark.parametrize(
    ("best", "decoded", "verdict"),
    [
        (CLEAR_GAIN, CLEAR_GAIN, Verdict.HOLDS),
        (CLEAR_GAIN, CLEAR_LOSS, Verdict.PARTLY),
        (NOTHING, CLEAR_LOSS, Verdict.FAILS),
        (NOTHING, NOTHING, Verdict.OPEN),
    ],
)
def test_better_configurations_may_be_found_without_being_decoded(best, decoded, verdict):
    assert found_or_decoded(best, decoded) == verdict
