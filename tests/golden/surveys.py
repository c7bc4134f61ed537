"""Survey propagation: both solvers, every variable side, and feed; SNMP."""

import math
from typing import Any

from golden import problems
from golden.record import Rows, found, staged

from vitrail.solvers import decimated, s3p, s4p, snmp
from vitrail.surveys import gaussian, tilted, weighted
from vitrail.updates import counting, exact, flip, pinned

HARD = math.inf
MEMORY = 2**28
USUAL: dict[str, Any] = {
    "split": "round",
    "hard_ends": False,
    "prior_scale": 0.1,
    "watch": (),
    "memory": MEMORY,
}

ROWS: Rows = {
    # changed, as was "s3p flip linear": S3P also scores tracks drawn from its beliefs
    "s3p exact tables": lambda: found(
        s3p(
            exact(),
            survey_samples=20,
            bins=41,
            damping=0.2,
            batch=None,
            split="round",
            hard_ends=True,
            prior_scale=0.1,
            watch=(),
            memory=MEMORY,
        ),
        problems.tables(411, beta=HARD),
        seed=41,
        steps=4,
    ),
    "s3p flip linear": lambda: found(
        s3p(
            flip(5, backend="torch"),
            survey_samples=16,
            bins=41,
            damping=0.5,
            batch=6,
            **{**USUAL, "split": "linear"},
        ),
        problems.linear(421, 14, 9, beta=3.0),
        seed=42,
        steps=6,
    ),
    "s4p weighted histogram": lambda: found(
        s4p(
            pinned(3),
            survey_samples=16,
            bins=41,
            damping=0.2,
            batch=None,
            variable=weighted(),
            feed="histogram",
            **USUAL,
        ),
        problems.linear(431, 14, 9, beta=3.0),
        seed=43,
        steps=4,
    ),
    # mended: logarithms of bins were taken in float32, which moved the marginals of this row
    # changed: the exponent was 2, the paper has none
    "s4p weighted draws batches": lambda: found(
        s4p(
            flip(5, backend="torch"),
            survey_samples=20,
            bins=51,
            damping=0.5,
            batch=5,
            variable=weighted(),
            feed="draws",
            **USUAL,
        ),
        problems.linear(441, 16, 11, beta=2.0),
        seed=44,
        steps=8,
    ),
    "s4p tilted numba": lambda: found(
        s4p(
            flip(5, backend="numba"),
            survey_samples=20,
            bins=51,
            damping=0.2,
            batch=None,
            variable=tilted(),
            feed="draws",
            **USUAL,
        ),
        problems.linear(451, 24, 15, beta=3.0),
        seed=45,
        steps=6,
    ),
    # changed: surveys were stored in 16 bits, which is gone
    "s4p tilted unequal": lambda: found(
        s4p(
            flip(5, backend="numba"),
            survey_samples=20,
            bins=51,
            damping=0.4,
            batch=6,
            variable=tilted(),
            feed="draws",
            **USUAL,
        ),
        problems.unequal(461, beta=3.0),
        seed=46,
        steps=8,
    ),
    "s4p tilted hard ends histogram linear split": lambda: found(
        s4p(
            exact(),
            survey_samples=16,
            bins=41,
            damping=0.5,
            batch=None,
            variable=tilted(),
            feed="histogram",
            **{**USUAL, "split": "linear", "hard_ends": True},
        ),
        problems.tables(11, beta=HARD),
        seed=47,
        steps=5,
    ),
    "s4p gaussian one hidden numba": lambda: found(
        s4p(
            flip(5, backend="numba"),
            survey_samples=20,
            bins=51,
            damping=0.2,
            batch=None,
            variable=gaussian(),
            feed="draws",
            **USUAL,
        ),
        problems.one_hidden(481, 24, beta=3.0),
        seed=48,
        steps=6,
    ),
    "s4p gaussian hard ends torch": lambda: found(
        s4p(
            flip(5, backend="torch"),
            survey_samples=20,
            bins=51,
            damping=0.2,
            batch=6,
            variable=gaussian(),
            feed="draws",
            **{**USUAL, "hard_ends": True},
        ),
        problems.linear(491, 18, 11, beta=HARD),
        seed=49,
        steps=8,
    ),
    "s4p counting two hidden": lambda: found(
        s4p(
            counting(
                32,
                smoothing=1.0,
                least_hits=0,
                backend="torch",
            ),
            survey_samples=10,
            bins=41,
            damping=0.2,
            batch=6,
            variable=tilted(),
            feed="draws",
            **USUAL,
        ),
        problems.two_hidden(501, 24, beta=3.0),
        seed=50,
        steps=5,
    ),
    "decimated s4p": lambda: found(
        decimated(
            s4p(
                flip(5, backend="numba"),
                survey_samples=16,
                bins=41,
                damping=0.2,
                batch=None,
                variable=tilted(),
                feed="draws",
                **USUAL,
            ),
            fraction=0.2,
            rest=2,
        ),
        problems.linear(511, 20, 15, beta=HARD),
        seed=51,
        steps=10,
    ),
    "snmp linear": lambda: staged(
        snmp(
            flip(5, backend="numba"),
            inner=pinned(3),
            steps=(6, 4),
            sbp_damping=0.8,
            batch=None,
            survey_samples=12,
            bins=41,
            damping=0.2,
            variable=weighted(),
            feed="histogram",
            **USUAL,
        ),
        problems.unequal(521, beta=3.0),
        seed=52,
    ),
    "snmp one hidden batches": lambda: staged(
        snmp(
            flip(5, backend="numba"),
            inner=flip(3, backend="numba"),
            steps=(8, 6),
            sbp_damping=0.8,
            batch=6,
            survey_samples=12,
            bins=41,
            damping=0.2,
            variable=tilted(),
            feed="draws",
            **USUAL,
        ),
        problems.one_hidden(531, 24, beta=3.0),
        seed=53,
    ),
}
