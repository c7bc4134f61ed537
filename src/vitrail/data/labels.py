"""Labels as numbers 0, 1, … and back, exactly as they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrail.data.cells import as_word, is_missing
from vitrail.data.errors import DataError, listed
from vitrail.data.plain import PlainReader

Label = str | int | float | bool

# numpy's kinds of arrays that can be labels, and the name of each in a model file
LABEL_KINDS = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "str", "O": "object"}
NAMES_OF_NOTHING = {"none", "None", "NONE"}  # missing in a feature, but a fair name for a class


@dataclass(frozen=True)
class LabelCoder:
    """The classes in ascending order; class k has the number k.

    Text is kept verbatim: `001` and `1` are two classes, and each is written back as it was read.
    kind: the numpy type of decoded labels, one of the values of LABEL_KINDS.
    """

    classes: tuple[Label, ...]
    kind: str

    @staticmethod
    def fit(labels: Any) -> LabelCoder:
        """Learn the classes of a column of labels: text, whole or decimal numbers, booleans."""
        array = _column(labels)
        if not len(array):
            raise DataError("expected labels to learn from, got none; add rows")
        _check_missing(array.tolist())
        found = set(array.tolist())
        try:
            classes = sorted(found)
        except TypeError:
            kinds = sorted({type(label).__name__ for label in found})
            raise DataError(
                f"labels are of mixed types ({', '.join(kinds)}); make them all text or all numbers"
            ) from None
        if not all(isinstance(label, Label) for label in classes):
            raise DataError(
                f"labels must be text, numbers or booleans, got {type(classes[0]).__name__}; "
                "convert the column"
            )
        if len(classes) == 1:
            raise DataError(
                f"expected at least two classes, but every label is {classes[0]!r}; "
                "give rows of another class too"
            )
        return LabelCoder(tuple(classes), LABEL_KINDS[array.dtype.kind])

    def encode(self, labels: Any) -> np.ndarray:
        """The number of each label, (rows,) int64; a label that is no class is an error.

        The class 1 is also found as the text `1` and the reverse, so that a model trained on one
        kind of file can be tested on another.
        """
        values = _column(labels).tolist()
        _check_missing(values)
        number: dict[Any, int] = {as_word(label): k for k, label in enumerate(self.classes)}
        number |= {label: k for k, label in enumerate(self.classes)}
        number = {x: number.get(x, number.get(as_word(x), -1)) for x in set(values)}
        unknown = next((row for row, label in enumerate(values) if number[label] < 0), None)
        if unknown is not None:
            raise DataError(
                f"label {values[unknown]!r} in row {unknown + 1} is none of the classes "
                f"{listed(self.classes)}; correct it or leave the row out"
            )
        return np.fromiter((number[label] for label in values), np.int64, len(values))

    def decode(self, numbers: Any) -> np.ndarray:
        """The labels of class numbers, (rows,)."""
        return np.array(self.classes, self.kind)[np.asarray(numbers, np.int64)]

    def to_dict(self) -> dict[str, Any]:
        """The classes as plain text, numbers or booleans, fit for JSON."""
        return {"classes": list(self.classes), "kind": self.kind}

    @staticmethod
    def from_dict(state: object) -> LabelCoder:
        """The coder of `to_dict`; anything malformed is a ValueError."""
        read = PlainReader(state, "label coder")
        kind = read.text("kind")
        read.require(kind in LABEL_KINDS.values(), f"has labels of the unknown kind {kind!r}")
        classes = read.items("classes")
        read.done()
        read.require(len(classes) > 1, "has fewer than two classes")
        labels: list[Any] = [label for label in classes if isinstance(label, Label)]
        of_one_sort = len({isinstance(label, str) for label in labels}) == 1
        read.require(of_one_sort and classes == sorted(set(labels)), "has classes out of order")
        coder = LabelCoder(tuple(labels), kind)
        try:
            fits = coder.decode(np.arange(len(labels))).tolist() == labels
        except (OverflowError, ValueError):
            fits = False
        read.require(fits, f"has classes that are not {kind}")
        return coder


def _column(labels: Any) -> np.ndarray:
    array = np.asarray(labels)
    if array.ndim != 1:
        raise DataError(f"expected one label a row, got labels of shape {array.shape}")
    if array.dtype.kind not in LABEL_KINDS:
        raise DataError(
            f"labels must be text, numbers or booleans, got {array.dtype}; convert the column"
        )
    return array


def _check_missing(labels: list[Any]) -> None:
    rows = [
        row
        for row, label in enumerate(labels)
        if is_missing(label) and label not in NAMES_OF_NOTHING
    ]
    if rows:
        raise DataError(
            f"the label is missing in {len(rows)} of {len(labels)} rows, first in row "
            f"{rows[0] + 1}; fill it in or leave these rows out"
        )
