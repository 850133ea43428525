"""The values that a model itself names for its inputs: what it compares them with, looks them up among, clips or rounds them at.

    c = Equal(ids, 50256)                    ->   50256 for ids, and 50257, 50255
    s = Mul(x, 2)   c = Greater(s, 10)       ->   5 for x, and a little more and less
    Scan(..., x) with Less(e, 7.25) inside   ->   7.25 for x, ...

Made-up values would hardly ever meet them. An input is followed through what keeps it or is linear, into bodies and functions.
"""

import math
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

import onnx

from ortscan.running.specs import Spec
from ortscan.verification.values.traces import Trace, traces_of
from ortscan.verification.values.turning_points import COMPARISONS, Known, named_at, patterns_of

__all__ = ["MOST_VALUES", "Named", "named_values"]

_MOST_NODES = 100_000
_MOST_ELEMENTS = 64
_MOST_TRACES = 4
_DEEPEST = 100
MOST_VALUES = 300
_NEAR = 2.0**-10
"""How far beside a number: a few roundings, so that a threshold that is computed in another way stays on its side."""
_FEW_DIGITS = 2.0**12
_LATTICE = frozenset(half / 2 for half in range(-8, 9))
"""What is fed anyway, and often: see ``make_value``."""

_MEASURING = frozenset(["Shape", "Size", "SequenceLength", "OptionalHasElement"])


@dataclass(frozen=True)
class Named:
    """By input the values themselves and those beside them; ``elsewhere``: numbers that what is computed is compared with;
    ``patterns``: of strings."""

    exact: Mapping[str, Sequence[Known]] = field(default_factory=dict)
    beside: Mapping[str, Sequence[Known]] = field(default_factory=dict)
    elsewhere: Sequence[Known] = ()
    patterns: Sequence[str] = ()

    def values(self, name: str) -> list[Known]:
        """Return what to feed of an input, the named ones first."""
        return list(dict.fromkeys((*self.exact.get(name, ()), *self.beside.get(name, ()))))[:MOST_VALUES]


@dataclass(frozen=True)
class _Value:
    """What is known of a value: its elements where it is constant, the inputs it is made of, whether it hangs on any."""

    constant: onnx.TensorProto | tuple[Known, ...] = ()
    traces: tuple[Trace, ...] = ()
    fed: bool = False

    @property
    def elements(self) -> tuple[Known, ...]:
        return _elements(self.constant) if isinstance(self.constant, onnx.TensorProto) else self.constant


_Scope = MutableMapping[str, _Value]
_NOTHING = _Value()


def named_values(models: Iterable[onnx.ModelProto], specs: Sequence[Spec]) -> Named:
    """Read all nodes of all ``models``, of which ``specs`` are the inputs."""
    reader = _Reader({spec.name: spec.elem_type for spec in specs})
    for model in models:
        reader.read(model)
    exact, beside = ({name: list(found) for name, found in kept.items()} for kept in (reader.exact, reader.beside))
    return Named(exact, beside, list(reader.elsewhere), list(reader.patterns))


class _Reader:
    def __init__(self, kinds: Mapping[str, int]):
        self.kinds = kinds
        self.exact: dict[str, dict[Known, None]] = {}
        self.beside: dict[str, dict[Known, None]] = {}
        self.elsewhere: dict[Known, None] = {}
        self.patterns: dict[str, None] = {}
        self._functions: dict[tuple[str, str], onnx.FunctionProto] = {}
        self._left = _MOST_NODES
        self._depth = 0

    def read(self, model: onnx.ModelProto) -> None:
        self._functions = {(function.domain, function.name): function for function in model.functions}
        self._left = _MOST_NODES
        scope: _Scope = {name: _Value(traces=(Trace(name),), fed=True) for name in self.kinds}
        self._read_graph(model.graph, scope)

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
            results = self._results(node, operands, scope)
            for name, result in zip(node.output, results, strict=False):
                scope[name] = result
        self._depth -= 1

    def _results(self, node: onnx.NodeProto, operands: Sequence[_Value], scope: _Scope) -> Sequence[_Value]:
        called = self._functions.get((node.domain, node.op_type))
        if called is not None:
            inner: _Scope = dict(zip(called.input, operands, strict=False))
            self._read_nodes(called.node, inner)
            return [inner.get(name, _NOTHING) for name in called.output]
        bodies = {each.name: each.g for each in node.attribute if each.HasField("g")}
        if bodies:
            return self._read_bodies(node, bodies, operands, scope)
        fed = node.op_type not in _MEASURING and any(operand.fed for operand in operands)
        constant = next(_constant(node), ()) if node.op_type == "Constant" else _carried_constant(node, operands)
        found = traces_of(node, [operand.traces for operand in operands], lambda at: operands[at].elements)
        traces = tuple(dict.fromkeys(found))[:_MOST_TRACES]
        return [_Value(constant, traces, fed)] * len(node.output)

    def _read_bodies(
        self, node: onnx.NodeProto, bodies: Mapping[str, onnx.GraphProto], operands: Sequence[_Value], scope: _Scope
    ) -> Sequence[_Value]:
        """Read each body with what it is given; a state is what it starts as. The node gives what any body gives."""
        given: list[list[_Value]] = []
        for body in bodies.values():
            inner = ChainMap[str, _Value]({}, scope)
            passed = [_NOTHING, *operands[1:]] if node.op_type == "Loop" else operands[len(operands) - len(body.input) :]
            inner.update((formal.name, operand) for formal, operand in zip(body.input, passed if body.input else (), strict=False))
            results = self._read_graph(body, inner)
            given.append(results[1:] if node.op_type == "Loop" else results)
        return [
            _Value(traces=tuple(trace for one in each for trace in one.traces)[:_MOST_TRACES], fed=any(one.fed for one in each))
            for each in zip(*given, strict=False)
        ]

    def _note(self, node: onnx.NodeProto, operands: Sequence[_Value]) -> None:
        """Take down what ``node`` names for the inputs that its operands are made of."""
        self.patterns.update(dict.fromkeys(patterns_of(node)))
        for position, operand in enumerate(operands):
            if not operand.fed:
                continue
            for known in named_at(node, position, lambda at: operands[at].elements if at < len(operands) else ()):
                for trace in operand.traces:
                    self._add(trace, known)
                if not operand.traces and node.op_type in COMPARISONS and known not in _LATTICE:
                    self.elsewhere[known] = None

    def _add(self, trace: Trace, known: Known) -> None:
        kind, exact = self.kinds[trace.input], self.exact.setdefault(trace.input, {})
        beside = self.beside.setdefault(trace.input, {})
        if isinstance(known, str) or kind == onnx.TensorProto.STRING:
            exact.update({known: None} if isinstance(known, str) and kind == onnx.TensorProto.STRING else {})
            return
        if kind == onnx.TensorProto.BOOL or not math.isfinite(known) or not trace.scale:
            return
        number = (known - trace.shift) / trace.scale
        if not math.isfinite(number):
            return
        if kind in _FLOATS:
            if trace == Trace(trace.input) or (_has_few_digits(number) and math.frexp(abs(trace.scale))[0] == 0.5):
                exact[number] = None
            step = _COARSER.get(kind, _NEAR) * (abs(number) or 1.0)
            beside.update(dict.fromkeys((number + step, number - step)))
        else:
            low = math.floor((known - trace.shift) // trace.scale)
            exact[low] = None
            beside.update(dict.fromkeys((low + 1, low - 1)))


def _carried_constant(node: onnx.NodeProto, operands: Sequence[_Value]) -> onnx.TensorProto | tuple[Known, ...]:
    """Return the elements of what is only a constant brought into another shape, type or place."""
    if not operands or not operands[0].constant:
        return ()
    if node.op_type in ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand"):
        return operands[0].constant
    if node.op_type in ("Cast", "CastLike"):
        whole = any(each.name == "to" and each.i not in _FLOATS for each in node.attribute)
        return tuple(_cast(each, whole) for each in operands[0].elements)
    return ()


def _cast(value: Known, whole: bool) -> Known:
    return int(value) if whole and not isinstance(value, str) and math.isfinite(value) else value


def _constant(node: onnx.NodeProto) -> Iterator[onnx.TensorProto | tuple[Known, ...]]:
    for each in node.attribute:
        match each.name:
            case "value":
                yield each.t
            case "value_int" | "value_ints":
                yield (each.i,) if each.name == "value_int" else tuple(each.ints[:_MOST_ELEMENTS])
            case "value_float" | "value_floats":
                yield (each.f,) if each.name == "value_float" else tuple(each.floats[:_MOST_ELEMENTS])
            case "value_string" | "value_strings":
                strings = [each.s] if each.name == "value_string" else each.strings[:_MOST_ELEMENTS]
                yield tuple(text.decode("utf-8", "replace") for text in strings)


def _elements(tensor: onnx.TensorProto) -> tuple[Known, ...]:
    """Return the elements of a small tensor whose data is at hand."""
    if math.prod(tensor.dims) > _MOST_ELEMENTS or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return ()
    values = onnx.numpy_helper.to_array(tensor).ravel().tolist()
    return tuple(value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)


def _has_few_digits(number: float) -> bool:
    mantissa = math.frexp(number)[0] * _FEW_DIGITS
    return mantissa == int(mantissa)


_TYPES = onnx.TensorProto
_COARSER: Mapping[int, float] = {_TYPES.FLOAT16: 2.0**-7, _TYPES.BFLOAT16: 2.0**-4}
_FLOATS = frozenset([_TYPES.FLOAT, _TYPES.DOUBLE, _TYPES.FLOAT16, _TYPES.BFLOAT16])
