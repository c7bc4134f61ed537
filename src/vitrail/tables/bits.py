"""Columns that are bits already (0/1, −1/+1, booleans), and the pixels of images."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vitrail.checks import checked_count
from vitrail.errors import DataError, listed
from vitrail.state import StateReader
from vitrail.tables.cells import read_cells
from vitrail.tables.columns import ColumnAccount, bin_names
from vitrail.tables.frames import Frame, as_frame, places

Ends = tuple[float, float]
BITS, SIGNS = (0.0, 1.0), (-1.0, 1.0)
# What pixels may range over where they are whole numbers, from the darkest to the brightest.
WHOLE_PIXELS = (BITS, SIGNS, (0.0, 16.0), (0.0, 255.0), (0.0, 65535.0))
MOST_CUTS = 255  # as many as a byte has levels


@dataclass(frozen=True)
class BitColumns:
    """As many bits per column as there are cuts, equal steps apart: 1 above the cut, 0 up to it.

    Or one whole number per column, from 0 to `cuts`: how many cuts it is above.

    One cut is the middle of [low, high]. Of several, all columns have their bit of the first cut,
    then all that of the second: the pixels (channels, height, width) of an image become bits
    (cuts·channels, height, width).

    names      the columns in training, in their order
    low, high  (0, 1) for bits and booleans, (−1, 1) for signs, (0, 255) for pixels
    constant   the columns with the same bits in all training rows
    cuts       bits per column
    whole      whether a column is read as a whole number
    trained    all columns of training, where fewer are read; those of arrays are found by place
    narrowest  of images: the first of WHOLE_PIXELS that one of training fits, those of one gray
               apart; images that together fit an earlier one are on another scale
    """

    names: tuple[str, ...]
    low: float
    high: float
    constant: tuple[str, ...] = ()
    cuts: int = 1
    trained: tuple[str, ...] = ()
    narrowest: Ends | None = None
    whole: bool = False

    @staticmethod
    def fit(table: Any, low: float, high: float, cuts: int = 1) -> BitColumns:
        """The columns of a table whose values lie in [low, high]."""
        return BitColumns._fit(as_frame(table), (low, high), cuts)[0]

    @staticmethod
    def fit_images(table: Any, cuts: int = 1, *, whole: bool = False) -> BitColumns:
        """The pixels of a table of images, and their scale, by their range of values.

        Whole numbers are the pixels themselves where those are, up to 255; `cuts` plays no part.
        """
        frame = as_frame(table)
        ends = pixel_range(frame)
        if whole:
            cuts = int(ends[1]) if ends in ((0.0, 16.0), (0.0, 255.0)) else MOST_CUTS
        code, (least, most) = BitColumns._fit(frame, ends, cuts, whole)
        fits = (
            ends
            for ends in WHOLE_PIXELS
            if ((ends[0] <= least) & (least < most) & (most <= ends[1])).any()
        )
        return replace(code, narrowest=next(fits, None))

    @staticmethod
    def _fit(
        frame: Frame, ends: Ends, cuts: int, whole: bool = False
    ) -> tuple[BitColumns, np.ndarray]:
        """The columns, and the least and greatest value of every row."""
        checked_count("cuts", cuts, 1, MOST_CUTS)
        code = BitColumns(tuple(frame.columns), *ends, cuts=cuts, whole=whole)
        bits, extremes = code._read(frame)
        bits = bits.reshape(len(frame), code.inputs_per_column, -1)
        same = np.flatnonzero((bits == bits[:1]).all(axis=(0, 1)))
        return replace(code, constant=tuple(code.names[i] for i in same)), extremes

    @property
    def levels(self) -> np.ndarray:
        """The cuts, ascending, (cuts,) float64."""
        step = np.arange(1, self.cuts + 1)
        return (self.low * step[::-1] + self.high * step) / (self.cuts + 1)

    @property
    def inputs_per_column(self) -> int:
        """The number of net inputs per column."""
        return 1 if self.whole else self.cuts

    @property
    def bit_names(self) -> tuple[str, ...]:
        """One name per input: the column's; with several per column also the cut, `x7>63.75`."""
        if self.inputs_per_column == 1:
            return self.names
        return tuple(f"{name}>{level:g}" for level in self.levels for name in self.names)

    @property
    def spans(self) -> list[slice]:
        """The places of each column's bits."""
        count = len(self.names)
        end = count * self.inputs_per_column
        return [slice(column, end, count) for column in range(count)]

    def only(self, bits: Collection[int]) -> tuple[BitColumns, list[int]]:
        """The encoder of these bits alone, and the bits that it keeps."""
        count = len(self.names)
        columns = sorted({bit % count for bit in bits})
        names = tuple(self.names[i] for i in columns)
        constant = tuple(name for name in self.constant if name in set(names))
        left = [cut * count + i for cut in range(self.inputs_per_column) for i in columns]
        fewer = replace(
            self, names=names, constant=constant, trained=self.all_names, narrowest=None
        )
        return fewer if len(names) < len(self.all_names) else self, left

    @property
    def all_names(self) -> tuple[str, ...]:
        """The columns of training, in their order."""
        return self.trained or self.names

    @property
    def ordered(self) -> list[list[tuple[int, int]]]:
        """No pairs of bits: columns of bits have no direction."""
        return []

    @property
    def selectable(self) -> list[int]:
        """The bits that `only` can choose among; of several per column, the first."""
        return list(range(len(self.names)))

    def states(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The place of each column's bits, and the bits of each of its values."""
        for bits in self.spans:
            states = np.tri(self.cuts + 1, self.cuts, -1, dtype=np.int64)
            yield bits, states.sum(1, keepdims=True) if self.whole else states

    def value_names(self) -> Iterator[list[str]]:
        """The names of each column's states."""
        for _ in self.names:
            yield ["0", "1"] if self.cuts == 1 else bin_names(self.levels.tolist())

    @property
    def account(self) -> tuple[ColumnAccount, ...]:
        """One summary for all columns."""
        names = " to ".join(dict.fromkeys((self.names[0], self.names[-1])))
        step, ends = self.levels[0] - self.low, f"from {self.low:g} to {self.high:g}"
        of_column = f"whole numbers to {self.cuts}" if self.whole else f"{self.cuts} per column"
        notes = [f"{of_column}, every {step:g} {ends}"] * (self.cuts > 1)
        notes += [f"the same in every row: {listed(self.constant, 3)}"] * bool(self.constant)
        return (ColumnAccount(names, "bits", len(self.bit_names), 0, "; ".join(notes)),)

    def transform(self, table: Any) -> np.ndarray:
        """The bits of a table's rows, (rows, bits) int8 of 0 and 1; whole numbers are uint8.

        Columns are found by name, further ones are ignored; an array's by place. Images on another
        scale than those of training are refused.
        """
        frame = as_frame(table)
        bits, (least, most) = self._read(frame)
        shaded = least < most  # an image of one gray fits any scale
        if self.narrowest is not None and shaded.any():
            low, high = float(least[shaded].min()), float(most[shaded].max())
            earlier = WHOLE_PIXELS[: WHOLE_PIXELS.index(self.narrowest)]
            if any(ends[0] <= low and high <= ends[1] for ends in earlier):
                raise DataError(
                    f"expected pixels from {self.low:g} to {self.high:g} as in training, found all "
                    f"of them from {low:g} to {high:g}; bring the images to the scale of training"
                )
        return bits

    def _read(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """The bits, and the least and greatest value of every row, (2, rows)."""
        where = places(frame, self.all_names, list(self.names))
        levels = self.levels
        kind = np.uint8 if self.whole else np.int8
        bits = np.empty((len(frame), self.inputs_per_column, len(self.names)), kind)
        extremes = np.full((2, len(frame)), [[np.inf], [-np.inf]])
        for i, name in enumerate(self.names):
            values = _numbers(frame[where[name]], name)
            strange = ~((values >= self.low) & (values <= self.high))  # NaN compares false
            if strange.any():
                row = int(np.argmax(strange))
                raise DataError(
                    f"column {name!r}, {frame.place(row)}: expected a number from {self.low:g} to "
                    f"{self.high:g} as in training, found {values[row]:g}; correct it"
                )
            if self.whole:
                bits[:, 0, i] = np.searchsorted(levels, values)
            else:
                bits[:, :, i] = values[:, None] > levels
            np.minimum(extremes[0], values, out=extremes[0])
            np.maximum(extremes[1], values, out=extremes[1])
        return bits.reshape(len(frame), -1), extremes

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, fit for JSON."""
        return asdict(self) | {"narrowest": self.narrowest or ()}

    @staticmethod
    def from_dict(state: object) -> BitColumns:
        """The reverse of `to_dict`; anything else is refused."""
        read = StateReader(state, "bit columns")
        names = read.texts("names")
        constant, trained = read.texts("constant", ()), read.texts("trained", ())
        cuts = read.whole("cuts", 1, MOST_CUTS, 1)
        low, high = read.number("low"), read.number("high")
        scale, whole = read.numbers("narrowest", ()), read.flag("whole", False)
        narrowest = next((ends for ends in WHOLE_PIXELS if ends == scale), None)
        code = BitColumns(names, low, high, constant, cuts, trained, narrowest, whole)
        read.done()
        read.require(bool(narrowest) == bool(scale), "has pixels of no usual range")
        read.require(len(set(names)) == len(names) > 0, "repeats a name or has none")
        read.require(len(set(trained)) == len(trained), "repeats a column of training")
        order = [name for name in code.all_names if name in set(names)]
        read.require(order == list(names), "reads other columns than those of training")
        read.require(set(constant) <= set(names), "has constant columns that are none of its own")
        read.require(code.low < code.high, "has an empty range")
        return code


def bit_range(table: Any) -> tuple[float, float] | None:
    """(0, 1) or (−1, 1) where every value of a table is one of the two, else None."""
    possible = [BITS, SIGNS]
    frame = as_frame(table)
    for name in frame.columns if len(frame) else ():
        values = frame[name]
        if values.dtype.kind not in "biufO":
            return None
        if values.dtype.kind == "O":  # such as booleans with missing values
            if not all(isinstance(value, bool | np.bool_) for value in values.tolist()):
                return None
            values = values.astype(bool)
        possible = [ends for ends in possible if np.isin(values, ends).all()]
        if not possible:
            return None
    return possible[0] if len(frame) and frame.columns else None


def pixel_range(table: Any) -> tuple[float, float]:
    """The scale of the pixels of a table of images, by their range of values."""
    frame: Frame = as_frame(table)
    if not len(frame):
        raise DataError("expected images to learn from, got none; add some")
    columns = [_numbers(frame[name], name) for name in frame.columns]
    low = min(float(values.min()) for values in columns)
    high = max(float(values.max()) for values in columns)
    whole = all(bool((values == np.round(values)).all()) for values in columns)
    for ends in WHOLE_PIXELS if low >= 0 or high > 0 else ():  # no scale ends at 0
        if ends[0] <= low and high <= ends[1]:
            # fractions are shares of full intensity, or means of bytes; others are ambiguous
            if whole or ends in (BITS, SIGNS) or (ends[1] == 255 and high > 16):
                return ends
            break
    raise DataError(
        f"expected pixels of 0…1, −1…1, 0…16, 0…255 or 0…65535, found {low:g}…{high:g}; "
        "rescale the images, and give bytes as uint8, not as int8"
    )


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64) if values.dtype.kind == "b" else values
    cells = read_cells(values, name)
    if cells.is_word.any():
        word = str(cells.levels[cells.is_word][0])
        raise DataError(
            f"column {name!r}: expected numbers as in training, found {word!r}; correct it"
        )
    return cells.numbers[cells.codes]
