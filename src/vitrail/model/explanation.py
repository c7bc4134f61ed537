"""Explanations: reasons for a row, shape curves, interactions, and the importance of columns.

A reason is what a column added to the log-odds of a row, compared with background rows. Where the
score is linear in the bits, s = Σ_c s_c, the reason of column c against a background row b is its
part of the change along the straight line from b to x (the Aumann–Shapley value), exactly:

    (s_c(x) − s_c(b))·(g(s(x)) − g(s(b))) / (s(x) − s(b)),  g from scores to log-odds

For other models it is the Shapley value, sampled: columns change from b to x one by one, in a
random order and in its reverse. Reasons add up to the log-odds minus their mean over the background
rows either way. Curves are partial dependence (Friedman, Ann. Stat. 29, 2001, eq. 51).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.checks import check_made, checked_count
from vitrail.draws import Purpose, random_order, random_words
from vitrail.model.model import Model, as_inputs
from vitrail.numerics import DEFAULT_MEMORY, chunks
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder

WORK = 2e10  # weights read in all: a few seconds in packed words
LEAST_PAIRS, MOST_PAIRS = 8, 64  # of an order of the columns and its reverse, per row
BACKGROUND = 256  # rows for exact reasons of linear scores
CURVE_ROWS = 64  # background rows of a curve
MOST_VALUES = 24  # of a column on its curve
GROUPS = 8  # of networks, whose curves show the spread over the posterior
SHOWN = 6  # columns with curves, and among which pairs are measured


def signed(value: float) -> str:
    """A number with two decimals and its sign: `+1.32`, `−0.40`."""
    return f"{value:+.2f}".replace("-", "−")


MOST_ROWS, LEAST_ROWS = 256, 16  # random rows on which every column is redrawn for its importance
IMPORTANCE_WORK = 1e10  # weights read for it: under a second in packed words
FEWER = 32  # networks that are evaluated where all of them would take longer


@dataclass(frozen=True, eq=False)
class Curve:
    """How the log-odds depend on one column, averaged over background rows."""

    column: str  # its name
    values: tuple[str, ...]  # names of its values, in order
    log_odds: np.ndarray  # (values, O) minus the mean over values; O is 1 for two classes, else C
    spread: np.ndarray  # (values, O) standard deviation over groups of networks


@dataclass(frozen=True)
class Interaction:
    """Interaction of two columns."""

    columns: tuple[str, str]  # names of the pair
    strength: float  # half the root mean square of the second difference of the log-odds


@dataclass(frozen=True, eq=False)
class Explanation:
    """Reasons for rows, with curves and interactions of the columns that matter most for them."""

    columns: tuple[str, ...]  # those that the model reads
    classes: tuple[Any, ...]  # per row the class explained: the second of two, else the answer
    log_odds: np.ndarray  # (rows,) of that class
    base: np.ndarray  # (rows,) mean log-odds of that class over the background rows
    reasons: np.ndarray  # (rows, columns); base plus their sum is log_odds
    errors: np.ndarray  # (rows, columns) standard errors of the reasons; 0 where exact
    exact: bool  # whether the score is linear, so that nothing is sampled
    curves: tuple[Curve, ...] = ()  # of the first columns in `order`
    interactions: tuple[Interaction, ...] = ()  # of pairs of these, strongest first

    def __repr__(self) -> str:
        lines = [
            f"row {row}: log-odds of {label} {signed(value)} from {signed(base)}: {self.words(row)}"
            for row, (label, value, base) in enumerate(
                zip(self.classes[:SHOWN], self.log_odds, self.base, strict=False)
            )
        ]
        more = [f"{len(self.classes) - SHOWN:,} more rows"] * (len(self.classes) > SHOWN)
        return "\n".join([*lines, *more])

    @property
    def order(self) -> np.ndarray:
        """Places of the columns by the mean size of their reasons, largest first."""
        return np.argsort(-np.abs(self.reasons).mean(0), kind="stable")

    def top(self, row: int, count: int = 3) -> list[tuple[str, float, float]]:
        """The largest reasons for a row: name, log-odds added, standard error."""
        places = np.argsort(-np.abs(self.reasons[row]), kind="stable")[:count]
        found = ((self.columns[i], self.reasons[row, i], self.errors[row, i]) for i in places)
        return [(name, float(value), float(error)) for name, value, error in found if value]

    def words(self, row: int, count: int = 3) -> str:
        """The largest reasons for a row as text: `size +1.32 ± 0.05, colour −0.40 ± 0.02`."""
        return ", ".join(
            f"{name} {signed(value)}" + f" ± {error:.2f}" * (not self.exact)
            for name, value, error in self.top(row, count)
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, numbers and words, for JSON."""
        return {
            **{name: getattr(self, name) for name in ("columns", "exact")},
            "classes": [str(label) for label in self.classes],
            **{
                name: getattr(self, name).tolist()
                for name in ("log_odds", "base", "reasons", "errors")
            },
            "curves": [
                {**vars(one), "log_odds": one.log_odds.tolist(), "spread": one.spread.tolist()}
                for one in self.curves
            ],
            "interactions": [vars(one) for one in self.interactions],
        }


def explain(model: Model, rows: Any, *, background: Any = None, seed: int = 0) -> Explanation:
    """What each column added to the log-odds of each row, with curves and interactions.

    Args:
        model: Any model.
        rows: The rows to explain, with the columns that the model was trained with.
        background: Rows to compare with, such as those of training. None draws every column
            uniformly from the values that its encoder distinguishes.
        seed: Of the background rows used and of the orders of columns.

    Returns:
        The explanation.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [0, 0], [1, 0], [1, 1]] * 5, ["no", "no", "yes", "yes"] * 5
        >>> found = explain(BinaryNetClassifier(random_state=0).fit(rows, labels).model_, rows[:2])
        >>> found.top(0, 1)[0][0]
        'x0'
    """
    check_made(model, "answers_of", "`load_model` or `BinaryNetClassifier.fit(…).model_`")
    checked_count("seed", seed, 0)
    inputs = model.inputs(rows)
    if not len(inputs):
        raise ValueError("expected rows to explain, got none; give a table that has some")
    others = _background(model, background, seed)
    if exact := is_linear(model):
        base, reasons, errors = _linear_reasons(model, inputs, others)
    else:
        base, reasons, errors = _sampled(model, inputs, others, seed)
    log_odds, numbers = _log_odds(model, inputs), np.zeros(len(inputs), np.int64)
    classes = [model.labels.classes[-1]] * len(inputs)
    if model.num_classes > 2:
        numbers = model.answers_of(inputs).numbers.numpy()
        classes = [model.labels.classes[number] for number in numbers]
    each = np.arange(len(inputs))
    explanation = Explanation(
        tuple(name for name, _ in column_bits(model)),
        tuple(classes),
        log_odds[each, numbers],
        base[numbers],
        reasons[each, :, numbers],
        errors[each, :, numbers],
        exact,
    )
    shown = explanation.order[:SHOWN].tolist()
    return replace(
        explanation,
        curves=tuple(_curves(model, others[:CURVE_ROWS], shown)),
        interactions=tuple(_interactions(model, others, shown)),
    )


def is_linear(model: Model) -> bool:
    """Whether the score of two classes is linear in the bits: no hidden unit, no clipped margin."""
    return (
        model.num_classes == 2
        and model.program.hidden == ()
        and max_margin(model.networks, model.encoder, model.coding == "bipolar") <= model.clip
    )


def max_margin(networks: Tensor, encoder: TableEncoder | BitColumns, bipolar: bool) -> int:
    """The largest |2h − 1| of any of the networks (K, N, I) on any row."""
    weights, bits = 2 * networks.long() - 1, len(encoder.bit_names)
    low = high = weights[..., bits:].sum(-1)
    for place, states in encoder.states():
        values = torch.from_numpy(2 * states - 1 if bipolar else states)
        sums = weights[..., place] @ values.T  # (K, N, states)
        low, high = low + sums.amin(-1), high + sums.amax(-1)
    return int(torch.maximum((2 * low - 1).abs(), (2 * high - 1).abs()).max())


def _log_odds(model: Model, inputs: Tensor) -> np.ndarray:
    """Log-odds (rows, O): of the second of two classes, else of each."""
    found = model.decisions_of(inputs)
    return found[:, 1:] if model.num_classes == 2 else found


def _background(model: Model, rows: Any, seed: int) -> Tensor:
    """The background rows, in random order."""
    if rows is not None:
        given = model.inputs(rows)
        if not len(given):
            raise ValueError("expected background rows, got none; leave them out, or give some")
        return given[torch.from_numpy(random_order(seed, len(given))[:BACKGROUND])]
    columns = list(zip(model.encoder.states(), model.encoder.value_names(), strict=True))
    words = random_words(seed, Purpose.INPUTS, BACKGROUND * len(columns)).reshape(-1, BACKGROUND)
    bits = np.zeros((BACKGROUND, len(model.encoder.bit_names)), np.int8)
    for ((span, states), names), word in zip(columns, words, strict=True):
        bits[:, span] = states[word % (len(names) or len(states))]
    return as_inputs(bits, model.coding, model.bias)


Reasons = tuple[np.ndarray, np.ndarray, np.ndarray]  # base (O,), reasons and errors (rows, C, O)


def _linear_reasons(model: Model, inputs: Tensor, others: Tensor) -> Reasons:
    """Exact reasons against all background rows."""
    weights = (4 * model.networks[:, 0].long() - 2) * model.votes  # (K, I): 2h of score
    per_input = weights.sum(0).double().numpy()
    spans = [span for _, span in column_bits(model)]

    def parts(rows: Tensor) -> np.ndarray:
        each = rows.double().numpy() * per_input
        return np.stack([each[:, span].sum(1) for span in spans], 1)  # (rows, columns)

    mine, theirs = parts(inputs), parts(others)
    end, start = _log_odds(model, inputs)[:, 0], _log_odds(model, others)[:, 0]
    reasons = np.zeros_like(mine)
    for row, (own, value) in enumerate(zip(mine, end, strict=True)):
        moved = own - theirs  # (background, columns)
        change = moved.sum(1)
        other = change != 0
        slope = np.zeros(len(others))
        slope[other] = (value - start[other]) / change[other]
        slope[~other] = slope[other].mean() if other.any() else 0.0  # moves that cancel each other
        reasons[row] = (moved * slope[:, None]).mean(0)
    return start.mean(keepdims=True), reasons[..., None], np.zeros((*reasons.shape, 1))


def _sampled(model: Model, inputs: Tensor, others: Tensor, seed: int) -> Reasons:
    """Shapley values by random orders of the columns, the same for all rows."""
    spans, bits = [span for _, span in column_bits(model)], inputs.shape[1]
    work = 2.0 * len(spans) * len(inputs) * model.networks.numel()
    pairs = int(np.clip(WORK // work, LEAST_PAIRS, MOST_PAIRS))
    others = others[torch.arange(pairs) % len(others)]
    base = _log_odds(model, others)
    total = np.zeros((len(inputs), len(spans), base.shape[1]))
    squares = np.zeros_like(total)
    for pair, other in enumerate(others):
        order = random_order(seed + 1 + pair, len(spans))
        for part in chunks(len(inputs), 4 * bits * (len(spans) + 1), DEFAULT_MEMORY):
            found = sum(
                _steps(model, inputs[part], other, [spans[i] for i in way])[:, np.argsort(way)]
                for way in (order, order[::-1])
            )
            total[part] += found / 2
            squares[part] += (found / 2) ** 2
    mean = total / pairs
    variance = np.maximum(squares / pairs - mean**2, 0)
    return base.mean(0), mean, np.sqrt(variance / (pairs - 1))


def _steps(model: Model, rows: Tensor, start: Tensor, spans: list[slice]) -> np.ndarray:
    """Changes of the log-odds while columns become those of the rows, (rows, columns, O)."""
    path = start.repeat(len(spans) + 1, len(rows), 1)
    for step, span in enumerate(spans, 1):
        path[step:, :, span] = rows[:, span]
    values = _log_odds(model, path.flatten(0, 1)).reshape(len(path), len(rows), -1)
    return np.diff(values, axis=0).transpose(1, 0, 2)


def _groups(model: Model) -> list[Model]:
    """The networks in groups; one where they are no draws of a posterior."""
    count = 1 if "compressed" in model.record else min(GROUPS, len(model.networks))
    return [
        replace(model, networks=model.networks[i::count], votes=model.votes[i::count])
        for i in range(count)
    ]


def _curves(model: Model, others: Tensor, shown: list[int]) -> Iterator[Curve]:
    columns, names = column_bits(model), list(model.encoder.value_names())
    states = [bits for _, bits in model.encoder.states()]
    low, groups = -1 if model.coding == "bipolar" else 0, _groups(model)
    for place in shown:
        name, span = columns[place]
        count = len(names[place])
        if count < 2:
            continue
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_VALUES)).round().astype(int))
        rows = others.repeat(len(chosen), 1, 1)
        rows[:, :, span] = torch.from_numpy(np.where(states[place][chosen] > 0, 1, low))[
            :, None
        ].to(rows.dtype)

        def curve(part: Model, rows: Tensor) -> np.ndarray:
            values = _log_odds(part, rows.flatten(0, 1)).reshape(*rows.shape[:2], -1).mean(1)
            return values - values.mean(0)

        spread = np.std([curve(part, rows) for part in groups], axis=0)
        values = tuple(names[place][value] for value in chosen)
        yield Curve(name, values, curve(model, rows), spread)


def _interactions(model: Model, others: Tensor, shown: list[int]) -> list[Interaction]:
    """Pairs by E (f(x) − f(x_a) − f(x_b) + f(x_ab))², columns a and b being those of other rows."""
    columns, half = column_bits(model), min(CURVE_ROWS, len(others))
    old, new = others[:half], others[-half:].flip(0)

    def changed(*places: int) -> np.ndarray:
        rows = old.clone()
        for place in places:
            rows[:, columns[place][1]] = new[:, columns[place][1]]
        return _log_odds(model, rows)

    base, alone = changed(), {place: changed(place) for place in shown}
    found = [
        Interaction(
            (columns[a][0], columns[b][0]),
            float(np.sqrt(((base - alone[a] - alone[b] + changed(a, b)) ** 2).mean())) / 2,
        )
        for a, b in combinations(shown, 2)
    ]
    return sorted(found, key=lambda one: -one.strength)


def column_bits(model: Model) -> list[tuple[str, slice]]:
    """The columns that have bits, and the places of their bits."""
    encoder = model.encoder
    bits = isinstance(encoder, BitColumns)
    names = encoder.names if bits else [code.name for code in encoder.columns]
    return list(zip(names, encoder.spans, strict=True))


def importances(model: Model) -> np.ndarray:
    """The share of the votes' variance that each column of training accounts for, (columns,).

    Rows x are drawn with every column uniform over the values that its encoder distinguishes. With
    score f(x), the weighted mean of clipped margins, and x' equal to x but for a new draw of the
    column, the importance is the total effect E (f(x) − f(x'))² / 2 (Jansen, Comput. Phys. Commun.
    117, 1999, eq. 11), summed over nets and divided by the sum over columns. Interactions count
    for every column in them. Networks that disagree about a column cancel in f, so noise scores
    near zero. All are zero where no column moves a vote.
    """
    constant = set(model.encoder.constant if isinstance(model.encoder, BitColumns) else ())
    columns, states = column_bits(model), [bits for _, bits in model.encoder.states()]
    work = len(columns) * model.networks.numel()
    if work * LEAST_ROWS > IMPORTANCE_WORK:
        every = max(1, len(model.networks) // FEWER)
        model = replace(model, networks=model.networks[::every], votes=model.votes[::every])
        work = len(columns) * model.networks.numel()
    rows = int(np.clip(IMPORTANCE_WORK // work, LEAST_ROWS, MOST_ROWS))
    words = random_words(0, Purpose.INPUTS, 2 * rows * len(columns)).reshape(-1, 2, rows)
    old, new = np.zeros((2, rows, len(model.encoder.bit_names)), np.int8)
    for (_, span), bits, (first, second) in zip(columns, states, words, strict=True):
        old[:, span], new[:, span] = bits[first % len(bits)], bits[second % len(bits)]
    base, found = _scores(model, old), dict.fromkeys(model.encoder.all_names, 0.0)
    for part in chunks(len(columns), old.size, DEFAULT_MEMORY):
        changed = np.repeat(old[None], part.stop - part.start, 0)
        for one, (_, span) in zip(changed, columns[part], strict=True):
            one[:, span] = new[:, span]
        moved = _scores(model, changed.reshape(-1, old.shape[1])).reshape(-1, *base.shape) - base
        for (name, _), effect in zip(columns[part], moved.square().mean(1).sum(1), strict=True):
            found[name] = 0.0 if name in constant else float(effect)
    total = sum(found.values())
    return np.array(list(found.values())) / (total or 1.0)


def _scores(model: Model, bits: np.ndarray) -> Tensor:
    """Scores of bits as shares of the largest, (rows, N·O) float64 in [−1, 1]."""
    inputs = as_inputs(bits, model.coding, model.bias)
    scores = torch.cat([score for score, _ in model.tallies(inputs)])
    most = model.clip * model.votes.sum(0)[:, None]
    return (scores.double() / most).flatten(1)
