"""Figure 1: agreement of stochastic solvers with those that they approximate.

Left, exact against stochastic belief propagation on N weights and M = 2^N examples. Right, S3P
(variable side exact) against S4P (sampled) on 20 weights. Both cover the grid of the paper's
appendix A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from vitrail.lab.experiments.claims import (
    Claim,
    Difference,
    Verdict,
    found_or_decoded,
    mean,
    verdict_of,
)
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    changes,
    column,
    difference,
    matched,
    pick,
)
from vitrail.lab.experiments.methods import S3P, S4P, SBP
from vitrail.lab.experiments.tasks import solve_linear
from vitrail.lab.experiments.units import Rows, Unit, unit
from vitrail.lab.plots import Cloud, Comparison, Figure, comparison_figure

NEGLIGIBLE = 0.02  # mean change of accuracy
PROBLEM = ("weights", "examples", "repeat", "damping")
SETTING = (*PROBLEM, "samples", "bins")
SURVEY = (*SETTING, "survey_samples")


@dataclass(frozen=True)
class Config:
    """Grids as printed; the paper does not state the data, the steps or the repeats.

    survey_repeats: problems of each size for each (bins, damping, inner samples). Every such
    setting has its own problems, the same for S3P, S4P and all numbers of survey samples.
    """

    widths: tuple[int, ...] = (4, 6, 8, 10)
    dampings: tuple[float, ...] = (0.8, 0.5, 0.2)
    samples: tuple[int, ...] = (5, 8, 10, 12, 15, 20, 25, 50)
    repeats: int = 10
    survey_width: int = 20
    bins: tuple[int, ...] = (31, 51, 101, 201)
    inner_samples: tuple[int, ...] = (5, 10, 20, 50, 100)
    survey_samples: tuple[int, ...] = (5, 10, 20, 50, 100)
    survey_sizes: tuple[int, ...] = (8, 12, 16, 32)
    survey_repeats: int = 1
    steps: int = 20
    survey_steps: int = 10  # S3P at 32 examples takes most of the time of all figures
    seed: int = 1


FULL = Config()
QUICK = Config(
    samples=(5, 10, 25, 50),
    repeats=3,
    dampings=(0.8, 0.2),
    bins=(31, 51),
    inner_samples=(5, 20),
    survey_samples=(5, 20, 100),
    survey_sizes=(12, 16),
    survey_repeats=2,
)


def units(config: Config) -> Sequence[Unit]:
    """Left: one unit per method. Right: one per method and size."""
    glass = {"family": "glass", "seed": config.seed}
    left = {
        "sizes": tuple((width, 2**width) for width in config.widths),
        "repeats": config.repeats,
        "epochs": config.steps,
    }
    work = []
    for damping, samples in product(config.dampings, (0, *config.samples)):
        exact = SBP("BP", update="closed_form", samples=0, damping=damping)
        method = SBP(damping=damping, samples=samples) if samples else exact
        work.append(unit(solve_linear, **glass, **left, method=method))
    right = {"repeats": config.survey_repeats, "epochs": config.survey_steps}
    grid = product(config.bins, config.dampings, config.inner_samples)
    for number, (bins, damping, inner) in enumerate(grid):
        for draws, kind, size in product(config.survey_samples, (S3P, S4P), config.survey_sizes):
            method = kind(samples=inner, survey_samples=draws, bins=bins, damping=damping)
            where = {
                "sizes": ((config.survey_width, size),),
                "first": number * config.survey_repeats,
            }
            work.append(unit(solve_linear, **glass, **right, **where, method=method))
    return work


def draw(config: Config, rows: Rows, columns: int) -> Figure:
    """Two scatter plots; on the right many pairs are equal, and a marker's area counts them."""
    left, right = [], []
    for width in config.widths:
        exact, sampled = _belief_pairs(rows, weights=width)
        x, y = column(exact, "decoded"), column(sampled, "decoded")
        area = [1.6 * value for value in column(sampled, "samples")]
        left.append(Cloud(f"N = {width}", x, y, area))
    for draws in config.survey_samples:
        pairs = (column(part, "decoded") for part in _survey_pairs(rows, survey_samples=draws))
        counts = Counter(zip(*pairs, strict=True))
        x, y = zip(*counts, strict=True)
        area = [5.0 * count for count in counts.values()]
        right.append(Cloud(f"{draws} survey samples", x, y, area))
    area = f"area: samples, {min(config.samples)} to {max(config.samples)}"
    return comparison_figure(
        [
            Comparison("BP", "SBP", tuple(left), area),
            Comparison("S3P", "S4P", tuple(right), "area: number of pairs at the point"),
        ],
        columns,
    )


def _belief_pairs(rows: Rows, **wanted: object) -> tuple[Rows, Rows]:
    """Exact rows beside sampled ones of the same problem and damping."""
    return matched(pick(rows, method="BP"), pick(rows, method="SBP", **wanted), PROBLEM)


def _survey_pairs(rows: Rows, **wanted: object) -> tuple[Rows, Rows]:
    """S3P and S4P rows of the same problem and settings."""
    return matched(pick(rows, method="S3P"), pick(rows, method="S4P", **wanted), SURVEY)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Mean accuracies by the number of samples."""
    belief = {(n,): _belief_pairs(rows, samples=n) for n in config.samples}
    survey = {
        (draws, inner): _survey_pairs(rows, survey_samples=draws, samples=inner)
        for draws, inner in product(config.survey_samples, config.inner_samples)
    }
    return [
        _table(("samples",), ("BP", "SBP"), belief),
        _table(("survey samples", "inner samples"), ("S3P", "S4P"), survey),
    ]


def _table(
    names: tuple[str, ...], methods: tuple[str, str], pairs: dict[Any, tuple[Rows, Rows]]
) -> ResultTable:
    parts = list(product((("best decoded", "decoded"), ("last", "last")), (0, 1)))
    lines = [
        (*map(str, key), *(f"{mean(column(pair[i], name)):.3f}" for (_, name), i in parts))
        for key, pair in pairs.items()
    ]
    numbers = [f"{title}, {methods[i]}" for (title, _), i in parts]
    title = f"{' and '.join(methods)} by samples: mean accuracy"
    return ResultTable(title, (*names, *numbers), tuple(lines))


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """Agreement of BP and SBP, the weight of L_BP, S4P against S3P, the weight of L_SP."""
    return [
        _agreement(config, rows),
        _few_samples(config, rows),
        _s4p(rows),
        _more_draws(config, rows),
    ]


def _gain(first: Rows, second: Rows, name: str) -> Difference:
    return difference(first, second, PROBLEM, name, over=("weights", "repeat"))


def _agreement(config: Config, rows: Rows) -> Claim:
    few = min(config.samples)
    exact, sampled = pick(rows, method="BP"), pick(rows, method="SBP")
    best, last = (_gain(exact, sampled, name) for name in ("decoded", "last"))
    fewest = _gain(exact, pick(sampled, samples=few), "decoded")
    distance = mean([abs(change) for change in changes(exact, sampled, PROBLEM, "decoded")])
    alike = max(abs(gain.mean) for gain in (best, last, fewest)) <= NEGLIGIBLE
    close = Verdict.HOLDS if distance <= NEGLIGIBLE else Verdict.PARTLY
    return Claim(
        "SBP agrees nearly identically with BP, even with few samples.",
        f"SBP minus BP, best decoded accuracy: {best}, with {few} samples {fewest}; at the last "
        f"step: {last}. Criterion: means within {NEGLIGIBLE:g}. Mean distance of a pair: "
        f"{distance:.3f}.",
        close if alike else Verdict.FAILS,
    )


def _few_samples(config: Config, rows: Rows) -> Claim:
    few, many = min(config.samples), max(config.samples)
    first, second = (pick(rows, method="SBP", samples=count) for count in (few, many))
    gain = _gain(first, second, "decoded")
    return Claim(
        "SBP is relatively insensitive to the number of samples L_BP.",
        f"{many} samples instead of {few} change the best decoded accuracy by {gain}; criterion: "
        f"less than {NEGLIGIBLE:g}.",
        Verdict.HOLDS if abs(gain.mean) <= NEGLIGIBLE else Verdict.FAILS,
    )


def _s4p(rows: Rows) -> Claim:
    exact, sampled = pick(rows, method="S3P"), pick(rows, method="S4P")
    gain = difference(exact, sampled, SURVEY, "decoded")
    found = changes(exact, sampled, SURVEY, "decoded")
    wins, losses = sum(change > 0 for change in found), sum(change < 0 for change in found)
    return Claim(
        "S4P usually outperforms S3P.",
        f"With one score per step for both, S4P minus S3P is {gain} in best decoded accuracy. Of "
        f"{len(found)} pairs S4P is better in {wins}, worse in {losses}, equal in the rest.",
        verdict_of([gain]),
        "Scoring every track of S4P, not only its decoded marginals (figure 3).",
    )


def _more_draws(config: Config, rows: Rows) -> Claim:
    least, most = min(config.survey_samples), max(config.survey_samples)
    few, many = (pick(rows, method="S4P", survey_samples=draws) for draws in (least, most))
    decoded, best = (difference(few, many, SETTING, name) for name in ("decoded", "best"))
    return Claim(
        "Higher numbers of MC samples lead to better S4P performance.",
        f"{most} survey samples instead of {least} change the best decoded accuracy by {decoded}, "
        f"and the best of all tracks by {best}.",
        found_or_decoded(best, decoded),
        "Scoring all tracks; decoded marginals do not gain.",
    )


EXPERIMENT = Experiment(
    "fig1",
    "Consistency of stochastic and exact message passing",
    "Random problems (glass) for the grid of settings in the paper's appendix A: accuracy of the "
    "best decoded configuration, with 20 steps on the left and 10 on the right. On the dashed line "
    "both solvers are equal. The paper does not state its steps or data.",
    FULL,
    QUICK,
    units,
    draw,
    tables,
    claims,
    columns=2,
)
