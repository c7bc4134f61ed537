"""scikit-learn's gradient-boosted trees in C, which emlearn does not export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrail.lab.rivals.features import Features, fill

MOST_LEAF = 7.99  # log-odds; leaves of a single class have no bound
UNIT = 2**12  # integer that stands for log-odds of 1


class Boosted:
    """Boosted trees with 16-bit leaves."""

    def __init__(self, learner: Any, features: Features) -> None:
        self.features = features
        self.trees = [stage.tree_ for stages in learner.estimators_ for stage in stages]
        self.outputs = learner.estimators_.shape[1]
        self.leaves = [
            np.rint(
                np.clip(tree.value.ravel() * learner.learning_rate, -MOST_LEAF, MOST_LEAF) * UNIT
            ).astype(int)
            for tree in self.trees
        ]
        x = np.zeros((1, len(features.columns)), np.float32)
        added = np.zeros(self.outputs)
        for place, tree in enumerate(self.trees):
            added[place % self.outputs] += tree.predict(x)[0].item() * learner.learning_rate
        start = np.ravel(learner.decision_function(x)) - added
        self.bias = np.rint(start * UNIT).astype(int)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Classes of rows of features."""
        sums = np.tile(self.bias, (len(x), 1))
        for place, (tree, leaves) in enumerate(zip(self.trees, self.leaves, strict=True)):
            sums[:, place % self.outputs] += leaves[tree.apply(x.astype(np.float32))]
        return (sums[:, 0] > 0).astype(int) if self.outputs == 1 else sums.argmax(1)

    def variants(self) -> Iterator[tuple[str, str]]:
        """As a table of nodes, and as nested conditions, which are larger and faster."""
        yield "table", fill("boosted", bias=self.bias, **self._table())
        trees = range(len(self.trees))
        nested = [self._nested(place, 0, f"sum[{place % self.outputs}]") for place in trees]
        yield "inline", fill("boosted", bias=self.bias, nodes=[], conditions=nested)

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

    def _table(self) -> dict[str, Any]:
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
        return {"nodes": nodes, "roots": roots, "left": left}
