"""Wide words: LANES 64-bit words as one numba type, which LLVM stores in a vector register.

The compiler vectorises a loop over words only if it can prove that arrays do not overlap, which
fails for trees of adders over many arrays and for chains of carries. Wide words need no such proof.
They have bitwise operators, + and −, and the functions below.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 4  # 64-bit words: 256 rows, a register of AVX2; other machines use several
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)


class _Wide(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Wide")


_WIDE = _Wide()


@register_model(_Wide)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _operator(operation: Any, instruction: str, operands: int) -> None:
    given = (_WIDE,) * operands

    class Template(ConcreteTemplate):
        cases = [signature(_WIDE, *given)]  # noqa: RUF012 (numba needs a list)

    registered: Any = infer_global(operation)
    registered(Template)

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments)

    lower_builtin(operation, *given)(build)


for _operation, _instruction, _operands in (
    (operator.and_, "and_", 2),
    (operator.or_, "or_", 2),
    (operator.xor, "xor", 2),
    (operator.invert, "not_", 1),
    (operator.add, "add", 2),
    (operator.sub, "sub", 2),
    (operator.lshift, "shl", 2),
):
    _operator(_operation, _instruction, _operands)


def _place(context: Any, builder: Any, call: Any, array: Any, at: Any) -> Any:
    """Pointer to a wide word: the last index counts words, earlier ones are those of axes."""
    made = context.make_array(call.args[0])(context, builder, array)
    many = isinstance(call.args[1], types.BaseTuple)
    *axes, word = cgutils.unpack_tuple(builder, at) if many else [at]
    row = builder.bitcast(made.data, ir.IntType(8).as_pointer())
    for index, stride in zip(axes, cgutils.unpack_tuple(builder, made.strides), strict=False):
        row = builder.gep(row, [builder.mul(index, stride)])
    words = builder.gep(builder.bitcast(row, _WORD.as_pointer()), [word])
    return builder.bitcast(words, _VECTOR.as_pointer())


def _call(builder: Any, name: str, result: Any, wide: Any) -> Any:
    """A vector instruction of LLVM."""
    kind = ir.FunctionType(result, [_VECTOR])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}i64")
    return builder.call(function, [wide])


def _index(at: Any) -> Any:
    return types.UniTuple(types.intp, len(at)) if isinstance(at, types.BaseTuple) else types.intp


def _load(_context: Any, words: Any, at: Any) -> Any:
    """The wide word that begins at words[at], see `_place`."""

    def build(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, call, *arguments), align=8)

    return _WIDE(words, _index(at)), build


def _store(_context: Any, words: Any, at: Any, _value: Any) -> Any:
    """Store a wide word at words[at]."""

    def build(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        place = _place(context, builder, call, *arguments[:2])
        builder.store(arguments[2], place, align=8)
        return context.get_dummy_value()

    return types.void(words, _index(at), _WIDE), build


def _filled(_context: Any, _word: Any) -> Any:
    """A wide word that repeats one word."""

    def build(_target: Any, builder: Any, _call: Any, arguments: Any) -> Any:
        first, lane = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
        one = builder.insert_element(first, arguments[0], ir.Constant(lane, 0))
        lanes = ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
        return builder.shuffle_vector(one, first, lanes)

    return _WIDE(types.uint64), build


def _popcounts(_context: Any, _wide: Any) -> Any:
    """The number of bits set in each word."""

    def build(_target: Any, builder: Any, _call_: Any, arguments: Any) -> Any:
        return _call(builder, "ctpop", _VECTOR, arguments[0])

    return _WIDE(_WIDE), build


def _total(_context: Any, _wide: Any) -> Any:
    """The sum of all words, int64."""

    def build(_target: Any, builder: Any, _call_: Any, arguments: Any) -> Any:
        return _call(builder, "vector.reduce.add", _WORD, arguments[0])

    return types.int64(_WIDE), build


def _any_set(_context: Any, _wide: Any) -> Any:
    """Whether any bit is set."""

    def build(_target: Any, builder: Any, _call_: Any, arguments: Any) -> Any:
        found = _call(builder, "vector.reduce.or", _WORD, arguments[0])
        return builder.icmp_signed("!=", found, ir.Constant(_WORD, 0))

    return types.boolean(_WIDE), build


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
filled: Any = intrinsic(_filled)
popcounts: Any = intrinsic(_popcounts)
total: Any = intrinsic(_total)
any_set: Any = intrinsic(_any_set)
