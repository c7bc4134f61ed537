"""What people export instead, in C: trees and forests by emlearn and m2cgen, int8 by hand.

Every rival becomes a header with the names that vitrail's firmware asks for, so that the same
tools measure all. It reads whole numbers of 16 bits, which stand ready for it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

LEAVES = (3, 6, 12, 24, 96)
FORESTS = ((5, 6), (10, 12), (20, 24))  # trees and leaves
GOLDEN = 16
UNIT = 1000  # of standardised columns: a standard deviation in 16 bits


@dataclass(frozen=True)
class Split:
    """A table with its labels, and the numbers of rows to train on and of those held out."""

    table: pd.DataFrame
    labels: np.ndarray
    rows: np.ndarray
    held: np.ndarray


def exported(split: Split) -> Iterator[tuple[str, str, float, str]]:
    """Method, size, accuracy on rows held out, and the header."""
    import emlearn
    import m2cgen

    rows, held = split.rows, split.held
    values = _whole_numbers(split.table, rows)
    classes, y = np.unique(split.labels, return_inverse=True)
    made: list[tuple[str, str, Any]] = [
        ("tree", f"{leaves} leaves", DecisionTreeClassifier(max_leaf_nodes=leaves))
        for leaves in LEAVES
    ]
    made += [
        ("forest", f"{trees} x {leaves}", RandomForestClassifier(trees, max_leaf_nodes=leaves))
        for trees, leaves in FORESTS
    ]
    for kind, size, learner in made:
        learner.set_params(random_state=0).fit(values[rows], y[rows])
        said = learner.predict(values)
        right = float(np.mean(said[held] == y[held]))
        code = emlearn.convert(learner, method="inline").save(name="rival", format="c")
        answer = f"rival_predict(row->x, {values.shape[1]})"
        header = rival_header(code, answer, values[rows], said[rows], checked=kind == "tree")
        yield f"{kind}, emlearn", size, right, header
        if size in (f"{LEAVES[1]} leaves", "5 x 6"):
            code = m2cgen.export_to_c(learner) + _argmax(values.shape[1], len(classes))
            header = rival_header(code, "score_best(row->x)", values[rows], said[rows])
            yield f"{kind}, m2cgen", size, right, header
    weights, bias = _logistic(values[rows], y[rows])
    said = (values.astype(np.int64) @ weights.T + bias).argmax(1)
    code = LOGISTIC.format(
        n=values.shape[1], c=len(classes), w=_listed(weights), b=_listed(bias), classes=len(classes)
    )
    header = rival_header(code, "best(row->x)", values[rows], said[rows])
    yield "logistic, int8", "", float(np.mean(said[held] == y[held])), header


def _whole_numbers(table: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """Numbers and one-hot words, standardised on the training rows, int16."""
    wide = pd.get_dummies(table, columns=[n for n in table if table[n].dtype == object])
    values = wide.to_numpy(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
        middle = np.nan_to_num(np.nanmedian(values[rows], 0))
    values = np.where(np.isnan(values), middle, values)
    spread = values[rows].std(0)
    values = (values - values[rows].mean(0)) / np.where(spread > 0, spread, 1) * UNIT
    return np.clip(np.rint(values), -32767, 32767).astype(np.int16)


def _logistic(values: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of eight bits for each class, and what is added."""
    learned = LogisticRegression(max_iter=1000).fit(values / UNIT, y)
    weights, bias = learned.coef_, learned.intercept_
    if len(weights) == 1:
        weights, bias = np.vstack([-weights, weights]) / 2, np.hstack([-bias, bias]) / 2
    scale = 127 / np.abs(weights).max()
    whole = np.rint(weights * scale).astype(np.int64)
    return whole, np.rint(bias * scale * UNIT).astype(np.int64)


LOGISTIC = """
static int best(const int16_t *x)
{{
    static const int8_t w[] = {{{w}}};
    static const int32_t b[] = {{{b}}};
    int c, i, answer = 0;
    int32_t most = 0;
    for (c = 0; c < {c}; c++) {{
        int32_t sum = b[c];
        for (i = 0; i < {n}; i++) {{
            sum += w[c * {n} + i] * x[i];
        }}
        if (c == 0 || sum > most) {{
            most = sum;
            answer = c;
        }}
    }}
    return answer;
}}
"""


def _argmax(columns: int, classes: int) -> str:
    return f"""
static int score_best(const int16_t *x)
{{
    double in[{columns}], out[{max(classes, 2)}];
    int i, best = 0;
    for (i = 0; i < {columns}; i++) in[i] = x[i];
    score(in, out);
    for (i = 1; i < {classes}; i++) if (out[i] > out[best]) best = i;
    return best;
}}
"""


def rival_header(
    code: str, answer: str, rows: np.ndarray, said: np.ndarray, checked: bool = True
) -> str:
    """A rival's code with the names that the firmware asks for; `checked` by what Python said."""
    code = re.sub(r'#include [<"]eml_\w+\.h[>"]', "", code)
    lines = ",\n".join("{{" + _listed(row) + "}}" for row in rows[:GOLDEN])
    wrong = "wrong += tiny_predict(&tiny_golden_rows[i]) != answers[i];" if checked else ""
    return f"""
#include <stdint.h>
#include <string.h>
{code}
typedef struct {{ int16_t x[{rows.shape[1]}]; }} tiny_row;
static int tiny_predict(const tiny_row *row) {{ return (int){answer}; }}
#ifdef TINY_CHECK
#define TINY_GOLDEN {min(GOLDEN, len(rows))}u
static const tiny_row tiny_golden_rows[] = {{{lines}}};
static unsigned tiny_check(void)
{{
    static const uint8_t answers[] = {{{_listed(said[:GOLDEN])}}};
    unsigned i, wrong = 0;
    for (i = 0; i < TINY_GOLDEN; i++) {{ (void)answers; {wrong} }}
    return wrong;
}}
#endif
"""


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(map(str, np.asarray(numbers).ravel().tolist()))
