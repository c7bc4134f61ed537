"""Local search, stages that follow one another, and the baselines."""

import math

from golden import problems
from golden.record import Record, Rows, digest, found, staged

from vitrail import FactorGraph
from vitrail.baselines import annealing, bayesbinn, bop, exhaustive, optima, straight_through
from vitrail.solvers import MessageOptions, Stage, belief_propagation, polish, portfolio
from vitrail.solvers.flip_search import errors, ramp
from vitrail.updates import Update, counting, exact, flip

HARD = math.inf


def _optima() -> Record:
    graph = problems.weighted_linear(601, 30, 13, beta=HARD)
    best = optima(graph, histogram=True)[0]
    assert best.histogram is not None
    return {
        "satisfied": best.satisfied,
        "examples": best.examples,
        "optima": best.optima,
        "weights": digest(best.weights),
        "histogram": digest(best.histogram),
    }


def _portfolio(
    graph: FactorGraph,
    names: tuple[str, ...],
    update: Update,
    rate: float,
    attempts: int,
    seed: int,
) -> Record:
    messages = flip(5, backend="auto")
    stages = portfolio(
        graph,
        names,
        passing=MessageOptions(messages, damping=0.8, batch=8, epochs=3),
        update=update,
        rate=rate,
        attempts=attempts,
        flips=400,
        rounds=2,
    )
    return staged(stages, graph, seed=seed)


ROWS: Rows = {
    "polish linear ramp": lambda: found(
        polish(300, steps=4, chains=3, heat=10.0, energy=ramp(0.4, 1.6, 1.0, 0.1), agree=True),
        problems.linear(611, 60, 21, beta=HARD),
        seed=61,
        steps=6,
    ),
    "polish unequal apart": lambda: found(
        polish(200, steps=4, chains=2, heat=3.0, energy=errors(0.3, 0.03), agree=False),
        problems.unequal(621, beta=2.0),
        seed=62,
        steps=4,
    ),
    "polish weighted": lambda: found(
        polish(200, steps=4, chains=4, heat=3.0, energy=errors(0.3, 0.03), agree=True),
        problems.weighted_linear(631, 40, 15, beta=2.0),
        seed=63,
        steps=4,
    ),
    "polish two hidden classes": lambda: found(
        polish(300, steps=4, chains=3, heat=3.0, energy=errors(0.3, 0.03), agree=True),
        problems.two_hidden_classes(641, 40, beta=2.0),
        seed=64,
        steps=4,
    ),
    "polish conv": lambda: found(
        polish(200, steps=2, chains=2, heat=3.0, energy=errors(0.3, 0.03), agree=True),
        problems.conv(651, 40, beta=2.0),
        seed=65,
        steps=2,
    ),
    "polish plain torch net": lambda: found(
        polish(60, steps=2, chains=2, heat=3.0, energy=errors(0.3, 0.03), agree=True),
        problems.torch_relu(661, 24, beta=2.0),
        seed=66,
        steps=2,
    ),
    "portfolio linear": lambda: _portfolio(
        problems.linear(671, 21, 17, beta=HARD),
        ("sbp", "search", "reinforced", "s4p", "polish"),
        flip(16, backend="numba"),
        rate=0.1,
        attempts=2,
        seed=67,
    ),
    "portfolio one hidden": lambda: _portfolio(
        problems.one_hidden(681, 28, beta=HARD),
        ("sbp", "search", "reinforced", "s4p", "polish"),
        flip(16, backend="numba"),
        rate=0.1,
        attempts=1,
        seed=68,
    ),
    "portfolio two hidden": lambda: _portfolio(
        problems.two_hidden(691, 40, beta=HARD),
        ("sbp", "search", "reinforced", "polish"),
        counting(
            48,
            smoothing=1.0,
            least_hits=0,
            backend="numba",
        ),
        rate=0.1,
        attempts=1,
        seed=69,
    ),
    "stages": lambda: staged(
        [
            Stage(
                "first",
                belief_propagation(
                    exact(),
                    damping=0.5,
                    batch=None,
                    prior_scale=0.1,
                ),
                5,
                start=None,
                score_every=2,
                max_evaluations=None,
                marginals=True,
            ),
            Stage(
                "second",
                belief_propagation(
                    flip(16, backend="torch"),
                    damping=0.8,
                    batch=4,
                    prior_scale=0.1,
                ),
                6,
                start=None,
                score_every=1,
                max_evaluations=100,
                marginals=True,
            ),
        ],
        problems.parities(beta=2.0),
        seed=70,
    ),
    "straight through adam one hidden": lambda: found(
        straight_through("adam", lr=0.05, batch=8),
        problems.one_hidden(711, 32, beta=2.0),
        seed=71,
        steps=16,
        marginals=False,
    ),
    # changed: it had the logistic loss and momentum, which are gone
    "straight through sgd conv": lambda: found(
        straight_through("sgd", lr=0.1, batch=None),
        problems.conv(721, 16, beta=2.0),
        seed=72,
        steps=8,
        marginals=False,
    ),
    "bop linear": lambda: found(
        bop(adaptivity=0.1, threshold=0.001, batch=8),
        problems.linear(731, 32, 21, beta=2.0),
        seed=73,
        steps=16,
        marginals=False,
    ),
    # changed: it had the logistic loss, which is gone
    "bop linear classes": lambda: found(
        bop(adaptivity=0.1, threshold=0.002, batch=None),
        problems.linear_classes(741, 24, beta=2.0),
        seed=74,
        steps=12,
        marginals=False,
    ),
    "bayesbinn two hidden": lambda: found(
        bayesbinn(lr=0.05, temperature=0.7, samples=2, evidence=1.0, batch=8),
        problems.two_hidden(751, 24, beta=2.0),
        seed=75,
        steps=12,
        marginals=False,
    ),
    "annealing unequal": lambda: found(
        annealing(1200, chains=2, steps=4, energy=ramp(0.4, 1.6, 1.0, 0.1)),
        problems.unequal(761, beta=2.0),
        seed=76,
        steps=6,
    ),
    "annealing one hidden": lambda: found(
        annealing(1200, chains=2, steps=4, energy=errors(0.3, 0.03)),
        problems.one_hidden(771, 40, beta=2.0),
        seed=77,
        steps=4,
    ),
    "annealing tables": lambda: found(
        annealing(60, chains=2, steps=3, energy=errors(0.3, 0.03)),
        problems.tables(781, beta=2.0),
        seed=78,
        steps=3,
    ),
    "exhaustive unequal": lambda: found(
        exhaustive(), problems.unequal(791, beta=2.0), seed=79, steps=1
    ),
    "optima weighted": _optima,
}
