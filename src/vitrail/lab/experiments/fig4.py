"""Figure 4: MNIST, training and test accuracy over the number of examples, three nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from vitrail.factors import HARD
from vitrail.lab.experiments.claims import Claim, Difference, Verdict, judged, mean
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    column,
    curve,
    difference,
    pick,
    plus_minus,
)
from vitrail.lab.experiments.methods import GD, SBP, SNMP, Rate, solve, tuned
from vitrail.lab.experiments.tasks import Net, mnist_graphs
from vitrail.lab.experiments.units import Rows, Unit
from vitrail.lab.plots import Figure, Line, Panel, line_figure

WEIGHTS = {"linear": 196, "mlp": 394, "conv": 89}
TITLES = {"linear": "linear", "mlp": "MLP", "conv": "conv"}
PROBLEM = ("net", "examples", "repeat")
COMPARABLE = 0.02  # accuracy; what we read the paper's word as


@dataclass(frozen=True)
class Curve:
    """One net with the message passing that trains it; GD, its rival, steps by `rates`."""

    net: Net
    passing: tuple[SBP | SNMP, ...]
    rates: tuple[Rate, ...]

    def methods(self, size: int) -> tuple[SBP | SNMP | GD, ...]:
        return *self.passing, tuned(self.rates, size, BATCH)


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
PINNED_SBP, FLIP_SBP = "SBP, pinned", "SBP, flip"


@dataclass(frozen=True)
class Config:
    """Pair, sizes, batch and β are not stated in the paper.

    For SBP at 100 and 1000 examples, batches of 8 did best of 4, 8, 16 and 64, β of 3 (conv: 1)
    of 1, 3 and ∞, and a damping of 0.8 better than the paper's 0.5, which loses the small sets.
    """

    pair: tuple[int, int] = (3, 5)
    curves: tuple[Curve, ...] = (
        Curve(
            "linear",
            (SBP(batch=BATCH, beta=3.0), SNMP(batch=BATCH, beta=3.0)),
            RATES["linear"],
        ),
        Curve("mlp", (SBP(batch=BATCH, beta=3.0), SNMP(batch=BATCH, beta=3.0)), RATES["mlp"]),
        Curve(
            "conv",
            (
                SBP(update="counting", samples=64, damping="adaptive", batch=BATCH, beta=1.0),
                SNMP(
                    update="counting",
                    samples=64,
                    survey_samples=20,
                    damping="adaptive",
                    survey_damping=0.5,
                    batch=BATCH,
                    beta=1.0,
                ),
            ),
            RATES["conv"],
        ),
    )
    sizes: tuple[int, ...] = (20, 50, 100, 200, 500, 1000)
    repeats: int = 8
    epochs: int = 10
    seed: int = 1

    @property
    def passing(self) -> tuple[str, ...]:
        """The names of the methods that pass messages, the same for every net."""
        return tuple(method.name for method in self.curves[0].passing)

    @property
    def names(self) -> tuple[str, ...]:
        return *self.passing, "GD"


def _smaller(curve: Curve) -> Curve:
    """The same with fewer survey samples, for a quick look."""
    return replace(
        curve,
        passing=tuple(
            replace(method, survey_samples=20) if isinstance(method, SNMP) else method
            for method in curve.passing
        ),
    )


def _by_hand(net: Net, damping: float | Literal["adaptive"], beta: float) -> Curve:
    """Algorithm 1 as printed with the paper's settings, and the same with shared draws."""
    settings = {"samples": 5, "damping": damping, "batch": BATCH, "beta": beta}
    passing = (SBP(PINNED_SBP, "pinned", **settings), SBP(FLIP_SBP, "flip", **settings))
    return Curve(net, passing, RATES[net])


FULL = Config()
QUICK = Config(
    curves=tuple(_smaller(one) for one in FULL.curves),
    sizes=(20, 100, 300),
    repeats=2,
    epochs=5,
)
# γ of the appendix; hard factors, since the paper has β for the convolutional net alone
BY_HAND = Config(
    curves=(
        _by_hand("linear", 0.5, HARD),
        _by_hand("mlp", 0.5, HARD),
        _by_hand("conv", "adaptive", 10.0),
    ),
    sizes=(20, 50),
    repeats=3,
)
BY_HAND_QUICK = replace(BY_HAND, sizes=(20,), repeats=2, epochs=2)


def units(config: Config) -> Sequence[Unit]:
    """One unit a net, size, method and repeat."""
    return [
        Unit(
            transition,
            {
                "net": one.net,
                "pair": config.pair,
                "size": size,
                "repeat": repeat,
                "method": method,
                "epochs": config.epochs,
                "seed": config.seed + repeat,
            },
            _cost(one.net, size, method, config),
        )
        for one in config.curves
        for size in config.sizes
        for method in one.methods(size)
        for repeat in range(config.repeats)
    ]


def _cost(net: Net, size: int, method: SBP | GD | SNMP, config: Config) -> float:
    steps = config.epochs * -(-size // BATCH)
    if isinstance(method, SBP) and method.update == "pinned":
        return 0.3 + config.epochs * size * {"linear": 0.013, "mlp": 0.05, "conv": 0.004}[net]
    if not isinstance(method, SNMP):
        return 0.3 + steps * 0.003
    per_edge = {"linear": 5e-8, "mlp": 2e-7, "conv": 1.1e-6}[net]  # and survey sample
    return 0.3 + steps * BATCH * WEIGHTS[net] * per_edge * method.survey_samples


def transition(
    net: Net,
    pair: tuple[int, int],
    size: int,
    repeat: int,
    method: SBP | GD | SNMP,
    epochs: int,
    seed: int,
) -> Rows:
    """One method on the `size` examples that the repeat draws."""
    train, unseen = mnist_graphs(net, pair, size, (repeat,))
    outcome, _ = solve(method, train, epochs, seed)
    solution = outcome.solution
    test = unseen.accuracy(torch.stack([solution.best, solution.weights]))
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
    """A training and a test panel a net; thin lines are the configurations at the end."""
    panels = []
    for net in (one.net for one in config.curves):
        for label, best, last in (
            ("training accuracy", "best", "last"),
            ("test accuracy", "test_best", "test_last"),
        ):
            lines = [_line(config, pick(rows, net=net), name, best) for name in config.names]
            lines += [
                replace(_line(config, pick(rows, net=net), name, last), thin=True)
                for name in config.names
            ]
            title = f"{TITLES[net]}, N = {WEIGHTS[net]}"
            panels.append(Panel(title, "examples M", label, tuple(lines), log_x=True))
    return line_figure(panels, columns)


def _line(config: Config, rows: Rows, name: str, quantity: str) -> Line:
    mine = pick(rows, method=name)
    values = [column(pick(mine, examples=size), quantity) for size in config.sizes]
    return curve(name, list(config.sizes), values)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Means and spreads at every size."""
    parts = ("best", "last", "test_best", "test_last")
    cells = [
        (
            TITLES[one.net],
            str(size),
            name,
            *(plus_minus(column(mine, part), 3) for part in parts),
            f"{mean(column(mine, 'solved')):.2f}",
            f"{mean(column(mine, 'evaluations')):.3g}",
        )
        for one in config.curves
        for size in config.sizes
        for name in config.names
        for mine in [pick(rows, net=one.net, examples=size, method=name)]
    ]
    names = (
        "net", "M", "method", "train best", "train last", "test of best", "test of last",
        "share solved", "evaluations",
    )  # fmt: skip
    title = f"MNIST {config.pair[0]} against {config.pair[1]}: mean ± standard deviation"
    return [ResultTable(title, names, tuple(cells))]


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """Message passing against GD in training, and whether unseen examples profit."""
    train = _gains(config, rows, "best")
    test = _gains(config, rows, "test_best")
    level = [
        gain.mean > -COMPARABLE
        for gains in (*train.values(), *test.values())
        for name, gain in gains.items()
        if name == "SNMP"
    ]
    some = Verdict.PARTLY if any(level) else Verdict.FAILS
    return [
        Claim(
            "Both stochastic BP and SP find better configurations than gradient methods "
            "(abstract), here on MNIST.",
            f"Best training accuracy less that of GD, mean over all sizes. {_words(train)}.",
            judged([gain for gains in train.values() for gain in gains.values()]),
            "SBP's last configurations are far below its best: its messages do not settle. "
            "Reinforcement with closed-form messages, or local search after them "
            '(solver="messages"), passes GD where SBP alone does not. The convolutional net has '
            "neither.",
        ),
        Claim(
            "SNMP performs well compared with SGD on linear, MLP and convolutional nets.",
            f"We ask that it is no more than {COMPARABLE:g} below GD, in training as above and in "
            f"test. Test accuracy of the best configuration less that of GD's. {_words(test)}.",
            Verdict.HOLDS if all(level) else some,
        ),
    ]


def claims_by_hand(config: Config, rows: Rows) -> Sequence[Claim]:
    """The first claim by the paper's own update, and what the choice of the update changes."""
    train, test = _gains(config, rows, "best"), _gains(config, rows, "test_best")
    draws = {
        TITLES[one.net]: difference(
            pick(rows, net=one.net, method=FLIP_SBP),
            pick(rows, net=one.net, method=PINNED_SBP),
            PROBLEM,
            "best",
        )
        for one in config.curves
    }
    apart = "; ".join(f"{net}: {gain}" for net, gain in draws.items())
    return [
        Claim(
            "Stochastic BP finds better configurations than gradient methods (abstract), here on "
            "MNIST by Algorithm 1 as printed.",
            f"Best training accuracy less that of GD, mean over all sizes. {_words(train)}. Test "
            f"accuracy of that configuration. {_words(test)}. Draws of their own for every "
            f"message (pinned) less shared draws (flip), the rest equal: {apart}.",
            judged([gains[PINNED_SBP] for gains in train.values()]),
            "Surveys after SBP: at the same sizes SNMP is level with GD or above it on linear and "
            "MLP nets in figure 4. Draws of their own help at the paper's settings; with more "
            "damping and softer factors, as in figure 4, shared draws come as far. Nothing that "
            "we ran helps the convolutional net at these sizes.",
        )
    ]


def _gains(config: Config, rows: Rows, quantity: str) -> dict[str, dict[str, Difference]]:
    """Each message passing less GD on every net, the same examples."""
    found = {}
    for net in (one.net for one in config.curves):
        gd = pick(rows, net=net, method="GD")
        found[TITLES[net]] = {
            name: difference(gd, pick(rows, net=net, method=name), PROBLEM, quantity)
            for name in config.passing
        }
    return found


def _words(gains: dict[str, dict[str, Difference]]) -> str:
    return "; ".join(
        f"{net}: " + ", ".join(f"{name} {gain}" for name, gain in by_name.items())
        for net, by_name in gains.items()
    )


EXPERIMENT = Experiment(
    name="fig4",
    title="MNIST: linear, MLP and convolutional nets",
    about=(
        "Two digits at 14×14 pixels, M training images, mean over repeats with the standard "
        "deviation shaded: on the left training accuracy, on the right test accuracy. Thick "
        "lines are the configuration that was best in training, thin lines the one at the end. "
        "SNMP takes SBP's epochs and then as many of surveys, so it evaluates far more than the "
        "others (last column of the table). GD is straight-through descent, with optimiser and "
        "step chosen for every net and size from eleven on other images "
        "(scripts/tune_baselines.py)."
    ),
    full=FULL,
    quick=QUICK,
    units=units,
    draw=draw,
    tables=tables,
    claims=claims,
    columns=2,
)

PINNED = replace(
    EXPERIMENT,
    name="fig4-pinned",
    title="MNIST by the paper's own update",
    about=(
        "Figure 4 once more with Algorithm 1 as printed: `pinned` draws 5 configurations of its "
        "own for every message and value, where `flip` shares 5 among all messages of a factor. "
        "Both have the paper's damping (γ = 0.5, adaptive for the convolutional net) and hard "
        "factors (β = 10 for the convolutional net); GD is that of figure 4, on the same images. "
        f"`pinned` evaluates hundreds of times more, so there are {BY_HAND.repeats} repeats and "
        f"{len(BY_HAND.sizes)} sizes, and no surveys, which would take a hundred times longer."
    ),
    full=BY_HAND,
    quick=BY_HAND_QUICK,
    claims=claims_by_hand,
)
