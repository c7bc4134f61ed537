"""Rivals in C: trees and forests by emlearn and m2cgen, boosting and eight-bit logistic by hand.

Each becomes a header with the names that vitrail's firmware asks for, so that the same tools
measure all. A row is a struct of 16-bit numbers and of words by number. Code of emlearn reads it
where it stands; that of m2cgen reads doubles, which are made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from footprints.learners import SHIFT, UNIT, Logistic, Trained, voted
from footprints.rows import MISSING, Features, Rows

GOLDEN = 16
M2CGEN = {"8 leaves", "3 x 4"}  # sizes; it is several times larger than emlearn throughout


def headers(one: Trained, seen: Rows) -> Iterator[tuple[str, str]]:
    """The names of ways to write a rival in C, and the headers; the rows become golden vectors."""
    rows = seen.taken(np.arange(GOLDEN), one.columns)
    if one.method == "logistic":
        said = one.learner.classes.searchsorted(one.learner.predict(rows.table))
        yield "logistic, int8", _header(*_logistic(one.learner), rows, said)
        return
    features = Features.fit(seen.table)
    x = features.matrix(rows.table)
    said = one.learner.classes_.searchsorted(one.learner.predict(x))
    if one.method == "boosting":
        boosted = Boosted(one.learner, features)
        for way, code in boosted.ways():
            yield f"boosting, {way}", _header(features, code, rows, boosted.predict(x))
        return
    import emlearn
    import m2cgen

    hard = said
    if one.method == "forest":
        hard = one.learner.classes_.searchsorted(voted(one.learner, x))
    exact = _whole_cuts(one.learner)
    converted: Any = emlearn.convert(exact, method="inline")
    code = converted.save(name="rival", format="c")
    code = _reading_rows(code, features)
    yield f"{one.method}, emlearn", _header(features, code, rows, hard, "rival_predict(row, 0)")
    if one.size in M2CGEN:
        code = m2cgen.export_to_c(one.learner) + _argmax(features, len(one.learner.classes_))
        yield f"{one.method}, m2cgen", _header(features, code, rows, said)


def _whole_cuts(learner: Any) -> Any:
    """A copy whose x <= 7.5 is x < 8, which emlearn keeps: it would make x < 7 of it."""
    copy = deepcopy(learner)
    for tree in getattr(copy, "estimators_", [copy]):
        inner = tree.tree_.children_left >= 0
        tree.tree_.threshold[inner] = np.floor(tree.tree_.threshold[inner]) + 1
    return copy


def _reading_rows(code: str, features: Features) -> str:
    code = re.sub(r"#include .*", "", code)
    code = code[: code.index("int rival_predict_proba")]
    code = re.sub(r"features\[(\d+)\]", lambda m: features.expression(int(m[1])), code)
    return code.replace("const int16_t *features", "const tiny_row *row").replace(
        "(features, features_length)", "(row, features_length)"
    )


def _argmax(features: Features, classes: int) -> str:
    lines = "\n".join(
        f"    in[{i}] = {features.expression(i)};" for i in range(len(features.columns))
    )
    return f"""
static int best(const tiny_row *row)
{{
    double in[{len(features.columns)}], out[{max(classes, 2)}];
    int i, most = 0;
{lines}
    score(in, out);
    for (i = 1; i < {classes}; i++) if (out[i] > out[most]) most = i;
    return most;
}}
"""


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


def _logistic(one: Logistic) -> tuple[Features, str]:
    features = one.features
    count, words = len(features.numbers), len(features.words)
    n = len(features.columns)
    tables, scaling = [], []
    if count:
        wide = "int32_t" if one.factor.max() > 32767 else "int16_t"
        tables.append(f"static const int16_t middle[] = {{{_listed(one.middle)}}};")
        tables.append(f"static const {wide} factor[] = {{{_listed(one.factor)}}};")
        known = f"row->n[i] == {MISSING} ? 0 : " if one.holes else ""
        scaling.append(SCALED.format(count=count, known=known, shift=SHIFT))
    if words:
        sizes = [len(each) for each in features.words.values()]
        first = count + np.cumsum([0, *sizes[:-1]])
        kind = "uint8_t" if n < 256 else "uint16_t"
        tables.append(f"static const {kind} first[] = {{{_listed(first)}}};")
        tables.append(f"static const uint8_t count[] = {{{_listed(np.array(sizes))}}};")
        scaling.append(WORDS.format(count=count, n=n, words=words, unit=UNIT))
    return features, LOGISTIC.format(
        w=_listed(one.weights),
        b=_listed(one.bias),
        n=n,
        outputs=len(one.bias),
        tables="\n".join(f"    {line}" for line in tables),
        scaling="\n".join(scaling),
    )


TABLE = """
typedef struct {{ int16_t value; uint8_t feature, right; }} node; /* left is the next */
static const node nodes[] = {{{nodes}}};
static const uint16_t roots[] = {{{roots}}};
static void add(const tiny_row *row, int32_t *sum)
{{
    int i, c = 0;
    for (i = 0; i < {trees}; i++) {{
        const node *at = nodes + roots[i];
        while (at->feature != 255) {{
            at += {left} ? 1 : at->right;
        }}
        sum[c] += at->value;
        c = c + 1 == {outputs} ? 0 : c + 1;
    }}
}}
"""
BEST = """
static int best(const tiny_row *row)
{{
    static const int32_t bias[] = {{{bias}}};
    int32_t sum[{outputs}];
    int c, most = 0;
    for (c = 0; c < {outputs}; c++) sum[c] = bias[c];
    add(row, sum);
    if ({outputs} == 1) return sum[0] > 0;
    for (c = 1; c < {outputs}; c++) if (sum[c] > sum[most]) most = c;
    return most;
}}
"""
MOST_LEAF = 32767


class Boosted:
    """Boosted trees whose leaves are whole numbers of 16 bits."""

    def __init__(self, learner: Any, features: Features) -> None:
        self.features = features
        self.trees = [stage.tree_ for stages in learner.estimators_ for stage in stages]
        self.outputs = learner.estimators_.shape[1]
        most = max(np.abs(tree.value).max() for tree in self.trees) * learner.learning_rate
        scale = min(MOST_LEAF / most, 2.0**12)
        self.leaves = [
            np.rint(tree.value.ravel() * learner.learning_rate * scale).astype(int)
            for tree in self.trees
        ]
        x = np.zeros((1, len(features.columns)), np.float32)
        added = np.zeros(self.outputs)
        for place, tree in enumerate(self.trees):
            added[place % self.outputs] += tree.predict(x)[0].item() * learner.learning_rate
        start = np.ravel(learner.decision_function(x)) - added
        self.bias = np.rint(start * scale).astype(int)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Classes of rows of features."""
        sums = np.tile(self.bias, (len(x), 1))
        for place, (tree, leaves) in enumerate(zip(self.trees, self.leaves, strict=True)):
            sums[:, place % self.outputs] += leaves[tree.apply(x.astype(np.float32))]
        return (sums[:, 0] > 0).astype(int) if self.outputs == 1 else sums.argmax(1)

    def ways(self) -> Iterator[tuple[str, str]]:
        """As a table that is walked, and as nested conditions, which are larger and faster."""
        best = BEST.format(bias=_listed(self.bias), outputs=self.outputs)
        yield "table", self._table() + best
        lines = [
            self._nested(place, 0, f"sum[{place % self.outputs}]")
            for place in range(len(self.trees))
        ]
        body = "\n".join(lines)
        yield (
            "inline",
            f"static void add(const tiny_row *row, int32_t *sum)\n{{\n{body}\n}}\n{best}",
        )

    def _nested(self, place: int, node: int, target: str) -> str:
        tree = self.trees[place]
        if tree.children_left[node] < 0:
            return f"{target} += {self.leaves[place][node]};"
        left, right = (
            self._nested(place, child, target)
            for child in (tree.children_left[node], tree.children_right[node])
        )
        what = self.features.expression(int(tree.feature[node]))
        cut = int(np.floor(tree.threshold[node]))
        return f"if ({what} <= {cut}) {{ {left} }} else {{ {right} }}"

    def _table(self) -> str:
        nodes: list[str] = []
        roots = []
        count = len(self.features.numbers)
        words = list(self.features.words)

        def add(place: int, node: int) -> None:
            tree = self.trees[place]
            if tree.children_left[node] < 0:
                nodes.append(f"{{{self.leaves[place][node]}, 255, 0}}")
                return
            name, word = self.features.columns[tree.feature[node]]
            if word is None:
                value, feature = int(np.floor(tree.threshold[node])), int(tree.feature[node])
            else:
                value, feature = self.features.words[name].index(word), count + words.index(name)
            here = len(nodes)
            nodes.append("")
            add(place, tree.children_left[node])
            nodes[here] = f"{{{value}, {feature}, {len(nodes) - here}}}"
            add(place, tree.children_right[node])

        for place in range(len(self.trees)):
            roots.append(len(nodes))
            add(place, 0)
        left = "row->n[at->feature] <= at->value"
        if words:
            other = f"row->w[at->feature - {count}] != at->value"
            left = f"(at->feature < {count} ? {left} : {other})" if count else other
        return TABLE.format(
            nodes=", ".join(nodes),
            roots=_listed(np.array(roots)),
            trees=len(self.trees),
            outputs=self.outputs,
            left=left,
        )


def _header(
    features: Features, code: str, rows: Rows, said: np.ndarray, answer: str = "best(row)"
) -> str:
    """A rival's code with the names that the firmware asks for, checked by what Python says."""
    return f"""
#include <stdint.h>
#include <string.h>
{features.struct}
{code}
static int tiny_predict(const tiny_row *row) {{ return (int){answer}; }}
#ifdef TINY_CHECK
#define TINY_GOLDEN {GOLDEN}u
static const tiny_row tiny_golden_rows[] = {{{", ".join(features.in_c(rows.table))}}};
static unsigned tiny_check(void)
{{
    static const uint8_t answers[] = {{{_listed(said)}}};
    unsigned i, wrong = 0;
    for (i = 0; i < TINY_GOLDEN; i++) wrong += tiny_predict(&tiny_golden_rows[i]) != answers[i];
    return wrong;
}}
#endif
"""


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(map(str, np.asarray(numbers).ravel().tolist()))
