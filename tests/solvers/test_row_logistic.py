"""Logistic regression by single rows: its covariance is the inverse of evidence that decays."""

import numpy as np
import pytest

from vitrail.solvers.row_logistic import LEAST_INFORMATION, RowLogistic

RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(600, 3))
SIGNS = np.where(ROWS @ [2.0, -1.0, 0.0] > 0, 1, -1)


@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_precision_is_that_of_the_prior_and_of_every_row(floor):
    found = RowLogistic(np.zeros((1, 3)), np.ones(1), spread=0.7, floor=floor)
    precision = np.eye(3) / 0.7**2
    for row, sign in zip(ROWS[:200], SIGNS[:200], strict=True):
        share = 1 / (1 + np.exp(-float(found.weights[0] @ row)))
        chance = floor + (1 - 2 * floor) * share
        slope = (1 - 2 * floor) * share * (1 - share)
        information = max(slope**2 / (chance * (1 - chance)), LEAST_INFORMATION)
        precision += information * np.outer(row, row)
        found.agreement(row)
        found.learn(np.array([sign]))
    np.testing.assert_allclose(np.linalg.inv(found.covariance[0]), precision, rtol=1e-8)


def test_evidence_of_m_rows_ago_weighs_one_in_e_and_the_prior_stays():
    memory = 50
    found = RowLogistic(np.zeros((1, 2)), np.full(1, np.exp(-1 / memory)))

    def learn(row, times):
        for number in range(times):
            found.agreement(row)
            found.learn(np.array([1 - 2 * (number % 2)]))
        return 1 / np.diagonal(found.covariance[0])

    before = learn(np.array([3.0, 0.0]), 200)
    after = learn(np.zeros(2), memory)
    assert after[0] == pytest.approx(before[0] / np.e)
    assert before[1] == after[1] == 1
    assert learn(np.zeros(2), 20 * memory) == pytest.approx(1, rel=2 / memory)


def test_regressions_side_by_side_are_those_alone_and_learn_only_their_labels():
    kept = np.array([0.99, 1.0])
    both = RowLogistic(np.zeros((2, 3)), kept, floor=0.05)
    alone = [RowLogistic(np.zeros((1, 3)), kept[k : k + 1], floor=0.05) for k in range(2)]
    for number, (row, sign) in enumerate(zip(ROWS, SIGNS, strict=True)):
        signs = np.array([sign, sign * (number % 2)])
        together = both.agreement(row)
        each = [one.agreement(row)[0] for one in alone]
        np.testing.assert_allclose(together, each, atol=1e-9)
        both.learn(signs)
        for one, known in zip(alone, signs, strict=True):
            before = one.covariance
            one.learn(np.array([known]))
            assert known or np.array_equal(one.covariance, before)
    right = [np.sign(both.agreement(row)) == sign for row, sign in zip(ROWS, SIGNS, strict=True)]
    assert np.mean(right, 0) == pytest.approx(1, abs=0.05)


def test_a_floor_limits_what_one_wrong_label_moves():
    moved = []
    for floor in (0.0, 0.05):
        found = RowLogistic(np.full((1, 1), 8.0), np.ones(1), floor=floor)
        found.agreement(np.ones(1))
        found.learn(-np.ones(1))
        moved.append(8 - float(found.weights[0, 0]))
    assert moved[1] < moved[0] / 50
