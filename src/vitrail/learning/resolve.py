"""Which learner a fit runs: the one place that resolves solver="auto".

1. `chains`, where nets have one hidden layer (of a given width or of any), one output, inputs of
   0/1, and many networks answer together.
2. `select`, where a net has two or more hidden layers or convolutions, or where messages would not
   fit in memory: streaming or straight-through, by a trial on held-out rows.
3. `messages` otherwise: linear nets, inputs of ±1, one net with an output per class, other modules,
   and predictor="best". One network alone is better found by messages, which choose a small net:
   over 11 tables it was right on 0.84 of new rows, the best network of the chains on 0.80.

Going on with an earlier fit, its learner stays unless the solver is changed.
"""

from __future__ import annotations

from dataclasses import replace

from vitrail.learning.chains import chains
from vitrail.learning.messages import programs_of, staged
from vitrail.learning.posterior import FitOptions, Learner, Posterior, TrainingData
from vitrail.learning.problem import AUTO
from vitrail.learning.select import select, suits
from vitrail.learning.table import SOLVERS, check_options
from vitrail.learning.training import problem_of

LEARNERS: dict[str, Learner] = {"chains": chains, "select": select}
"""Those that run no stages by their name; `staged` runs all others."""


def resolved(
    options: FitOptions, data: TrainingData, previous: Posterior | None
) -> tuple[Learner, FitOptions]:
    """The learner of a fit, and its options by name; raises for one that it does not take."""
    solver, found = options.solver, options.solver == AUTO
    if previous is not None and "solver" not in options.changed:
        solver = previous.solver
    elif found:
        solver = _by_rules(options, data)
    if solver != "chains" and isinstance(options.given.get("beta"), tuple):
        raise ValueError("several betas are for chains; give one beta, or take solver='chains'")
    if isinstance(solver, str) and solver in SOLVERS:
        check_options(solver, options.given, found=found)
    options = replace(options, solver=solver)
    return LEARNERS.get(solver if isinstance(solver, str) else "", staged), options


def by_chains(options: FitOptions, num_classes: int) -> bool:
    """Whether chains learn from rows of so many classes."""
    if options.solver != AUTO:
        return options.solver == "chains"
    one_output = num_classes == 2 or options.multiclass != "argmax"
    layered = isinstance(options.hidden, str) or len(options.hidden) == 1
    return (
        options.module is None
        and layered
        and one_output
        and options.inputs != "bipolar"
        and options.predictor != "best"
    )


def _by_rules(options: FitOptions, data: TrainingData) -> str:
    if by_chains(options, data.num_classes):
        return "chains"
    programs = programs_of(data, options)
    one_net = len(data.nets) == 1 and len(programs) == 1
    return "select" if one_net and suits(problem_of(programs[0], data.nets)) else "messages"
