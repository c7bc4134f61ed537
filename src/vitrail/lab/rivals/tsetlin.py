"""A Tsetlin machine in C: clauses of bits and their opposites vote for or against a class."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from vitrail.extras import needs
from vitrail.lab.rivals.features import Columns, Features, fill

PACKAGE = "pyTsetlinMachine"
CLAUSES, MARGIN, SPECIFICITY, EPOCHS = 20, 15, 3.0, 50  # of a class; as its authors' small examples
CUTS = 4  # of a number, at quantiles


def installed() -> bool:
    """Whether there is one to learn by."""
    return find_spec(PACKAGE) is not None


@dataclass(frozen=True)
class Tsetlin:
    """Clauses (classes, clauses, 2·bits) of bits, the even places, and opposites, the odd ones.

    A bit says whether a number is above a cut, or which word stands there; numbers come first.
    Clauses of even number vote for their class, the others against it; empty ones do not vote.
    """

    features: Features
    classes: np.ndarray
    bits: list[tuple[int, int]]  # feature, and the cut that it is above
    clauses: np.ndarray

    @staticmethod
    def fit(columns: Columns, labels: np.ndarray) -> Tsetlin:
        """Raises MissingPackageError where there is no Tsetlin machine to learn by."""
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
        states = [  # it has all bits before their opposites
            [[machine.ta_action(c, j, i) for i in range(2 * len(bits))] for j in range(CLAUSES)]
            for c in range(len(classes))
        ]
        found = np.array(states, bool).reshape(len(classes), CLAUSES, 2, -1)
        clauses = found.swapaxes(2, 3).reshape(len(classes), CLAUSES, -1)
        return Tsetlin(features, classes, bits, clauses)

    def literals(self, columns: Columns) -> np.ndarray:
        """Bits and their opposites in turn, (rows, 2·bits) of booleans."""
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
        """The function `best` of a row."""
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
