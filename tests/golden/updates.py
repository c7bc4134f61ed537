"""Belief propagation with every update, flooding and in batches."""

import math

from golden import problems
from golden.record import Rows, found

from vitrail.solvers import belief_propagation
from vitrail.updates import closed_form, counting, exact, flip, pinned

HARD = math.inf

ROWS: Rows = {
    "exact tables": lambda: found(
        belief_propagation(
            exact(),
            damping=0.5,
            batch=None,
            prior_scale=0.1,
        ),
        problems.tables(11, beta=HARD),
        seed=1,
        steps=12,
    ),
    # changed: it was damped on log-odds, which is gone; damping acts on probabilities
    "exact one hidden": lambda: found(
        belief_propagation(
            exact(),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.tiny_hidden(21, 16, beta=1.5),
        seed=2,
        steps=6,
    ),
    "convolution linear hard": lambda: found(
        belief_propagation(
            closed_form("convolution"),
            damping=0.2,
            batch=None,
            prior_scale=0.1,
        ),
        problems.linear(31, 19, 21, beta=HARD),
        seed=3,
        steps=20,
    ),
    "convolution weighted soft batches": lambda: found(
        belief_propagation(
            closed_form("convolution"),
            damping=0.7,
            batch=5,
            prior_scale=0.2,
        ),
        problems.weighted_linear(41, 24, 13, beta=0.7),
        seed=4,
        steps=20,
    ),
    "gaussian linear": lambda: found(
        belief_propagation(
            closed_form("gaussian"),
            damping=0.5,
            batch=None,
            prior_scale=0.1,
        ),
        problems.linear(51, 40, 51, beta=3.0),
        seed=5,
        steps=20,
        marginals=False,
    ),
    # changed: it was damped on log-odds, which is gone; damping acts on probabilities
    "gaussian unequal batches": lambda: found(
        belief_propagation(
            closed_form("gaussian"),
            damping=0.75,
            batch=4,
            prior_scale=0.1,
        ),
        problems.unequal(61, beta=2.0),
        seed=6,
        steps=15,
        marginals=False,
    ),
    "pinned linear 0/1 weights": lambda: found(
        belief_propagation(
            pinned(5),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.linear(71, 15, 11, 2.0, "binary"),
        seed=7,
        steps=8,
    ),
    # changed: it was damped on log-odds, which is gone; damping acts on probabilities
    "pinned two hidden hard": lambda: found(
        belief_propagation(
            pinned(2),
            damping=0.8,
            batch=4,
            prior_scale=0.1,
        ),
        problems.two_hidden(81, 12, beta=HARD),
        seed=8,
        steps=5,
    ),
    "flip linear numba": lambda: found(
        belief_propagation(
            flip(8, backend="numba"),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.linear(91, 40, 31, beta=3.0),
        seed=9,
        steps=20,
    ),
    # changed: it was smoothed, which flips no longer are
    "flip linear torch": lambda: found(
        belief_propagation(
            flip(5, backend="torch"),
            damping=0.9,
            batch=8,
            prior_scale=0.1,
        ),
        problems.linear(101, 30, 15, beta=HARD),
        seed=10,
        steps=16,
    ),
    "flip spelled linear": lambda: found(
        belief_propagation(
            flip(5, backend="torch"),
            damping=0.8,
            batch=6,
            prior_scale=0.1,
        ),
        problems.spelled_linear(111, 20, beta=3.0),
        seed=11,
        steps=12,
    ),
    "flip unequal numba": lambda: found(
        belief_propagation(
            flip(5, backend="numba"),
            damping=0.8,
            batch=4,
            prior_scale=0.1,
        ),
        problems.unequal(121, beta=5.0),
        seed=12,
        steps=15,
    ),
    "flip one hidden numba": lambda: found(
        belief_propagation(
            flip(5, backend="numba"),
            damping=0.8,
            batch=8,
            prior_scale=0.1,
        ),
        problems.one_hidden(131, 32, beta=5.0),
        seed=13,
        steps=16,
    ),
    # changed: it was damped on log-odds, which is gone; damping acts on probabilities
    "flip one hidden 0/1 weights torch": lambda: found(
        belief_propagation(
            flip(5, backend="torch"),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.one_hidden(141, 20, HARD, "binary"),
        seed=14,
        steps=10,
    ),
    "flip one hidden classes": lambda: found(
        belief_propagation(
            flip(5, backend="torch"),
            damping=0.8,
            batch=6,
            prior_scale=0.1,
        ),
        problems.one_hidden_classes(151, 24, beta=4.0),
        seed=15,
        steps=12,
    ),
    "flip linear classes": lambda: found(
        belief_propagation(
            flip(5, backend="torch"),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.linear_classes(161, 20, beta=4.0),
        seed=16,
        steps=10,
    ),
    "flip conv": lambda: found(
        belief_propagation(
            flip(2, backend="torch"),
            damping=0.8,
            batch=4,
            prior_scale=0.1,
        ),
        problems.conv(171, 12, beta=3.0),
        seed=17,
        steps=4,
    ),
    "flip black box": lambda: found(
        belief_propagation(
            flip(16, backend="torch"),
            damping=0.8,
            batch=None,
            prior_scale=0.1,
        ),
        problems.parities(beta=1.0),
        seed=18,
        steps=10,
    ),
    "counting linear numba": lambda: found(
        belief_propagation(
            counting(
                64,
                smoothing=1.0,
                least_hits=0,
                backend="numba",
            ),
            damping=0.9,
            batch=8,
            prior_scale=0.1,
        ),
        problems.linear(181, 40, 21, beta=3.0),
        seed=19,
        steps=20,
    ),
    "counting two hidden numba fallback flip": lambda: found(
        belief_propagation(
            counting(
                64,
                smoothing=1.0,
                least_hits=8,
                backend="numba",
            ),
            damping=0.7,
            batch=6,
            prior_scale=1.0,
        ),
        problems.two_hidden(191, 24, beta=4.0),
        seed=20,
        steps=12,
    ),
    # changed: messages of too few draws were replaced by pinned ones
    "counting two hidden classes torch fallback": lambda: found(
        belief_propagation(
            counting(
                32,
                smoothing=0.5,
                least_hits=6,
                backend="torch",
            ),
            damping=0.8,
            batch=6,
            prior_scale=1.0,
        ),
        problems.two_hidden_classes(201, 18, beta=HARD),
        seed=21,
        steps=9,
    ),
    "counting conv numba": lambda: found(
        belief_propagation(
            counting(
                64,
                smoothing=1.0,
                least_hits=4,
                backend="numba",
            ),
            damping=0.9,
            batch=8,
            prior_scale=0.1,
        ),
        problems.conv(211, 24, beta=5.0),
        seed=22,
        steps=9,
    ),
    # changed: it was damped on log-odds, which is gone; damping acts on probabilities
    "counting small conv classes torch": lambda: found(
        belief_propagation(
            counting(
                32,
                smoothing=1.0,
                least_hits=0,
                backend="torch",
            ),
            damping=0.9,
            batch=None,
            prior_scale=0.1,
        ),
        problems.small_conv(221, 16, beta=5.0),
        seed=23,
        steps=6,
    ),
    # changed: messages of too few draws are replaced by those of five flips
    "counting plain torch net": lambda: found(
        belief_propagation(
            counting(
                48,
                smoothing=1.0,
                least_hits=4,
                backend="torch",
            ),
            damping=0.8,
            batch=6,
            prior_scale=0.1,
        ),
        problems.torch_tanh(231, 18, beta=3.0),
        seed=24,
        steps=9,
    ),
    "flip own module": lambda: found(
        belief_propagation(
            flip(3, backend="torch"),
            damping=0.8,
            batch=5,
            prior_scale=0.1,
        ),
        problems.own_module(241, 15, beta=4.0),
        seed=25,
        steps=9,
    ),
}
