"""Logistic regression with weights of eight bits, in whole numbers throughout."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from vitrail.lab.rivals.features import MISSING, Columns, Features, joined

UNIT = 64  # a standard deviation
SHIFT = 10  # of the factors that numbers are scaled by
LEAST = 0.5  # deviation, so that factors are no larger than products can be
LOGISTIC = """
static int best(const tiny_row *row)
{{
    static const int8_t w[] = {{{w}}};
    static const int32_t b[] = {{{b}}};
{tables}
    int16_t x[{n}];
    int c, i, answer = 0;
    int32_t most = 0;
{scaling}
    for (c = 0; c < {outputs}; c++) {{
        int32_t sum = b[c];
        for (i = 0; i < {n}; i++) {{
            sum += w[c * {n} + i] * x[i];
        }}
        if ({outputs} == 1) return sum > 0;
        if (c == 0 || sum > most) {{
            most = sum;
            answer = c;
        }}
    }}
    return answer;
}}
"""
SCALED = """\
    for (i = 0; i < {count}; i++) {{
        x[i] = (int16_t)({known}((row->n[i] - middle[i]) * factor[i] >> {shift}));
    }}"""
WORDS = """\
    for (i = {count}; i < {n}; i++) {{
        x[i] = 0;
    }}
    for (i = 0; i < {words}; i++) {{
        if (row->w[i] < count[i]) {{
            x[first[i] + row->w[i]] = {unit};
        }}
    }}"""


@dataclass(frozen=True)
class Logistic:
    """Weights of eight bits on numbers that are standardised in whole numbers.

    A number v becomes (v − middle)·factor >> SHIFT, near UNIT where it stands a standard deviation
    above its mean; a missing one becomes 0. A word counts UNIT where it stands.
    """

    features: Features
    classes: np.ndarray
    middle: np.ndarray  # of numbers, int16
    factor: np.ndarray  # int32
    weights: np.ndarray  # (outputs, features) int8, one output for two classes
    bias: np.ndarray  # (outputs,) int32
    holes: bool  # whether numbers were missing in training

    @staticmethod
    def fit(columns: Columns, labels: np.ndarray, strength: float) -> Logistic:
        features = Features.fit(columns)
        numbers = features.matrix(columns)[:, : len(features.numbers)].astype(np.float64)
        numbers[numbers == MISSING] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
            middle = np.nan_to_num(np.rint(np.nanmean(numbers, 0))).astype(np.int64)
            spread = np.nan_to_num(np.nanstd(numbers, 0))
        factor = np.rint(UNIT * 2**SHIFT / np.maximum(spread, LEAST)).astype(np.int64)
        nothing, holes = np.zeros(0), bool(np.isnan(numbers).any())
        plain = Logistic(features, np.unique(labels), middle, factor, nothing, nothing, holes)
        learned = LogisticRegression(C=strength, max_iter=2000)
        learned.fit(plain.scaled(columns) / UNIT, labels)
        weights, bias = learned.coef_, learned.intercept_
        scale = 127 / max(np.abs(weights).max(), 1e-9)
        whole = np.rint(weights * scale).astype(np.int64)
        return replace(plain, weights=whole, bias=np.rint(bias * scale * UNIT).astype(np.int64))

    def scaled(self, columns: Columns) -> np.ndarray:
        """Features, (rows, features) int64."""
        matrix = self.features.matrix(columns).astype(np.int64)
        count = len(self.features.numbers)
        numbers = (matrix[:, :count] - self.middle) * self.factor >> SHIFT
        numbers[matrix[:, :count] == MISSING] = 0
        return np.hstack([numbers, matrix[:, count:] * UNIT])

    def predict(self, columns: Columns) -> np.ndarray:
        """The class of each row."""
        sums = self.scaled(columns) @ self.weights.T + self.bias
        return self.classes[sums.argmax(1) if len(self.bias) > 1 else (sums[:, 0] > 0).astype(int)]

    def in_c(self) -> str:
        """The function `best` of a row."""
        features = self.features
        count, words = len(features.numbers), len(features.words)
        n = len(features.columns)
        tables, scaling = [], []
        if count:
            wide = "int32_t" if self.factor.max() > 32767 else "int16_t"
            tables.append(f"static const int16_t middle[] = {{{joined(self.middle)}}};")
            tables.append(f"static const {wide} factor[] = {{{joined(self.factor)}}};")
            known = f"row->n[i] == {MISSING} ? 0 : " if self.holes else ""
            scaling.append(SCALED.format(count=count, known=known, shift=SHIFT))
        if words:
            sizes = [len(each) for each in features.words.values()]
            first = count + np.cumsum([0, *sizes[:-1]])
            kind = "uint8_t" if n < 256 else "uint16_t"
            tables.append(f"static const {kind} first[] = {{{joined(first)}}};")
            tables.append(f"static const uint8_t count[] = {{{joined(np.array(sizes))}}};")
            scaling.append(WORDS.format(count=count, n=n, words=words, unit=UNIT))
        return LOGISTIC.format(
            w=joined(self.weights),
            b=joined(self.bias),
            n=n,
            outputs=len(self.bias),
            tables="\n".join(f"    {line}" for line in tables),
            scaling="\n".join(scaling),
        )
