"""Small tables whose truth is known: training rows by a seed, and the population they come from.

A problem is asked about its population, not about a sample of labels: test rows carry how often
they occur and the probability of every class, so figures have no noise of test labels. Where rows
are words or bits the test rows are all there are; where they are numbers, many fresh ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

FLIPPED_ROWS = (200, 1000, 5000, 60_000)  # of problems with flipped labels
FRESH_ROWS = 4000  # of numbers; a threshold that is off by 1 % of them costs 40 rows


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, and the population: its rows, their weights and class probabilities."""

    rows: np.ndarray  # (n, columns): bits, numbers, or objects where there are words
    labels: np.ndarray  # (n,) class numbers
    test_rows: np.ndarray  # (m, columns)
    weight: np.ndarray  # (m,), adding up to one
    truth: np.ndarray  # (m, classes), P(class) of each test row
    draws: int | None  # independent rows among those to learn from; None where they are all rows


Generator = Callable[[np.random.Generator], Problem]


def labels_of(draw: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """One class number per row, by its probabilities (n, classes)."""
    return (draw.random((len(truth), 1)) > truth.cumsum(1)[:, :-1]).sum(1)


def two_classes(yes: np.ndarray) -> np.ndarray:
    """P(no), P(yes) of each row, (n, 2)."""
    return np.stack([1 - yes, yes], 1)


def sampled(
    rows_of: Callable[[np.random.Generator, int], np.ndarray],
    truth_of: Callable[[np.ndarray], np.ndarray],
    rows: int,
) -> Generator:
    """Rows drawn one by one, labels by their truth; test rows are fresh ones."""

    def make(draw: np.random.Generator) -> Problem:
        test = rows_of(draw, FRESH_ROWS)
        train = rows_of(draw, rows)
        labels = labels_of(draw, truth_of(train))
        weight = np.full(FRESH_ROWS, 1 / FRESH_ROWS)
        return Problem(train, labels, test, weight, truth_of(test), rows)

    return make


def from_cells(cells: np.ndarray, weight: np.ndarray, truth: np.ndarray, rows: int) -> Generator:
    """Rows drawn from few distinct ones; the test rows are these."""

    def make(draw: np.random.Generator) -> Problem:
        which = draw.choice(len(cells), rows, p=weight)
        return Problem(cells[which], labels_of(draw, truth[which]), cells, weight, truth, rows)

    return make


# --- functions of bits: every row, as often as the others ----------------------------------------


def function(cells: np.ndarray, rule: Callable[[np.ndarray], Any], repeats: int) -> Generator:
    """Every row `repeats` times with the label of the rule, in random order."""
    numbers = np.array([int(rule(cell)) for cell in cells])

    def make(draw: np.random.Generator) -> Problem:
        which = draw.permutation(np.repeat(np.arange(len(cells)), repeats))
        weight = np.full(len(cells), 1 / len(cells))
        truth = np.eye(numbers.max() + 1)[numbers]
        return Problem(cells[which], numbers[which], cells, weight, truth, None)

    return make


def all_bits(count: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=count)))


def words(*columns: Sequence[str]) -> np.ndarray:
    return np.array(list(product(*columns)), dtype=object)


FUNCTIONS: dict[str, tuple[np.ndarray, Callable[[np.ndarray], Any]]] = {
    "copy of 1 bit": (all_bits(1), lambda x: x[0]),
    "and of 2 bits": (all_bits(2), np.all),
    "or of 2 bits": (all_bits(2), np.any),
    "xor of 2 bits": (all_bits(2), lambda x: x.sum() % 2),
    "and of 3 bits": (all_bits(3), np.all),
    "or of 3 bits": (all_bits(3), np.any),
    "xor of 2 in 3 bits": (all_bits(3), lambda x: x[0] ^ x[2]),
    "majority of 3 bits": (all_bits(3), lambda x: x.sum() > 1),
    "parity of 3 bits": (all_bits(3), lambda x: x.sum() % 2),
    "majority of 5 bits": (all_bits(5), lambda x: x.sum() > 2),
    "parity of 4 bits": (all_bits(4), lambda x: x.sum() % 2),
    "equality of 2 + 2 bits": (all_bits(4), lambda x: (x[:2] == x[2:]).all()),
    "and of 6 bits": (all_bits(6), np.all),
    "equality of 3 + 3 bits": (all_bits(6), lambda x: (x[:3] == x[3:]).all()),
    "equality of 2 words": (words("abc", "abc"), lambda x: x[0] == x[1]),
    "class of 1 word in 3": (words("abcdef", "xyz"), lambda x: "abcdef".index(x[0]) // 2),
}
REPEATS = (1, 5, 50)


# --- numbers with noise --------------------------------------------------------------------------


def flipped(rule: Callable[[np.ndarray], np.ndarray], share: float) -> Callable[..., np.ndarray]:
    """P of each class where a share of the rule's labels is flipped."""
    return lambda rows: two_classes(np.where(rule(rows), 1 - share, share))


def numbers(columns: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda draw, rows: draw.normal(size=(rows, columns))


def number_and_integer(draw: np.random.Generator, rows: int) -> np.ndarray:
    return np.stack([draw.normal(size=rows), draw.integers(0, 10, rows)], 1)


def first_positive(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0].astype(float) > 0


def sum_positive(rows: np.ndarray) -> np.ndarray:
    return rows.sum(1) > 0


def noise(share: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: two_classes(np.full(len(rows), share))


def clusters(rows: int, distance: float) -> Generator:
    """One number about −distance or +distance; as many rows of either class."""

    def truth(x: np.ndarray) -> np.ndarray:
        return two_classes(1 / (1 + np.exp(-2 * distance * x[:, 0])))

    def drawn(draw: np.random.Generator, labels: np.ndarray) -> np.ndarray:
        return draw.normal(size=(len(labels), 1)) + distance * (2 * labels[:, None] - 1)

    def make(draw: np.random.Generator) -> Problem:
        labels, fresh = np.arange(rows) % 2, np.arange(FRESH_ROWS) % 2
        test = drawn(draw, fresh)
        weight = np.full(FRESH_ROWS, 1 / FRESH_ROWS)
        return Problem(drawn(draw, labels), labels, test, weight, truth(test), rows)

    return make


def rare(positives: int, negatives: int) -> Generator:
    """One number, normal about 0 and, for few rows, about 3; a second number says nothing."""
    share = positives / (positives + negatives)

    def truth(x: np.ndarray) -> np.ndarray:
        odds = share / (1 - share) * np.exp(3 * x[:, 0] - 4.5)
        return two_classes(odds / (1 + odds))

    def rows_of(draw: np.random.Generator, rows: int, labels: np.ndarray) -> np.ndarray:
        return draw.normal(size=(rows, 2)) + np.stack([3.0 * labels, 0 * labels], 1)

    def make(draw: np.random.Generator) -> Problem:
        labels = draw.permutation(np.arange(positives + negatives) < positives).astype(int)
        fresh = (draw.random(FRESH_ROWS) < share).astype(int)
        test = rows_of(draw, FRESH_ROWS, fresh)
        train = rows_of(draw, len(labels), labels)
        weight = np.full(FRESH_ROWS, 1 / FRESH_ROWS)
        return Problem(train, labels, test, weight, truth(test), len(labels))

    return make


def three_clusters(rows: int) -> Generator:
    """Two numbers about three corners of a triangle."""
    corners = 2.0 * np.array([[0, 1], [-0.87, -0.5], [0.87, -0.5]])

    def truth(x: np.ndarray) -> np.ndarray:
        near = np.exp(x @ corners.T)
        return near / near.sum(1, keepdims=True)

    def rows_of(draw: np.random.Generator, count: int) -> np.ndarray:
        return draw.normal(size=(count, 2)) + corners[draw.integers(0, 3, count)]

    return sampled(rows_of, truth, rows)


def repeated(make_one: Generator, times: int) -> Generator:
    """The same training rows several times over."""

    def make(draw: np.random.Generator) -> Problem:
        one = make_one(draw)
        which = draw.permutation(np.tile(np.arange(len(one.labels)), times))
        return replace(one, rows=one.rows[which], labels=one.labels[which])

    return make


def with_gaps(rows_of: Callable[..., np.ndarray], share: float) -> Callable[..., np.ndarray]:
    """Rows whose first cell is missing in a share of them."""

    def holed(draw: np.random.Generator, rows: int) -> np.ndarray:
        made = rows_of(draw, rows)
        made[draw.random(rows) < share, 0] = np.nan
        return made

    return holed


def flipped_or_missing(rows: np.ndarray) -> np.ndarray:
    """P of each class by the sign of the first number, a coin where it is missing."""
    known = flipped(first_positive, 0.05)(rows)
    return np.where(np.isnan(rows[:, :1]), 0.5, known)


# --- words ---------------------------------------------------------------------------------------

TITANIC = {  # class, sex, age: lost, saved
    ("1st", "male", "child"): (0, 5),
    ("1st", "female", "child"): (0, 1),
    ("2nd", "male", "child"): (0, 11),
    ("2nd", "female", "child"): (0, 13),
    ("3rd", "male", "child"): (35, 13),
    ("3rd", "female", "child"): (17, 14),
    ("1st", "male", "adult"): (118, 57),
    ("1st", "female", "adult"): (4, 140),
    ("2nd", "male", "adult"): (154, 14),
    ("2nd", "female", "adult"): (13, 80),
    ("3rd", "male", "adult"): (387, 75),
    ("3rd", "female", "adult"): (89, 76),
    ("crew", "male", "adult"): (670, 192),
    ("crew", "female", "adult"): (3, 20),
}


def titanic() -> Generator:
    """As many passengers as there were, drawn from them."""
    counts = np.array(list(TITANIC.values()), float)
    cells = np.array(list(TITANIC), dtype=object)
    total = counts.sum(1)
    return from_cells(cells, total / total.sum(), counts / total[:, None], rows=int(total.sum()))


def ten_words(rows: int, gaps: float = 0.0) -> Generator:
    """One column of ten words, five of which mean yes; a missing cell means nothing."""
    cells = np.array([*(f"word{number}" for number in range(10)), None], dtype=object)[:, None]
    yes = np.array([0.0, 1.0] * 5 + [0.5])
    weight = np.array([(1 - gaps) / 10] * 10 + [gaps])
    seen = weight > 0
    return from_cells(cells[seen], weight[seen], two_classes(yes[seen]), rows)


def survey(rows: int) -> Generator:
    """Four questions with three answers each; their effects on the log-odds add up."""
    cells = words(*(["never", "sometimes", "often"],) * 4)
    effect = {"never": -1.0, "sometimes": 0.0, "often": 1.0}
    log_odds = np.array([1.2 * sum(effect[answer] for answer in cell) for cell in cells])
    even = np.full(len(cells), 1 / len(cells))
    return from_cells(cells, even, two_classes(1 / (1 + np.exp(-log_odds))), rows)


def coin_bits(share: float, rows: int) -> Generator:
    """Five random bits and labels that do not depend on them."""
    cells = all_bits(5)
    return from_cells(cells, np.full(32, 1 / 32), noise(share)(cells), rows)


# --- all of them ---------------------------------------------------------------------------------


def _all() -> dict[str, Generator]:
    made: dict[str, Generator] = {}
    for name, (cells, rule) in FUNCTIONS.items():
        for repeats in REPEATS:
            made[f"{name} × {repeats}"] = function(cells, rule, repeats)
    for share, rows in product((0.1, 0.25), FLIPPED_ROWS):
        made[f"1 number, {share:.0%} flipped, {rows} rows"] = sampled(
            numbers(1), flipped(first_positive, share), rows
        )
        made[f"2 numbers, {share:.0%} flipped, {rows} rows"] = sampled(
            numbers(2), flipped(sum_positive, share), rows
        )
    for rows in (5000, 20_000):
        made[f"number and integer, {rows} rows"] = sampled(
            number_and_integer, flipped(first_positive, 0.1), rows
        )
    made["10 words, 500 rows"] = ten_words(500)
    made["titanic"] = titanic()
    made["survey, 5000 rows"] = survey(5000)
    for times in (1, 2, 5, 20):
        rule = sampled(numbers(2), flipped(first_positive, 0.0), 100)
        made[f"100 rows × {times}"] = repeated(rule, times)
    made["noise, balanced"] = coin_bits(0.5, 1000)
    made["noise, 80 to 20"] = coin_bits(0.2, 1000)
    made["noise, numbers"] = sampled(numbers(3), noise(0.5), 400)
    for rows in (2, 6, 10):
        made[f"{rows} rows"] = clusters(rows, 3.0)
    made["1 in 500"] = rare(10, 5000)
    made["4 of 2004"] = rare(4, 2000)
    for rows in (150, 1500):
        made[f"3 classes, {rows} rows"] = three_clusters(rows)
    made["missing numbers"] = sampled(with_gaps(numbers(2), 0.3), flipped_or_missing, 800)
    made["missing words"] = ten_words(500, gaps=0.2)
    return made


PROBLEMS = _all()


def problem(name: str, seed: int) -> Problem:
    """The problem of that name; a seed gives other rows and another order."""
    number = list(PROBLEMS).index(name)
    return PROBLEMS[name](np.random.default_rng([seed, number]))
