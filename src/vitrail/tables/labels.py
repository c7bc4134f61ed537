"""Labels as numbers 0, 1, … and back, exactly as they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrail.errors import DataError, listed
from vitrail.state import StateReader
from vitrail.tables.cells import (
    MISSING_TYPES,
    advice_on_dates,
    as_category,
    as_column,
    is_missing,
    place_in_table,
)
from vitrail.tables.spelling import as_number, stripped

Label = str | int | float | bool
Place = Callable[[int], str]  # what a row, counted from 0, is called in a sentence

# numpy's kinds of arrays that can be labels, and the name of each in a model file
LABEL_KINDS = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "str", "O": "object"}
LARGE_NUMBERS = "uint64"  # the kind of unsigned numbers that int64 cannot hold
NAMES_OF_NOTHING = {"none", "None", "NONE"}  # missing in a feature, a class also in a text file
MANY_CLASSES = 20  # beyond, numbers with fractions are amounts, and labels should recur


@dataclass(frozen=True)
class LabelCoder:
    """The classes in ascending order; class k has the number k.

    Text is kept verbatim: `001` and `1` are two classes, and each is written back as it was read.
    Blanks around it make no class of their own: of ` lily` and `lily`, which are one, the spelling
    is kept that occurs most often.
    kind: the numpy type of decoded labels, one of the values of LABEL_KINDS.
    """

    classes: tuple[Label, ...]
    kind: str

    @staticmethod
    def fit(labels: Any, place: Place = place_in_table) -> LabelCoder:
        """Learn the classes of a column of labels: text, whole or decimal numbers, booleans."""
        values, kind = require_labels(labels, place)
        if not values:
            raise DataError("expected labels to learn from, got none; add rows")
        counts = Counter(values)
        ranked = sorted(counts, key=lambda label: (-counts[label], len(str(label)), str(label)))
        spelling = {
            stripped(label) if isinstance(label, str) else label: label
            for label in reversed(ranked)
        }
        try:
            classes = sorted(spelling.values())
        except TypeError:
            kinds = sorted({type(label).__name__ for label in counts})
            raise DataError(
                f"labels are of mixed types ({', '.join(kinds)}); make them all text or all numbers"
            ) from None
        if len(classes) == 1:
            raise DataError(
                f"expected at least two classes, but every label is {classes[0]!r}; "
                "give rows of another class too"
            )
        numbers = [as_number(label) for label in classes]
        fractions = [label for label, x in zip(classes, numbers, strict=True) if x % 1]
        if len(classes) > MANY_CLASSES and all(map(np.isfinite, numbers)) and fractions:
            raise DataError(
                f"the target holds amounts, such as {fractions[0]} ({len(classes)} different "
                "ones), where a classifier needs classes; cut them into ranges, such as low and "
                "high, or choose another column"
            )
        texts = [label for label in classes if isinstance(label, str)]
        strange = next((text for text in texts if as_category(text) != stripped(text)), None)
        if strange is not None:
            raise DataError(f"the label {strange!r} cannot be written as UTF-8; correct it")
        return LabelCoder(tuple(classes), kind)

    def encode(self, labels: Any, place: Place = place_in_table) -> np.ndarray:
        """The number of each label, (rows,) int64; a label that is no class is an error.

        The class 1 is also found as the text `1` and the reverse, so that a model trained on one
        kind of file can be tested on another. `place` names a row in an error.
        """
        values, _ = require_labels(labels, place)
        number: dict[Any, int] = {as_category(label): k for k, label in enumerate(self.classes)}
        number |= {label: k for k, label in enumerate(self.classes)}
        number = {x: number.get(x, number.get(as_category(x), -1)) for x in set(values)}
        unknown = next((row for row, label in enumerate(values) if number[label] < 0), None)
        if unknown is not None:
            raise DataError(
                f"label {values[unknown]!r} in {place(unknown)} is none of the classes "
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
        read = StateReader(state, "label coder")
        kind = read.text("kind")
        read.require(
            kind in {*LABEL_KINDS.values(), LARGE_NUMBERS},
            f"has labels of the unknown kind {kind!r}",
        )
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


def check_target(labels: Any, place: Place = place_in_table, untyped: bool = False) -> None:
    """Raise a DataError where a column cannot be what a classifier learns; `place` names a row.

    untyped: as for `require_labels`.
    """
    if not len(labels):
        raise DataError("the table has columns but no rows; add rows to learn from")
    values, _ = require_labels(labels, place, untyped)
    classes = {stripped(label) if isinstance(label, str) else label for label in values}
    if not 1 < len(classes) <= MANY_CLASSES:
        LabelCoder.fit(labels, place)  # says what else is wrong with them
        check_recurring(len(classes), len(labels))


def check_recurring(classes: int, rows: int) -> None:
    """Raise a DataError where there are too few rows of each class."""
    if classes > max(MANY_CLASSES, rows / 2):
        raise DataError(
            f"the target has {classes} different labels in {rows} rows, too few of each to "
            "learn from; choose another column, or group its values"
        )


def as_labels(values: Any) -> np.ndarray:
    """The values as an array; a NaN among text stays one, which numpy would write as 'nan'."""
    array = np.asarray(values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        objects = np.asarray(values, object)
        if any(is_missing(x) for x in objects.flat if not isinstance(x, str)):
            return objects
    return array


def require_labels(
    labels: Any, place: Place = place_in_table, untyped: bool = False
) -> tuple[list[Any], str]:
    """The labels as Python values, and their kind.

    A DataError where one is missing, or is neither text, number nor boolean.
    untyped: whether labels are cells of a text file, where `NA` and the like are missing values.
    """
    array = as_column(labels, "expected one label per row", as_labels)
    if array.dtype.kind not in LABEL_KINDS:
        raise _not_a_label(str(array.dtype))
    values = [x.item() if isinstance(x, np.generic) else x for x in array.tolist()]
    for kind in set(map(type, values)):
        if not issubclass(kind, Label) and kind.__name__ not in MISSING_TYPES:
            raise _not_a_label(kind.__name__)
    missing = []
    for value in values:
        # text may say anything, as `NA` is a country; in a text file it is no value
        text = stripped(value) if isinstance(value, str) else ""
        is_name = bool(text) and (not untyped or text in NAMES_OF_NOTHING)
        missing.append(not is_name and is_missing(value))
    if any(missing):
        raise DataError(
            f"the label is missing in {sum(missing)} of {len(missing)} rows, first in "
            f"{place(missing.index(True))}; fill it in or leave these rows out"
        )
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        return values, LARGE_NUMBERS
    return values, LABEL_KINDS[array.dtype.kind]


def _not_a_label(kind: str) -> DataError:
    advice = advice_on_dates(kind) or "convert the column"
    return DataError(f"labels must be text, numbers or booleans, got {kind}; {advice}")
