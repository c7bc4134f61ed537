"""Words that are LANES words wide: a type of kernels that LLVM keeps in one vector register.

A loop over words is made vector code only where the compiler can prove that nothing overlaps; a
tree of adders over many arrays is beyond it. A wide word is one value, so there is nothing to
prove: `load`, `store`, and the bitwise operators.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 4  # 64-bit words: 256 rows, a register of AVX2; narrower machines take several
_VECTOR = ir.VectorType(ir.IntType(64), LANES)


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
        cases = [signature(_WIDE, *given)]  # noqa: RUF012 (numba asks for a list)

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
):
    _operator(_operation, _instruction, _operands)


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


def _load(_context: Any, words: Any, _at: Any) -> Any:
    """The wide word that begins at words[at], words being one run of memory."""

    def build(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, call.args[0], *arguments), align=8)

    return _WIDE(words, types.intp), build


def _store(_context: Any, words: Any, _at: Any, _value: Any) -> Any:
    """Put a wide word at words[at]."""

    def build(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        place = _place(context, builder, call.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=8)
        return context.get_dummy_value()

    return types.void(words, types.intp, _WIDE), build


def _none(_context: Any) -> Any:
    """A wide word of zeros."""

    def build(_target: Any, _builder: Any, _call: Any, _arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0] * LANES)

    return _WIDE(), build


load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
none: Any = intrinsic(_none)
