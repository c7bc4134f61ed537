"""Models as ONNX graphs of standard operators, encoder included, in whole numbers to the end.

Inputs: one for each column, (rows, 1): float32 for real numbers, float64 for whole ones (NaN where
missing), text for words; a column of numbers that may hold words has a second input of text, empty
where a number stands. Columns of bits or pixels are one input `x`, (rows, columns) float32.

Outputs: `label`, `number` (rows,), `proba_parts` (rows, C), probabilities in parts of 65535,
`probabilities` (rows, C).

An input is called as its column; the second one of a column `age` is `age word`. All other names of
the graph begin with a point. A column whose name begins with a point, or is that of an output, has
the input `.number:label` or `.word:label`, and so has an input whose name another column has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vitrail.export.arrays import layer_weights, places
from vitrail.export.plan import ExportError, ExportPlan, Layer, plan_export
from vitrail.export.rule import rule_of, sides
from vitrail.extras import needs
from vitrail.model import Model
from vitrail.model.voting import CERTAIN, COSTS, LEAST, LEVELS, ONE
from vitrail.nn.coding import low_value
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import MISSING_WORDS
from vitrail.tables.columns import rounded
from vitrail.tables.encoders import ColumnCode, TableEncoder
from vitrail.tables.spelling import BLANKS

if TYPE_CHECKING:
    import onnx

OUTPUTS = ("label", "number", "proba_parts", "probabilities")
OWN = "."  # begins every name that is neither a column's nor an output's
OPSET = 20  # the first with RegexFullMatch
IR = 9
EXACT = 2**24  # sums of float32 are exact below
FAR = 2**40  # beyond all sums
Kind = Literal["number", "word"]  # what an input holds


def onnx_graph(model: Model) -> onnx.ModelProto:
    """The graph of a model."""
    with needs("export", "an ONNX file"):
        import onnx
    graph = _Graph()
    plan = plan_export(model)
    if max(layer.fan_in for layer in plan.layers) >= EXACT:
        raise ExportError("a layer of this net adds up more than 2**24 values; make it narrower")
    bits = _encoder(graph, model)
    number, parts = _answer(graph, model, plan, _outputs(graph, model, plan, bits))
    classes = np.array(model.labels.classes, model.labels.kind)
    classes = classes.astype(object) if classes.dtype.kind in "OU" else classes
    label = graph("Gather", graph.constant(classes), number)
    one = graph.constant(np.float32(ONE))
    probabilities = graph("Div", graph.cast(parts, np.float32), one)
    graph.output("label", label, classes.dtype)
    graph.output("number", number, np.int64)
    graph.output("proba_parts", parts, np.int64, model.num_classes)
    graph.output("probabilities", probabilities, np.float32, model.num_classes)
    made = onnx.helper.make_model(
        graph.proto(),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="vitrail",
    )
    onnx.helper.set_model_props(made, {"record": json.dumps(model.record, sort_keys=True)})
    onnx.checker.check_model(made, full_check=True)
    return made


def onnx_file(model: Model) -> bytes:
    """The contents of the file."""
    return onnx_graph(model).SerializeToString(deterministic=True)


class _Graph:
    """A graph under construction: calling it adds an operator and names its result."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._make, self._tensor = helper, numpy_helper.from_array
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{OWN}v{len(self._nodes)}"
        self._nodes.append(self._make.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, kind: Any = None) -> str:
        name = f"{OWN}c{len(self._constants)}"
        self._constants.append(self._tensor(np.asarray(value, kind), name))
        return name

    def int64(self, value: Any) -> str:
        return self.constant(value, np.int64)

    def input(self, name: str, kind: int, columns: int) -> str:
        self._inputs.append(self._make.make_tensor_value_info(name, kind, ["rows", columns]))
        return name

    def output(self, name: str, value: str, kind: Any, *columns: int) -> None:
        number = self._make.np_dtype_to_tensor_dtype(np.dtype(kind))
        self._nodes.append(self._make.make_node("Identity", [value], [name]))
        shape = ["rows", *columns]
        self._outputs.append(self._make.make_tensor_value_info(name, number, shape))

    def cast(self, value: str, kind: Any) -> str:
        return self("Cast", value, to=self._make.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def reshaped(self, value: str, *shape: int) -> str:
        return self("Reshape", value, self.int64(shape))

    def proto(self) -> Any:
        parts = self._inputs, self._outputs, self._constants
        return self._make.make_graph(self._nodes, "vitrail", *parts)


def _encoder(g: _Graph, model: Model) -> str:
    """The encoder's bits, (rows, bits) bool."""
    from onnx import TensorProto

    encoder = model.encoder
    if isinstance(encoder, BitColumns):
        x = g.input("x", TensorProto.FLOAT, len(encoder.names))
        x = g("Unsqueeze", x, g.int64([1]))
        cuts = g.constant(_up_to(encoder.levels)[:, None])
        above = g("Greater", x, cuts)  # (rows, cuts, columns)
        return g.reshaped(above, 0, len(encoder.bit_names))
    parts: list[str] = []
    names = input_names(encoder)
    for code in encoder.columns:
        word = number = None
        if code.numeric:
            kind = TensorProto.FLOAT if code.held_as == "float32" else TensorProto.DOUBLE
            number = g.input(names[code.name, "number"], kind, 1)
        if (code.name, "word") in names:
            word = g.input(names[code.name, "word"], TensorProto.STRING, 1)
        parts += _column(g, code, number, word)
    return g("Concat", *parts, axis=1)


def input_names(encoder: TableEncoder) -> dict[tuple[str, Kind], str]:
    """What the inputs of a graph are called, by column and whether numbers or words go there."""
    names: dict[tuple[str, Kind], str] = {}
    taken: set[str] = set(OUTPUTS)

    def add(column: str, kind: Kind, name: str) -> None:
        is_free = name not in taken and not name.startswith(OWN)
        names[column, kind] = name if is_free else f"{OWN}{kind}:{column}"
        taken.add(name)

    for code in encoder.columns:
        add(code.name, "number" if code.numeric else "word", code.name)
    for code in encoder.columns:
        if code.numeric and (code.categories or code.other):
            add(code.name, "word", f"{code.name} word")
    return names


def _up_to(levels: np.ndarray) -> np.ndarray:
    """The largest float32 up to each level: the same float32 lie above it."""
    near = levels.astype(np.float32)
    return np.where(near > levels, np.nextafter(near, np.float32(-np.inf)), near)


def _column(g: _Graph, code: ColumnCode, number: str | None, word: str | None) -> list[str]:
    """The bits of a column in their order, (rows, some) bool each."""
    parts: list[str] = []
    missing = None
    if number is not None:
        missing = g("IsNaN", number)
    if word is not None:
        nothing = g("RegexFullMatch", word, pattern=_any_of(MISSING_WORDS, "(?i)"))
        is_word = g("Not", nothing)
        if number is None and not code.missing:
            is_word = g("Or", is_word, nothing)  # no value is one more word never seen
        parts += [g("RegexFullMatch", word, pattern=_any_of([w])) for w in code.categories]
        known = parts[0] if parts else g("And", nothing, g("Not", nothing))
        for one in parts[1:]:
            known = g("Or", known, one)
        if code.other:
            parts.append(g("And", is_word, g("Not", known)))
        if missing is None:
            missing = nothing
        else:  # of numbers, any word that means nothing is missing too
            missing = g("And", missing, nothing if code.other else g("Not", known))
    if number is not None and missing is not None:
        parts += _bins(g, code, number, missing)
    if code.missing and missing is not None:
        parts.append(missing)
    return parts


def _bins(g: _Graph, code: ColumnCode, number: str, missing: str) -> list[str]:
    kind = np.float32 if code.held_as == "float32" else np.float64
    cuts = rounded(code.thresholds, code.held_as).astype(kind)
    if not code.missing:
        typical = rounded(code.typical, code.held_as).astype(kind)
        number = g("Where", missing, g.constant(typical), number)
    above = g("Greater", number, g.constant(cuts[None]))  # NaN is above nothing
    parts = []
    known = g("Not", g("IsNaN", number)) if code.values or code.both else ""
    if code.values:
        nothing = g("And", known, g("Not", known))
        low, high = g("Concat", known, above, axis=1), g("Concat", above, nothing, axis=1)
        parts.append(g("And", low, g("Not", high)))
    if len(code.values) == 2 or not len(cuts):
        return parts
    return [*parts, above, *([g("And", known, g("Not", above))] if code.both else [])]


def _any_of(words: Any, flags: str = "") -> str:
    """A pattern for any of the words with blanks around it."""
    quoted = ("".join(map(_quoted, word)) for word in sorted(words))
    return rf"{flags}[{BLANKS}]*({'|'.join(quoted)})[{BLANKS}]*"


def _quoted(letter: str) -> str:
    return letter if letter.isalnum() or letter == " " else f"\\x{{{ord(letter):x}}}"


def _outputs(g: _Graph, model: Model, plan: ExportPlan, bits: str) -> str:
    """Outputs of all networks, (networks, rows, outputs) int64; nets outermost."""
    low = low_value(model.coding)
    one, less = g.constant(1, np.float32), g.constant(low, np.float32)
    x = g("Where", bits, one, less)
    if model.bias:
        pads = g.int64([0, 0, 0, model.bias])
        x = g("Pad", x, pads, one)
    x = g("Unsqueeze", x, g.int64([0]))
    for stage, after in zip(plan.stages, plan.lows, strict=True):
        index = places(stage)
        if stage.windows is not None:
            pads = g.int64([0, 0, 0, 0, 0, 1])
            x = g("Pad", x, pads, g.constant(0, np.float32))
            size = stage.windows.channels * stage.windows.size[0] * stage.windows.size[1]
            index = np.where(index < 0, size, index)
            x = g("Gather", x, g.constant(index), axis=2)  # (networks, rows, windows, values)
        if not isinstance(stage, Layer):
            axes = g.int64([3])
            x = g("ReduceMax", x, axes, keepdims=0)
            continue
        weights = layer_weights(model, stage).astype(np.float32)
        weights = weights.reshape(-1, stage.units, stage.fan_in).transpose(0, 2, 1)
        if stage.windows is not None:
            x = g("MatMul", x, g.constant(weights[:, None]))
            x = g("Transpose", x, perm=[0, 1, 3, 2])
            x = g.reshaped(x, 0, 0, -1)
        else:
            x = g("MatMul", x, g.constant(weights))
        if after is not None:
            positive = g("Greater", x, g.constant(0, np.float32))
            x = g("Where", positive, one, g.constant(after, np.float32))
    return g.cast(x, np.int64)


def _answer(g: _Graph, model: Model, plan: ExportPlan, h: str) -> tuple[str, str]:
    """Class numbers (rows,), probabilities (rows, C) in parts of 65535, by `model.voting`."""
    rule = rule_of(model, plan)
    nets, networks = rule.votes.shape
    classes, outputs = model.num_classes, plan.num_outputs

    if outputs > 1:  # how far each class is ahead of its strongest rival
        c = np.arange(outputs)
        own = (c[:, None] < c) + np.where(c[:, None] == c, FAR, 0)
        mine, other = g("Unsqueeze", h, g.int64([3])), g("Unsqueeze", h, g.int64([2]))
        ahead = g("Add", g("Sub", mine, other), g.int64(own))
        h = g("ReduceMin", ahead, g.int64([3]), keepdims=0)
    margin = g("Sub", g("Mul", h, g.int64(2)), g.int64(1))
    margin = g("Min", g("Max", margin, g.int64(-model.clip)), g.int64(model.clip))
    counted = g("Mul", margin, g.int64(rule.votes.reshape(-1, 1, 1)))
    counted = g.reshaped(counted, nets, networks, -1, outputs)
    score = g("ReduceSum", counted, g.int64([1]), keepdims=0)  # (nets, rows, outputs)
    most = np.array(rule.most, np.int64).reshape(-1, 1, 1)
    level = g("Mul", g("Add", score, g.int64(most)), g.int64(LEVELS))
    level = g("Div", level, g.int64(2 * most))
    starts = np.arange(nets).reshape(-1, 1, 1) * (LEVELS + 1)
    q = g("Gather", g.int64(rule.tables.ravel()), g("Add", level, g.int64(starts)))
    if outputs > 1:
        rank = g.reshaped(q, -1, outputs)
    else:
        q = g("Transpose", g.reshaped(q, nets, -1), perm=[1, 0])  # (rows, nets)
        both = g("Concat", g("Sub", g.int64(ONE), q), q, axis=1)
        pairs = model.scheme == "pairs" and classes > 2
        if pairs:
            both = g("Div", g.int64(COSTS), g("Max", both, g.int64(LEAST)))
        adds = np.zeros((2 * nets, classes), np.int64)
        for net, (low, high) in enumerate(sides(model)):
            adds[nets + net, high] = 1
            if low is not None:
                adds[net, low] = 1
        rank = g("MatMul", both, g.int64(adds))
        if pairs:
            rank = g("Div", g.int64(COSTS), g("Sub", rank, g.int64(CERTAIN * (classes - 2))))
    number = g("ArgMax", rank, axis=1, keepdims=0)
    total = g("Max", g("ReduceSum", rank, g.int64([1])), g.int64(1))
    parts = g("Div", g("Mul", rank, g.int64(ONE)), total)
    left = g("Sub", g.int64(ONE), g("ReduceSum", parts, g.int64([1])))
    mine = g("Equal", g("Unsqueeze", number, g.int64([1])), g.int64([list(range(classes))]))
    parts = g("Add", parts, g("Mul", g.cast(mine, np.int64), left))
    return number, parts
