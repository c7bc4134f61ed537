"""Figure 1: do the stochastic solvers agree with those they approximate?

Left, exact against stochastic belief propagation on N weights and M = 2^N examples. Right, S3P
(variable side exact) against S4P (sampled) on 20 weights. Both over the whole grid of the
paper's appendix A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from vitrail.lab.experiments.claims import (
    Claim,
    Difference,
    Verdict,
    found_or_decoded,
    judged,
    mean,
)
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    column,
    difference,
    matched,
    pick,
)
from vitrail.lab.experiments.methods import S3P, S4P, SBP, solve
from vitrail.lab.experiments.tasks import linear_graph, problems
from vitrail.lab.experiments.units import Rows, Unit
from vitrail.lab.plots import Cloud, Comparison, Figure, comparison_figure

HARDLY = 0.02  # a mean change of accuracy below this is what we call hardly any


@dataclass(frozen=True)
class Config:
    """Grids as printed; the paper does not state the data, the steps or the repeats.

    survey_repeats: problems of each size for each (bins, damping, inner samples); every such
    setting has problems of its own, the same for S3P, S4P and all numbers of survey samples.
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

Side = Literal["belief", "survey"]


def units(config: Config) -> Sequence[Unit]:
    """Left: a unit a (damping, samples), exact BP for each. Right: one a point and solver."""
    work = []
    for damping in config.dampings:
        exact = SBP("BP", update="closed_form", samples=0, damping=damping)
        sampled = [SBP(damping=damping, samples=samples) for samples in config.samples]
        work += [_belief_unit(config, method) for method in (exact, *sampled)]
    grid = product(config.bins, config.dampings, config.inner_samples)
    for number, (bins, damping, inner) in enumerate(grid):
        for draws in config.survey_samples:
            settings = {"samples": inner, "survey_samples": draws, "bins": bins, "damping": damping}
            work += _survey_units(config, S3P(**settings), number)
            work += _survey_units(config, S4P(**settings), number)
    return work


def _belief_unit(config: Config, method: SBP) -> Unit:
    cost = 0.1 + config.repeats * config.steps * (0.003 + 5e-5 * method.samples)
    sizes = tuple((width, 2**width) for width in config.widths)
    settings = {
        "side": "belief",
        "method": method,
        "sizes": sizes,
        "repeats": config.repeats,
        "first": 0,
        "steps": config.steps,
        "seed": config.seed,
    }
    return Unit(consistency, settings, cost)


def _survey_units(config: Config, method: S3P | S4P, number: int) -> list[Unit]:
    """One unit a size: what is solved early then costs little."""
    work = []
    for size in config.survey_sizes:
        edges = config.survey_repeats * config.survey_width * size
        cost = config.survey_steps * (0.008 + edges * 4e-7 * method.survey_samples)
        if isinstance(method, S3P):
            cost += config.survey_steps * edges * size * (1.5e-5 + 1.4e-7 * method.bins)
        settings = {
            "side": "survey",
            "method": method,
            "sizes": ((config.survey_width, size),),
            "repeats": config.survey_repeats,
            "first": number * config.survey_repeats,
            "steps": config.survey_steps,
            "seed": config.seed,
        }
        work.append(Unit(consistency, settings, cost))
    return work


def consistency(
    side: Side,
    method: SBP | S3P | S4P,
    sizes: tuple[tuple[int, int], ...],
    repeats: int,
    first: int,
    steps: int,
    seed: int,
) -> Rows:
    """One method on glass of several (N, M), all in one graph, flooding."""
    sets = [(n, m, data) for n, m in sizes for data in problems("glass", n, m, repeats, first)]
    outcome, _ = solve(method, linear_graph([data for _, _, data in sets]), steps, seed)
    return [
        {
            "side": side,
            "method": method.name,
            "weights": n,
            "examples": m,
            "repeat": first + number % repeats,
            "damping": method.damping,
            "samples": method.samples,
            "survey_samples": None if isinstance(method, SBP) else method.survey_samples,
            "bins": None if isinstance(method, SBP) else method.bins,
            **outcome.row(number),
        }
        for number, (n, m, _) in enumerate(sets)
    ]


def draw(config: Config, rows: Rows, columns: int) -> Figure:
    """Two scatters; on the right accuracies are few, so a marker counts the pairs on its place."""
    left = [
        Cloud(
            f"N = {width}",
            column(exact, "decoded"),
            column(sampled, "decoded"),
            [1.6 * value for value in column(sampled, "samples")],
        )
        for width in config.widths
        for exact, sampled in [_belief_pairs(rows, weights=width)]
    ]
    right = [
        Cloud(
            f"{draws} survey samples",
            [place[0] for place in counts],
            [place[1] for place in counts],
            [5.0 * count for count in counts.values()],
        )
        for draws in config.survey_samples
        for exact, sampled in [_survey_pairs(rows, survey_samples=draws)]
        for counts in [
            Counter(zip(column(exact, "decoded"), column(sampled, "decoded"), strict=True))
        ]
    ]
    return comparison_figure(
        [
            Comparison(
                "SBP against BP",
                "accuracy of BP",
                "accuracy of SBP",
                tuple(left),
                f"area: samples, {min(config.samples)} to {max(config.samples)}",
            ),
            Comparison(
                "S4P against S3P",
                "accuracy of S3P",
                "accuracy of S4P",
                tuple(right),
                "area: number of pairs at the point",
            ),
        ],
        columns,
    )


PROBLEM = ("weights", "examples", "repeat", "damping")
SETTING = (*PROBLEM, "samples", "bins")


def _belief_pairs(rows: Rows, **wanted: object) -> tuple[Rows, Rows]:
    """Exact rows beside sampled ones of the same problem and damping."""
    return matched(pick(rows, method="BP"), pick(rows, method="SBP", **wanted), PROBLEM)


def _survey_pairs(rows: Rows, **wanted: object) -> tuple[Rows, Rows]:
    """S3P and S4P rows of the same problem and settings."""
    by = (*SETTING, "survey_samples")
    return matched(pick(rows, method="S3P"), pick(rows, method="S4P", **wanted), by)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Mean accuracies by the number of samples."""
    belief = [
        (str(samples), *_means(*_belief_pairs(rows, samples=samples))) for samples in config.samples
    ]
    survey = [
        (str(draws), str(inner), *_means(*_survey_pairs(rows, survey_samples=draws, samples=inner)))
        for draws in config.survey_samples
        for inner in config.inner_samples
    ]
    return [
        _table("BP and SBP by samples", ("samples",), ("BP", "SBP"), belief),
        _table(
            "S3P and S4P by samples", ("survey samples", "inner samples"), ("S3P", "S4P"), survey
        ),
    ]


def _table(
    title: str, first: tuple[str, ...], methods: tuple[str, str], cells: list[tuple[str, ...]]
) -> ResultTable:
    numbers = [f"{part}, {name}" for part in ("best decoded", "last") for name in methods]
    return ResultTable(f"{title}: mean accuracy", (*first, *numbers), tuple(cells))


def _means(exact: Rows, sampled: Rows) -> tuple[str, ...]:
    return tuple(
        f"{mean(column(part, name)):.3f}"
        for name in ("decoded", "last")
        for part in (exact, sampled)
    )


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """Agreement of BP and SBP, the weight of L_BP, S4P against S3P, the weight of L_SP."""
    return [
        _agreement(config, rows),
        _few_samples(config, rows),
        _s4p(rows),
        _more_draws(config, rows),
    ]


def _agreement(config: Config, rows: Rows) -> Claim:
    few = min(config.samples)
    best, last = (_belief_gain(rows, name) for name in ("decoded", "last"))
    fewest = _belief_gain(pick(rows, method="BP") + pick(rows, samples=few), "decoded")
    apart = mean(
        [
            abs(after - before)
            for exact, sampled in [_belief_pairs(rows)]
            for after, before in zip(
                column(sampled, "decoded"), column(exact, "decoded"), strict=True
            )
        ]
    )
    alike = max(abs(gain.mean) for gain in (best, last, fewest)) <= HARDLY
    close = Verdict.HOLDS if apart <= HARDLY else Verdict.PARTLY
    return Claim(
        "SBP agrees nearly identically with BP, even with few samples.",
        f"SBP less BP, best decoded accuracy: {best}, with {few} samples {fewest}; at the last "
        f"step: {last}. The means {'agree' if alike else 'do not agree'} to {HARDLY:g}, which is "
        f"what we ask for; single pairs lie {apart:.3f} apart on average.",
        close if alike else Verdict.FAILS,
    )


def _belief_gain(rows: Rows, name: str) -> Difference:
    exact, sampled = pick(rows, method="BP"), pick(rows, method="SBP")
    return difference(exact, sampled, PROBLEM, name, over=("weights", "repeat"))


def _few_samples(config: Config, rows: Rows) -> Claim:
    few, many = min(config.samples), max(config.samples)
    gain = difference(
        pick(rows, method="SBP", samples=few),
        pick(rows, method="SBP", samples=many),
        PROBLEM,
        "decoded",
        over=("weights", "repeat"),
    )
    return Claim(
        "SBP is relatively insensitive to the number of samples L_BP.",
        f"{many} samples instead of {few} change the best decoded accuracy by {gain}; we ask for "
        f"less than {HARDLY:g}.",
        Verdict.HOLDS if abs(gain.mean) <= HARDLY else Verdict.FAILS,
    )


def _s4p(rows: Rows) -> Claim:
    exact, sampled = _survey_pairs(rows)
    before, after = column(exact, "decoded"), column(sampled, "decoded")
    gain = difference(exact, sampled, (*SETTING, "survey_samples"), "decoded")
    wins = sum(a > b for a, b in zip(after, before, strict=True))
    losses = sum(a < b for a, b in zip(after, before, strict=True))
    return Claim(
        "S4P usually outperforms S3P.",
        f"With one look a step for both, S4P less S3P is {gain} in best decoded accuracy. Of "
        f"{len(after)} pairs S4P is better in {wins}, worse in {losses}, equal in the rest.",
        judged([gain]),
        "Looking at every track of S4P and not only at what its marginals decode to: figure 3 "
        "shows that the best of its tracks gains with their number while the decoded "
        "configuration does not. S3P has no tracks to look at.",
    )


def _more_draws(config: Config, rows: Rows) -> Claim:
    few, many = (
        pick(rows, method="S4P", survey_samples=draws)
        for draws in (min(config.survey_samples), max(config.survey_samples))
    )
    decoded, best = (difference(few, many, SETTING, name) for name in ("decoded", "best"))
    return Claim(
        "Higher numbers of MC samples lead to better S4P performance.",
        f"{max(config.survey_samples)} survey samples instead of {min(config.survey_samples)} "
        f"change the best decoded accuracy by {decoded}, and the best configuration among all "
        f"tracks by {best}; more tracks are also more looks.",
        found_or_decoded(best, decoded),
        "Counting the best of all tracks as what S4P found; decoded marginals do not profit.",
    )


EXPERIMENT = Experiment(
    name="fig1",
    title="Consistency of stochastic and exact message passing",
    about=(
        "Random problems (glass) under every setting of the grid in the paper's appendix A; on "
        "the dashed line both solvers reach the same accuracy. Accuracy is that of the best "
        "decoded configuration: 20 steps on the left, 10 on the right, one look a step. The "
        "paper does not say how many steps it takes or which data it uses."
    ),
    full=FULL,
    quick=QUICK,
    units=units,
    draw=draw,
    tables=tables,
    claims=claims,
    columns=2,
)
