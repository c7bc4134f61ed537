"""Counts of many rows as bit planes, eight words at a time.

A count per row is held in two's complement, one bit plane per binary digit: 512 rows are a block
of (digits, LANES) words. Adding one to some rows is a chain of carries through the planes. The
compiler does not find vector code for that by itself, so these functions are written as vectors of
LANES words; every processor has them, some as several registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from vitrail.kernels.cpu.words import WORD, Words, packed

LANES = 8  # words per vector
BLOCK = LANES * WORD  # rows

_INT64 = ir.IntType(64)
_VECTOR = ir.VectorType(_INT64, LANES)
_ZERO = ir.Constant(_VECTOR, [0] * LANES)
_ONES = ir.Constant(_VECTOR, [-1] * LANES)


def planes(values: NDArray[np.int64], digits: int) -> Words:
    """Integers (n,), n a multiple of BLOCK, in two's complement: (n / BLOCK, digits, LANES)."""
    bits = ((values[None] >> np.arange(digits)[:, None]) & 1).astype(np.uint8)
    words = packed(bits).reshape(digits, -1, LANES)
    return np.ascontiguousarray(words.transpose(1, 0, 2))


class _Code:
    """Vector instructions on the arrays of a function that is being compiled."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.build, self._context = builder, context
        self.arrays = [
            context.make_array(kind)(context, builder, value) if hasattr(kind, "ndim") else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]

    def index(self, number: int) -> Any:
        return ir.Constant(_INT64, number)

    def row(self, array: Any, *indices: Any) -> Any:
        """Pointer to the first word of array[indices], whose other axes are contiguous."""
        strides = cgutils.unpack_tuple(self.build, array.strides)
        at = self.index(0)
        for index, stride in zip(indices, strides, strict=False):
            at = self.build.add(at, self.build.mul(index, stride))
        base = self.build.bitcast(array.data, ir.IntType(8).as_pointer())
        return self.build.bitcast(self.build.gep(base, [at]), _VECTOR.as_pointer())

    def length(self, array: Any, axis: int) -> Any:
        return cgutils.unpack_tuple(self.build, array.shape)[axis]

    def load(self, row: Any, block: Any) -> Any:
        value = self.build.load(self.build.gep(row, [block]))
        value.align = 8
        return value

    def store(self, value: Any, row: Any, block: Any) -> None:
        self.build.store(value, self.build.gep(row, [block])).align = 8

    def fill(self, word: Any) -> Any:
        """A vector of one word, repeated."""
        start = ir.Constant(_VECTOR, ir.Undefined)
        one = self.build.insert_element(start, word, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.build.shuffle_vector(one, start, lanes)

    def reduce(self, vector: Any, how: str) -> Any:
        """All lanes of a vector as one number: their sum ("add") or disjunction ("or")."""
        name = f"llvm.vector.reduce.{how}.v{LANES}i64"
        kind = ir.FunctionType(_INT64, [_VECTOR])
        function = cgutils.get_or_insert_function(self.build.module, kind, name)
        return self.build.call(function, [vector])

    def nonzero(self, vector: Any) -> Any:
        return self.build.icmp_signed("!=", self.reduce(vector, "or"), self.index(0))

    def popcount(self, vector: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.ctpop.v{LANES}i64"
        function = cgutils.get_or_insert_function(self.build.module, kind, name)
        return self.build.call(function, [vector])

    def add(self, block: Any, digits: Any, rows: Any, borrow: Any) -> tuple[Any, Any]:
        """Add one to the counts of some rows (borrow 0) or subtract it (all ones).

        Returns the rows whose counts are now 0, and those whose counts are −1.
        """
        build = self.build
        carry, some, every = (cgutils.alloca_once(build, _VECTOR) for _ in range(3))
        for place, value in ((carry, rows), (some, _ZERO), (every, _ONES)):
            build.store(value, place)
        with cgutils.for_range(build, digits) as loop:
            old, moving = self.load(block, loop.index), build.load(carry)
            new = build.xor(old, moving)
            self.store(new, block, loop.index)
            build.store(build.and_(moving, build.xor(old, borrow)), carry)
            build.store(build.or_(build.load(some), new), some)
            build.store(build.and_(build.load(every), new), every)
        return build.xor(build.load(some), _ONES), build.load(every)


def _change_counts(
    _context: Any, columns: Any, i: Any, but: Any, borrow: Any, edge: Any, hidden: Any, edges: Any,
    unit: Any, output_borrow: Any, output: Any, sides: Any,
) -> Any:  # fmt: skip
    """Add one to a unit's counts in the rows of column i that are not of column `but`.

    Where borrow is all ones, subtract it. Rows of `edges[edge, unit]` are those in which the unit
    switches: there the counts of the output change likewise, by `output_borrow`.
    """
    signature = types.void(
        columns, types.int64, types.int64, types.uint64, types.int64, hidden, edges, types.int64,
        types.uint64, output, sides,
    )  # fmt: skip

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        columns, i, but, borrow, edge, hidden, edges, unit, output_borrow, output, sides = (
            code.arrays
        )
        mine, others = code.row(columns, i), code.row(columns, but)
        at_zero, below = (code.row(edges, code.index(side), unit) for side in (0, 1))
        switching = code.row(edges, edge, unit)
        up, down = (code.row(sides, code.index(side)) for side in (0, 1))
        digits, output_digits = code.length(hidden, 2), code.length(output, 1)
        borrow, output_borrow = code.fill(borrow), code.fill(output_borrow)
        with cgutils.for_range(builder, code.length(output, 0)) as loop:
            block = loop.index
            absent = builder.xor(code.load(others, block), _ONES)
            rows = builder.and_(code.load(mine, block), absent)
            with builder.if_then(code.nonzero(rows)):
                moved = builder.and_(rows, code.load(switching, block))
                counts = code.row(hidden, unit, block)
                zero, minus = code.add(counts, digits, rows, borrow)
                code.store(zero, at_zero, block)
                code.store(minus, below, block)
                with builder.if_then(code.nonzero(moved)):
                    counts = code.row(output, block)
                    zero, minus = code.add(counts, output_digits, moved, output_borrow)
                    code.store(zero, up, block)
                    code.store(minus, down, block)
        return context.get_dummy_value()

    return signature, build


def _energy_delta(
    _context: Any, columns: Any, i: Any, but: Any, edges: Any, edge: Any, unit: Any, sides: Any,
    side: Any, right: Any,
) -> Any:  # fmt: skip
    """The change in energy when the output falls in the rows where the unit and it are at an edge.

    right (2, B, W): of rows with label 0 and 1, the binary digits of their weights.
    """
    signature = types.int64(
        columns, types.int64, types.int64, edges, types.int64, types.int64, sides, types.int64,
        right,
    )  # fmt: skip

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        columns, i, but, edges, edge, unit, sides, side, right = code.arrays
        mine, others = code.row(columns, i), code.row(columns, but)
        switching, pivotal = code.row(edges, edge, unit), code.row(sides, side)
        blocks = builder.udiv(code.length(columns, 1), code.index(LANES))
        total = cgutils.alloca_once(builder, _INT64)
        part = cgutils.alloca_once(builder, _VECTOR)
        builder.store(code.index(0), total)
        with cgutils.for_range(builder, code.length(right, 1)) as digit:
            zeros, ones = (code.row(right, code.index(label), digit.index) for label in (0, 1))
            builder.store(_ZERO, part)
            with cgutils.for_range(builder, blocks) as loop:
                block = loop.index
                absent = builder.xor(code.load(others, block), _ONES)
                moved = builder.and_(code.load(mine, block), absent)
                moved = builder.and_(moved, code.load(switching, block))
                moved = builder.and_(moved, code.load(pivotal, block))
                cost = code.popcount(builder.and_(moved, code.load(ones, block)))
                gain = code.popcount(builder.and_(moved, code.load(zeros, block)))
                change = builder.sub(cost, gain)
                builder.store(builder.add(builder.load(part), change), part)
            change = builder.shl(code.reduce(builder.load(part), "add"), digit.index)
            builder.store(builder.add(builder.load(total), change), total)
        return builder.load(total)

    return signature, build


def _add_to_counts(
    _context: Any, counts: Any, rows: Any, borrow: Any, at_zero: Any, below: Any
) -> Any:
    """Add one to the counts (blocks, digits, LANES) of some rows, or subtract it: borrow all ones.

    at_zero and below become the rows whose counts are 0 and −1.
    """
    signature = types.void(counts, rows, types.uint64, at_zero, below)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = _Code(context, builder, signature, arguments)
        counts, rows, borrow, at_zero, below = code.arrays
        borrow = code.fill(borrow)
        with cgutils.for_range(builder, code.length(counts, 0)) as loop:
            block = code.row(counts, loop.index)
            some = code.load(code.row(rows), loop.index)
            zero, minus = code.add(block, code.length(counts, 1), some, borrow)
            code.store(zero, code.row(at_zero), loop.index)
            code.store(minus, code.row(below), loop.index)
        return context.get_dummy_value()

    return signature, build


add_to_counts: Any = intrinsic(_add_to_counts)
change_counts: Any = intrinsic(_change_counts)
energy_delta: Any = intrinsic(_energy_delta)
