"""A Tsetlin machine in C: clauses of bits and their negations vote for or against a class."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from vitrail.extras import needs
from vitrail.lab.rivals.features import Columns, Features, fill

PACKAGE = "pyTsetlinMachine"
CLAUSES, MARGIN, SPECIFICITY, EPOCHS = 20, 15, 3.0, 50  # as in its authors' small examples
CUTS = 4  # thresholds per number, at quantiles


def installed() -> bool:
    """Whether the package is installed."""
    return find_spec(PACKAGE) is not None


@dataclass(frozen=True)
class Tsetlin:
    """Clauses (classes, clauses, 2·bits): bits at even places, their negations at odd ones.

    A bit is a number above a threshold, or the presence of a word; numbers come first. Clauses of
    even number vote for their class, others against it; empty clauses do not vote.
    """

    features: Features
    classes: np.ndarray
    bits: list[tuple[int, int]]  # feature and threshold
    clauses: np.ndarray

    @staticmethod
    def fit(columns: Columns, labels: np.ndarray) -> Tsetlin:
        """Train; raises MissingPackageError where the package is not installed."""
        with needs("rivals", "a Tsetlin machine"):
            from pyTsetlinMachine.tm import (  # pyright: ignore[reportMissingImports] (an extra)
                MultiClassTsetlinMachine,
            )

        features = Features.fit(columns)
        matrix = features.matrix(columns)
        shares = np.arange(1, CUTS + 1) / (CUTS + 1)
        bits = [
            (number, int(cut))
            for number in range(len(features.numbers))
            for cut in np.unique(np.floor(np.quantile(matrix[:, number], shares)))
        ]
        bits += [(word, 0) for word in range(len(features.numbers), matrix.shape[1])]
        classes, numbers = np.unique(labels, return_inverse=True)
        plain = Tsetlin(features, classes, bits, np.zeros(0))
        machine = MultiClassTsetlinMachine(CLAUSES, MARGIN, SPECIFICITY)
        rows = plain.literals(columns)[:, ::2].astype(np.uint32)
        machine.fit(rows, numbers.astype(np.uint32), epochs=EPOCHS)
        states = [  # all bits come before their negations
            [[machine.ta_action(c, j, i) for i in range(2 * len(bits))] for j in range(CLAUSES)]
            for c in range(len(classes))
        ]
        found = np.array(states, bool).reshape(len(classes), CLAUSES, 2, -1)
        clauses = found.swapaxes(2, 3).reshape(len(classes), CLAUSES, -1)
        return Tsetlin(features, classes, bits, clauses)

    def literals(self, columns: Columns) -> np.ndarray:
        """Bits and their negations alternating, (rows, 2·bits) of booleans."""
        matrix = self.features.matrix(columns)
        above = np.stack([matrix[:, feature] > cut for feature, cut in self.bits], 1)
        return np.stack([above, ~above], 2).reshape(len(matrix), -1)

    def predict(self, columns: Columns) -> np.ndarray:
        """The class of each row, the first of equals."""
        misses = np.einsum("cjl,rl->rcj", self.clauses.astype(int), ~self.literals(columns))
        holds = (misses == 0) & self.clauses.any(-1)
        votes = holds[..., ::2].sum(-1) - holds[..., 1::2].sum(-1)
        return self.classes[votes.argmax(1)]

    def code(self) -> str:
        """The C function `best` of a row."""
        sides = [[c[k::2][c[k::2].any(-1)] for k in (0, 1)] for c in self.clauses]
        kept = np.concatenate([side for both in sides for side in both])
        masks = np.packbits(kept, axis=1, bitorder="little")
        numbers = [bit for bit in self.bits if bit[0] < len(self.features.numbers)]
        words = self.features.words
        places = [(w, i) for w, known in enumerate(words.values()) for i in range(len(known))]
        return fill(
            "tsetlin",
            bits=self.bits,
            masks=masks,
            votes=[len(side) for both in sides for side in both],
            tests={name: pairs for name, pairs in (("number", numbers), ("word", places)) if pairs},
        )
