"""Figure 3: how the survey of one weight evolves, by the number of survey samples.

Glass, 10 weights, 20 examples, 20 steps, as in the paper's appendix C.2. The panels show one
variable of one problem; the numbers are over many problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrail.lab.experiments.claims import Claim, found_or_decoded, mean
from vitrail.lab.experiments.experiment import (
    Experiment,
    ResultTable,
    cells,
    column,
    difference,
    distinct,
    pick,
)
from vitrail.lab.experiments.methods import S4P, SBP
from vitrail.lab.experiments.surveys import bin_hopping, tracks
from vitrail.lab.experiments.tasks import solve_linear
from vitrail.lab.experiments.units import Rows, Unit
from vitrail.lab.plots import Figure, survey_figure

EXACT, FAMILY = "BP, exact", "glass"


@dataclass(frozen=True)
class Config:
    """The paper's settings; it does not say which problem or variable it shows.

    The panels show the first problem, and of its variables one that surveys keep undecided.
    """

    num_inputs: int = 10
    size: int = 20
    steps: int = 20
    damping: float = 0.5
    bins: int = 31
    samples: int = 5
    survey_samples: tuple[int, ...] = (1, 10, 100, 500)
    shown_problem: int = 0
    shown_variable: int = 2
    repeats: int = 100
    seed: int = 1

    @property
    def sampled(self) -> str:
        return f"SBP, {self.samples} draws"


FULL = Config()
QUICK = Config(repeats=20)


def units(config: Config) -> Sequence[Unit]:
    """The panels, and one unit per method for the numbers."""
    panels = {
        "survey_samples": config.survey_samples,
        "num_weights": config.num_inputs,
        "num_examples": config.size,
        "steps": config.steps,
        "damping": config.damping,
        "bins": config.bins,
        "samples": config.samples,
        "variable": config.shown_variable,
        "seed": config.shown_problem,
    }
    shared = {
        "family": FAMILY,
        "sizes": ((config.num_inputs, config.size),),
        "repeats": config.repeats,
        "epochs": config.steps,
        "seed": config.seed,
    }
    methods = [
        SBP(EXACT, update="closed_form", samples=0, damping=config.damping),
        SBP(config.sampled, damping=config.damping, samples=config.samples),
        *(
            S4P(tracks(draws), config.samples, draws, config.bins, config.damping)
            for draws in config.survey_samples
        ),
    ]
    work = [Unit(survey_panels, panels, 2.0)]
    for method in methods:
        draws = method.survey_samples if isinstance(method, S4P) else 1
        cost = 0.2 + config.repeats * draws * 1.2e-3
        work.append(Unit(solve_linear, {**shared, "method": method}, cost))
    return work


def survey_panels(**settings: int | float | tuple[int, ...]) -> Rows:
    """Where the belief of one variable has its mass, step by step."""
    return [
        {
            "method": panel.name,
            "step": step,
            "bin": place,
            "mass": round(mass, 6),
            "best": panel.best,
        }
        for panel in bin_hopping(**settings)  # pyright: ignore[reportArgumentType] (the config's)
        for step, survey in enumerate(panel.surveys.tolist())
        for place, mass in enumerate(survey)
        if mass > 0
    ]


def draw(config: Config, rows: Rows, columns: int) -> Figure:
    """One panel per method."""
    surveys = {}
    shown = [row for row in rows if "bin" in row]
    for name in distinct(shown, "method"):
        mine = pick(shown, method=name)
        image = np.zeros((config.steps, config.bins))
        steps, bins = (np.array(column(mine, part), dtype=int) for part in ("step", "bin"))
        image[steps, bins] = column(mine, "mass")
        surveys[f"{name}\nbest {column(mine, 'best')[0]:.2f}"] = image
    return survey_figure(surveys, columns)


def tables(config: Config, rows: Rows) -> Sequence[ResultTable]:
    """Mean over problems, with the standard deviation."""
    numbers = pick(rows, family=FAMILY)
    lines = [
        (name, *cells(pick(numbers, method=name), ("best", "decoded", "last"), 3))
        for name in distinct(numbers, "method")
    ]
    title = f"Accuracy on {config.repeats} problems of glass: mean ± standard deviation"
    return [ResultTable(title, ("method", "best", "best decoded", "last"), tuple(lines))]


def claims(config: Config, rows: Rows) -> Sequence[Claim]:
    """More survey samples, better configurations; and what part of that is scoring more often."""
    numbers = pick(rows, family=FAMILY)
    counts = sorted(config.survey_samples)
    few, many = (pick(numbers, survey_samples=count) for count in (counts[0], counts[-1]))
    best, decoded = (difference(few, many, ("repeat",), part) for part in ("best", "decoded"))
    rivals = {"BP": EXACT, "SBP": config.sampled}
    over, decoded_over = (
        {
            name: difference(pick(numbers, method=rival), many, ("repeat",), part)
            for name, rival in rivals.items()
        }
        for part in ("best", "decoded")
    )
    means = [mean(column(pick(numbers, survey_samples=count), "best")) for count in counts]
    ladder = ", ".join(f"{m:.3f} ({c})" for m, c in zip(means, counts, strict=True))
    words = "; ".join(
        f"minus {name} {over[name]} for the best of its tracks, {decoded_over[name]} with one "
        "score per step for both"
        for name in rivals
    )
    return [
        Claim(
            "As the number of survey samples grows, S4P finds better configurations.",
            f"Best accuracy by survey samples: {ladder}. From {counts[0]} to {counts[-1]} the best "
            f"gains {best}; the decoded configuration alone, with one score per step, {decoded}.",
            found_or_decoded(best, decoded),
        ),
        Claim(
            "As the number of survey samples grows, S4P can find better configurations which are "
            "inaccessible to BP.",
            f"S4P with {counts[-1]} survey samples, same steps: {words}. The first scores every "
            "track, so it is no proof that BP cannot get there.",
            found_or_decoded(over["SBP"], decoded_over["SBP"]),
        ),
    ]


EXPERIMENT = Experiment(
    "fig3",
    "Evolution of a survey",
    "Each panel follows the belief about one weight of one problem: steps from left to right, "
    "P(w = 1) from bottom to top, dark where the survey has its mass. Belief propagation keeps "
    "one value; surveys spread over several when they have the samples for it. Above each panel "
    "stands the best training accuracy that the solver saw on this problem; the table has many "
    "problems.",
    FULL,
    QUICK,
    units,
    draw,
    tables,
    claims,
    columns=6,
    narrow=2,
)
