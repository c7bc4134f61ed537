"""Figure 4: training and test accuracy on MNIST over the number of examples, for three nets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import torch

from vitrail.factors import HARD
from vitrail.lab.experiments.claims import Claim, Difference, Verdict, mean, verdict_of
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    cells,
    column,
    curve,
    difference,
    distinct,
    listed,
    pick,
)
from vitrail.lab.experiments.methods import GD, SBP, SNMP, Rate, solve, tuned
from vitrail.lab.experiments.tasks import Net, mnist_graphs
from vitrail.lab.experiments.units import Rows, Unit, unit
from vitrail.lab.plots import Figure, Panel, line_figure

WEIGHTS = {"linear": 196, "mlp": 394, "conv": 89}
TITLES = {"linear": "linear", "mlp": "MLP", "conv": "conv"}
QUANTITIES = (  # of a pair of panels, for the best configuration and the last
    ("training accuracy", "best", "last"),
    ("test accuracy", "test_best", "test_last"),
)
PROBLEM = ("net", "examples", "repeat")
COMPARABLE = 0.02  # accuracy; our reading of the paper's word


@dataclass(frozen=True)
class Curve:
    """One net with its message-passing methods and the rates of GD."""

    net: Net
    passing: tuple[SBP, ...]
    rates: tuple[Rate, ...]

    def methods(self, size: int) -> dict[SBP | GD, int]:
        """Each method with the factor of its epochs: 1, or more for GD with SBP's evaluations."""
        gd, draws = tuned(self.rates, size, BATCH), self.passing[0].samples
        methods: dict[SBP | GD, int] = {**dict.fromkeys(self.passing, 1), gd: 1}
        if self.passing[0].update != "pinned" and size * draws <= MOST_EQUAL:
            methods[replace(gd, name=GD_AS_SBP)] = draws
        return methods


BATCH = 8
RATES: dict[Net, tuple[Rate, ...]] = {
    "linear": (Rate(170, 0.03), Rate(550, 0.01), Rate(1000, 0.1, "sgd")),
    "mlp": (Rate(50, 0.03, "sgd"), Rate(170, 0.003), Rate(550, 0.01), Rate(1000, 0.03, "sgd")),
    "conv": (
        Rate(50, 0.1, "sgd"),
        Rate(170, 0.3, "sgd"),
        Rate(550, 0.01),
        Rate(1000, 0.1, "sgd"),
    ),
}
GD_AS_SBP = "GD, SBP's evaluations"
MOST_EQUAL = 12_800  # evaluations per epoch up to which GD runs for as many: 200 images for conv
ADAPTIVE, REINFORCED = "SBP, adaptive", "SBP, reinforced"
PINNED_SBP, FLIP_SBP = "SBP, pinned", "SBP, flip"


def _with_surveys(
    survey_samples: int = 100, survey_damping: float = 0.2, **settings: Any
) -> tuple[SBP, ...]:
    """SBP, and SNMP with the same settings; SBP with adaptive damping, and with reinforcement."""
    sbp = SBP(batch=BATCH, **settings)
    surveys = {"survey_samples": survey_samples, "survey_damping": survey_damping}
    more = [replace(sbp, name=REINFORCED, damping=0.8, settling="reinforced")]
    if sbp.damping != "adaptive":
        more.append(replace(sbp, name=ADAPTIVE, damping="adaptive"))
    return sbp, SNMP(batch=BATCH, **settings, **surveys), *more


@dataclass(frozen=True)
class Config:
    """Pair, sizes, batch and β are not stated in the paper.

    For SBP at 100 and 1000 examples, batches of 8 did best of 4, 8, 16 and 64, β of 3 (conv: 1)
    of 1, 3 and ∞, and a damping of 0.8 better than the paper's 0.5, which loses the small sets.
    """

    pair: tuple[int, int] = (3, 5)
    curves: tuple[Curve, ...] = (
        Curve("linear", _with_surveys(beta=3.0), RATES["linear"]),
        Curve("mlp", _with_surveys(beta=3.0), RATES["mlp"]),
        Curve(
            "conv",
            _with_surveys(20, 0.5, update="counting", samples=64, damping="adaptive", beta=1.0),
            RATES["conv"],
        ),
    )
    sizes: tuple[int, ...] = (20, 50, 100, 200, 500, 1000)
    repeats: int = 8
    epochs: int = 10
    seed: int = 1

    @property
    def passing(self) -> tuple[str, ...]:
        """Names of the message-passing methods, the same for every net."""
        return tuple(method.name for method in self.curves[0].passing)

    @property
    def names(self) -> tuple[str, ...]:
        return *self.passing, "GD"


def _as_printed(net: Net, damping: float | Literal["adaptive"], beta: float) -> Curve:
    """Algorithm 1 as printed, with the paper's settings, and the same with shared draws."""
    settings = {"samples": 5, "damping": damping, "batch": BATCH, "beta": beta}
    passing = (SBP(PINNED_SBP, "pinned", **settings), SBP(FLIP_SBP, "flip", **settings))
    return Curve(net, passing, RATES[net])


FULL = Config()
QUICK = Config(
    curves=tuple(
        replace(
            curve,
            passing=tuple(
                replace(one, survey_samples=20) if isinstance(one, SNMP) else one
                for one in curve.passing
            ),
        )
        for curve in FULL.curves
    ),
    sizes=(20, 100, 300),
    repeats=2,
    epochs=5,
)
# γ of the appendix; hard factors, since the paper gives β for the convolutional net alone
AS_PRINTED = Config(
    curves=(
        _as_printed("linear", 0.5, HARD),
        _as_printed("mlp", 0.5, HARD),
        _as_printed("conv", "adaptive", 10.0),
    )
)
AS_PRINTED_QUICK = replace(AS_PRINTED, sizes=(20,), repeats=2, epochs=2)


def units(config: Config) -> Sequence[Unit]:
    """One unit per net, size, method and repeat."""
    work = []
    for one, size in product(config.curves, config.sizes):
        for (method, factor), repeat in product(one.methods(size).items(), range(config.repeats)):
            run = {"method": method, "epochs": factor * config.epochs, "seed": config.seed + repeat}
            work.append(
                unit(transition, net=one.net, pair=config.pair, size=size, repeat=repeat, **run)
            )
    return work


def transition(
    net: Net,
    pair: tuple[int, int],
    size: int,
    repeat: int,
    method: SBP | GD,
    epochs: int,
    seed: int,
) -> Rows:
    """One method on `size` examples drawn by the repeat's number."""
    train, held_out = mnist_graphs(net, pair, size, (repeat,))
    outcome, _ = solve(method, train, epochs, seed)
    solution = outcome.solution
    test = held_out.accuracy(torch.stack([solution.best, solution.weights]))
    return [
        {
            "net": net,
            "weights": WEIGHTS[net],
            "examples": size,
            "alpha": size / WEIGHTS[net],
            "repeat": repeat,
            "method": method.name,
            **outcome.row(0),
            "test_best": float(test[0, 0]),
            "test_last": float(test[1, 0]),
        }
    ]


def draw(config: Config, rows: Rows, columns: int) -> Figure:
    """A training and a test panel per net; thin lines are last configurations."""
    panels = []
    for one, (label, best, last) in product(config.curves, QUANTITIES):
        mine = pick(rows, net=one.net)
        lines = [
            replace(curve(name, pick(mine, method=name), "examples", quantity), thin=thin)
            for quantity, thin in ((best, False), (last, True))
            for name in config.names
        ]
        title = f"{TITLES[one.net]}, N = {WEIGHTS[one.net]}"
        panels.append(Panel(title, "examples M", label, tuple(lines), log_x=True))
    return line_figure(panels, columns)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Means and standard deviations at every size."""
    lines = []
    for one, size, name in product(config.curves, config.sizes, config.names):
        mine = pick(rows, net=one.net, examples=size, method=name)
        numbers = cells(mine, ("best", "last", "test_best", "test_last"), 3)
        solved, evaluations = (mean(column(mine, part)) for part in ("solved", "evaluations"))
        more = (f"{solved:.2f}", f"{evaluations:.3g}")
        lines.append((TITLES[one.net], str(size), name, *numbers, *more))
    names = (
        "net", "M", "method", "train best", "train last", "test of best", "test of last",
        "share solved", "evaluations",
    )  # fmt: skip
    title = f"MNIST {config.pair[0]} against {config.pair[1]}: mean ± standard deviation"
    return [ResultTable(title, names, tuple(lines))]


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """Message passing against GD, on training and on test examples."""
    train, test = (_gains(config, rows, part) for part in ("best", "test_best"))
    equal = _gains(config, rows, "best", GD_AS_SBP)
    level = [
        gains["SNMP"].mean > -COMPARABLE
        for gains in (*train.values(), *test.values())
        if "SNMP" in gains
    ]
    some = Verdict.PARTLY if any(level) else Verdict.FAILS
    return [
        Claim(
            "Both stochastic BP and SP find better configurations than gradient methods "
            "(abstract), here on MNIST at equal epochs.",
            f"Best training accuracy minus that of GD, mean over all sizes. {_words(train)}. The "
            "verdict is over SBP and SNMP.",
            verdict_of([gains[name] for gains in train.values() for name in ("SBP", "SNMP")]),
            "Reinforcement with closed-form messages, or local search after them "
            '(solver="messages"); the convolutional net has neither.',
        ),
        Claim(
            "Stochastic BP finds better configurations than gradient methods (abstract), here on "
            "MNIST at equal evaluations.",
            "Best training accuracy minus that of GD with SBP's evaluations, mean over the sizes "
            f"of those runs. {_words(equal)}. The verdict is over SBP.",
            verdict_of([gains["SBP"] for gains in equal.values()]),
            "Epochs as the unit of work, as in the paper.",
        ),
        Claim(
            "SNMP performs well compared with SGD on linear, MLP and convolutional nets.",
            f"Criterion: at most {COMPARABLE:g} below GD in training and test. Test accuracy of "
            f"the best configuration minus that of GD's. {_words(test)}.",
            Verdict.HOLDS if all(level) else some,
        ),
    ]


def claims_as_printed(config: Config, rows: Rows) -> Sequence[Claim]:
    """The first claim by the paper's own update, and the effect of the update."""
    train, test = (_gains(config, rows, part) for part in ("best", "test_best"))
    draws = {
        net: _gain(pick(rows, net=net), FLIP_SBP, PINNED_SBP, "best")
        for net in (one.net for one in config.curves)
    }
    updates = "; ".join(f"{TITLES[net]}: {gain}" for net, gain in draws.items())
    most = max(config.sizes)
    largest = _gains(config, pick(rows, examples=most), "best")
    return [
        Claim(
            "Stochastic BP finds better configurations than gradient methods (abstract), here on "
            "MNIST by Algorithm 1 as printed.",
            f"Best training accuracy minus that of GD, mean over all sizes. {_words(train)}. At "
            f"{most:,} examples alone. {_words(largest)}. Test accuracy of that configuration, "
            f"mean over all sizes. {_words(test)}. Independent draws per message (pinned) minus "
            f"shared draws (flip): {updates}.",
            verdict_of([gains[PINNED_SBP] for gains in train.values()]),
            "Surveys after SBP (figure 4, linear and MLP nets), or more examples.",
        )
    ]


def _gain(rows: Rows, first: str, second: str, quantity: str) -> Difference:
    """`second` minus `first`, at the sizes of `first`."""
    before, after = (pick(rows, method=name) for name in (first, second))
    sizes = distinct(before, "examples")
    after = [row for row in after if row["examples"] in sizes]
    return difference(before, after, PROBLEM, quantity)


def _gains(
    config: Config, rows: Rows, quantity: str, rival: str = "GD"
) -> dict[str, dict[str, Difference]]:
    """Each message-passing method minus GD on every net, for the same examples."""
    names = [name for name in config.passing if rival == "GD" or name != "SNMP"]
    return {
        TITLES[one.net]: {
            name: _gain(pick(rows, net=one.net), rival, name, quantity) for name in names
        }
        for one in config.curves
    }


def _words(gains: Mapping[str, Mapping[str, Difference]]) -> str:
    return "; ".join(f"{net}: {listed(by_name)}" for net, by_name in gains.items())


EXPERIMENT = Experiment(
    "fig4",
    "MNIST: linear, MLP and convolutional nets",
    "Two digits at 14×14 pixels, M training images, mean over repeats with the standard deviation "
    "shaded: training accuracy on the left, test accuracy on the right. Thick lines are the best "
    "configuration in training, thin lines the last. SNMP has as many epochs of surveys after "
    "SBP's, so more evaluations. GD is straight-through with optimiser and rate tuned on other "
    "images (scripts/tune_baselines.py).",
    FULL,
    QUICK,
    units,
    draw,
    tables,
    claims,
    columns=2,
)

PINNED = replace(
    EXPERIMENT,
    name="fig4-pinned",
    title="MNIST by the paper's own update",
    about=(
        "Figure 4 with Algorithm 1 as printed: `pinned` draws 5 configurations per message and "
        "value, `flip` 5 per factor. Both have the paper's damping (γ = 0.5, adaptive for the "
        "convolutional net) and hard factors (β = 10 for the convolutional net); GD is that of "
        "figure 4. There are no surveys, which would take a hundred times longer."
    ),
    full=AS_PRINTED,
    quick=AS_PRINTED_QUICK,
    claims=claims_as_printed,
)
