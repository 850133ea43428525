"""Find named values: the constants in a model at which the behaviour of the model changes.

Examples are a number with which the model compares an input, a key of a table, a limit of a Clip, and 0.5 for a Round:

    c = Equal(ids, 50256)                    ->   50256 for ids, and 50257, 50255
    s = Mul(x, 2)   c = Greater(s, 10)       ->   5 for x, and a little more and less
    Scan(..., x) with Less(e, 7.25) inside   ->   7.25 for x, ...

Random inputs would almost never equal these constants, so some cases feed them. The search follows an input through linear
operators and operators that keep its values, and into bodies and functions.
"""

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

import onnx

from ortscan.running.specs import SessionSpec
from ortscan.verification.inputs.make_value import FLOATS
from ortscan.verification.inputs.turning_points import COMPARISONS, Known, Trace, named_at, patterns_of, text, traces_of

__all__ = ["MOST_VALUES", "NamedValues", "named_values"]

MOST_VALUES = 300
_MOST_NODES = 100_000
_MOST_ELEMENTS = 64
_MOST_TRACES = 4
_DEEPEST = 100
_NEAR = 2.0**-10
"""The relative distance between a number and its neighbours, larger than any rounding of the number as a threshold."""
_COARSER: Mapping[int, float] = {onnx.TensorProto.FLOAT16: 2.0**-7, onnx.TensorProto.BFLOAT16: 2.0**-4}
_FEW_DIGITS = 2.0**12
_LATTICE = frozenset(half / 2 for half in range(-8, 9))
"""Numbers that are often fed anyway (see ``make_value``)."""
_MEASURING = frozenset(["Shape", "Size", "SequenceLength", "OptionalHasElement"])
_RESHAPING = frozenset(["Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand"])


@dataclass(frozen=True)
class NamedValues:
    """The constants that models compare their inputs with, such as thresholds.

    Attributes:
        exact: the constants for each input, by its name.
        neighbours: the values just below and above these constants, for each input.
        unassigned: constants with which the model compares computed values. It is unknown for which inputs such a value equals the
            constant.
        patterns: the regular expressions that the model matches strings with.
    """

    exact: Mapping[str, Sequence[Known]] = field(default_factory=dict)
    neighbours: Mapping[str, Sequence[Known]] = field(default_factory=dict)
    unassigned: Sequence[Known] = ()
    patterns: Sequence[str] = ()

    def values(self, name: str) -> list[Known]:
        """Return the values to feed to an input: the constants, then the values just below and above them."""
        return list(dict.fromkeys((*self.exact.get(name, ()), *self.neighbours.get(name, ()))))[:MOST_VALUES]


_Constant = onnx.TensorProto | tuple[Known, ...]


@dataclass(frozen=True)
class _Value:
    """The known facts about a value of the model.

    Attributes:
        constant: the elements of the value, if it is a constant.
        traces: how the value is computed from inputs, as far as this is linear.
        depends_on_input: True if the value depends on an input.
    """

    constant: _Constant = ()
    traces: tuple[Trace, ...] = ()
    depends_on_input: bool = False

    @property
    def elements(self) -> tuple[Known, ...]:
        """The elements of the value, if the value is a small constant.

        Empty if the value is no constant, is large, or is stored as external data.
        """
        tensor = self.constant
        if not isinstance(tensor, onnx.TensorProto):
            return tensor
        if math.prod(tensor.dims) > _MOST_ELEMENTS or tensor.data_location == onnx.TensorProto.EXTERNAL:
            return ()
        values = onnx.numpy_helper.to_array(tensor).ravel().tolist()
        return tuple(text(value) if isinstance(value, bytes) else value for value in values)


_Scope = MutableMapping[str, _Value]
_NOTHING = _Value()


def named_values(models: Iterable[onnx.ModelProto], specs: Sequence[SessionSpec]) -> NamedValues:
    """Return the constants that ``models``, which all have the inputs ``specs``, compare inputs with."""
    reader = _NameReader({spec.name: spec.elem_type for spec in specs})
    for model in models:
        reader.read(model)
    exact, neighbours = ({name: list(values) for name, values in kept.items()} for kept in (reader.exact, reader.neighbours))
    return NamedValues(exact, neighbours, list(reader.unassigned), list(reader.patterns))


class _NameReader:
    def __init__(self, kinds: Mapping[str, int]):
        self.kinds = kinds
        self.exact: dict[str, dict[Known, None]] = {}
        self.neighbours: dict[str, dict[Known, None]] = {}
        self.unassigned: dict[Known, None] = {}
        self.patterns: dict[str, None] = {}

    def read(self, model: onnx.ModelProto) -> None:
        self._functions = {(function.domain, function.name): function for function in model.functions}
        self._left, self._depth = _MOST_NODES, 0
        self._read_graph(model.graph, {name: _Value(traces=(Trace(name),), depends_on_input=True) for name in self.kinds})

    def _read_graph(self, graph: onnx.GraphProto, scope: _Scope) -> list[_Value]:
        for tensor in graph.initializer:
            scope.setdefault(tensor.name, _Value(constant=tensor))
        self._read_nodes(graph.node, scope)
        return [scope.get(value.name, _NOTHING) for value in graph.output]

    def _read_nodes(self, nodes: Iterable[onnx.NodeProto], scope: _Scope) -> None:
        self._depth += 1
        for node in nodes if self._depth <= _DEEPEST else ():
            self._left -= 1
            if self._left < 0:
                break
            operands = [scope.get(name, _NOTHING) if name else _NOTHING for name in node.input]
            self._note(node, operands)
            scope.update(zip(node.output, self._results(node, operands, scope), strict=False))
        self._depth -= 1

    def _results(self, node: onnx.NodeProto, operands: Sequence[_Value], scope: _Scope) -> Sequence[_Value]:
        called = self._functions.get((node.domain, node.op_type))
        if called is not None:
            inner: _Scope = dict(zip(called.input, operands, strict=False))
            self._read_nodes(called.node, inner)
            return [inner.get(name, _NOTHING) for name in called.output]
        bodies = list({each.name: each.g for each in node.attribute if each.HasField("g")}.values())
        if bodies:
            return self._read_bodies(node, bodies, operands, scope)
        depends_on_input = node.op_type not in _MEASURING and any(operand.depends_on_input for operand in operands)
        traces = traces_of(node, [operand.traces for operand in operands], lambda at: operands[at].elements)
        value = _Value(_constant(node, operands), tuple(dict.fromkeys(traces))[:_MOST_TRACES], depends_on_input)
        return [value] * len(node.output)

    def _read_bodies(
        self, node: onnx.NodeProto, bodies: Sequence[onnx.GraphProto], operands: Sequence[_Value], scope: _Scope
    ) -> Sequence[_Value]:
        """Read the bodies of a node, and return the facts about the outputs of the node.

        The inputs of a body get the facts about the operands of the node. For example, a state of a loop gets the facts about its
        initial value. An output of the node gets the traces of the corresponding outputs of all its bodies.
        """
        results: list[list[_Value]] = []
        for body in bodies:
            inner = ChainMap[str, _Value]({}, scope)
            passed = [_NOTHING, *operands[1:]] if node.op_type == "Loop" else operands[len(operands) - len(body.input) :]
            inner.update((formal.name, operand) for formal, operand in zip(body.input, passed if body.input else (), strict=False))
            results.append(self._read_graph(body, inner)[node.op_type == "Loop" :])
        return [
            _Value(
                traces=tuple(t for value in each for t in value.traces)[:_MOST_TRACES],
                depends_on_input=any(value.depends_on_input for value in each),
            )
            for each in zip(*results, strict=False)
        ]

    def _note(self, node: onnx.NodeProto, operands: Sequence[_Value]) -> None:
        """Record the constants that ``node`` compares its operands with.

        Each constant is recorded for all inputs of the model from which the operand is computed.
        """
        self.patterns.update(dict.fromkeys(patterns_of(node)))
        for position, operand in enumerate(operands):
            if not operand.depends_on_input:
                continue
            for known in named_at(node, position, lambda at: operands[at].elements if at < len(operands) else ()):
                for trace in operand.traces:
                    self._add(trace, known)
                if not operand.traces and node.op_type in COMPARISONS and known not in _LATTICE:
                    self.unassigned[known] = None

    def _add(self, trace: Trace, known: Known) -> None:
        kind, exact = self.kinds[trace.input], self.exact.setdefault(trace.input, {})
        neighbours = self.neighbours.setdefault(trace.input, {})
        if isinstance(known, str) or kind == onnx.TensorProto.STRING:
            if isinstance(known, str) and kind == onnx.TensorProto.STRING:
                exact[known] = None
            return
        if kind == onnx.TensorProto.BOOL or not math.isfinite(known) or not trace.scale:
            return
        number = (known - trace.shift) / trace.scale
        if not math.isfinite(number):
            return
        if kind in FLOATS:
            if trace == Trace(trace.input) or (_has_few_digits(number) and math.frexp(abs(trace.scale))[0] == 0.5):
                exact[number] = None
            step = _COARSER.get(kind, _NEAR) * (abs(number) or 1.0)
            neighbours.update(dict.fromkeys((number + step, number - step)))
        else:
            low = math.floor((known - trace.shift) // trace.scale)
            exact[low] = None
            neighbours.update(dict.fromkeys((low + 1, low - 1)))


def _constant(node: onnx.NodeProto, operands: Sequence[_Value]) -> _Constant:
    """Return the elements of the output of ``node`` if the output is constant, else ().

    The output is constant if ``node`` is a Constant, or if ``node`` only changes the shape or type of a constant.
    """
    if node.op_type == "Constant":
        for each in node.attribute:
            match each.name:
                case "value":
                    tensor: onnx.TensorProto = each.t
                    return tensor
                case "value_int" | "value_ints":
                    return (each.i,) if each.name == "value_int" else tuple(each.ints[:_MOST_ELEMENTS])
                case "value_float" | "value_floats":
                    return (each.f,) if each.name == "value_float" else tuple(each.floats[:_MOST_ELEMENTS])
                case "value_string" | "value_strings":
                    return tuple(map(text, [each.s] if each.name == "value_string" else each.strings[:_MOST_ELEMENTS]))
    if not operands or not operands[0].constant:
        return ()
    if node.op_type in _RESHAPING:
        return operands[0].constant
    if node.op_type in ("Cast", "CastLike"):
        whole = any(each.name == "to" and each.i not in FLOATS for each in node.attribute)
        elements = operands[0].elements
        return tuple(int(x) if whole and not isinstance(x, str) and math.isfinite(x) else x for x in elements)
    return ()


def _has_few_digits(number: float) -> bool:
    mantissa = math.frexp(number)[0] * _FEW_DIGITS
    return mantissa == int(mantissa)
