"""Find out how precise each output can be.

An output depends on nodes and on values. It cannot be more precise than the least exact of these nodes, or than the coarsest float
type of these values. Examples of types:

    x (float16) ─► Cast ─► MatMul ─► y (double)         y has the roundings of float16
    x (double)  ─► MatMul ─► z (double)                  z has only roundings of double
    y, z = Scan (h, x)  with a body (s, e) => (n, o)     y depends on n and h, s on h and n, e on x, z on o

If an output depends on a float only through integers or booleans, the type of this float is ignored, because an integer or boolean
is either right or wrong.

Some nodes do not propagate NaN and infinity. The activations of RNN, LSTM and GRU are bounded, so these nodes may return ordinary
numbers. ReduceMax, ReduceMin, ArgMax and ArgMin ignore a NaN at some positions, depending on the number of elements.
DynamicQuantizeLinear converts NaN to an undefined integer. A rewrite that adds, removes or compiles such a node therefore changes
results for NaN, and this is no defect.

Works around ORT-RECURRENT-NAN, ORT-REDUCED-NAN and ORT-LOGSOFTMAX-NAN.
"""

from collections.abc import Iterable, Iterator, Set
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import bodies_of
from ortscan.ort.element_types import numpy_type
from ortscan.running.analysis import analyse, if_readable
from ortscan.running.graph_index import GraphIndex, all_nodes
from rewrites.base.errors import MalformedLoop
from rewrites.graph import walk
from rewrites.loops.view import captured_values, is_loop, view

__all__ = ["RECURRENT", "SWALLOWING", "coarsest_floats", "outputs_of"]

_COARSEST_FIRST = (
    onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ,
    onnx.TensorProto.FLOAT8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
)
RECURRENT = frozenset(["RNN", "LSTM", "GRU"])
SWALLOWING = RECURRENT | {"LogSoftmax", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "DynamicQuantizeLinear", "QuantizeLinear"}
"""Operators that do not propagate NaN. For example, a LogSoftmax of float64 returns numbers for NaN."""


def coarsest_floats(proto: onnx.ModelProto) -> dict[str, np.dtype[Any] | None]:
    """Return the coarsest float type that each output depends on, by the name of the output.

    The type is None if the output depends on no float.
    """
    names = [value.name for value in proto.graph.output]
    known = set(_all_types(proto)).intersection(_COARSEST_FIRST)
    casts = (node for node, _ in all_nodes(proto) if node.op_type == "Cast") if proto.functions else ()
    if len(known) < 2 and not any(attribute.ref_attr_name for node in casts for attribute in node.attribute):
        return dict.fromkeys(names, _coarsest(known))
    model = if_readable(lambda: analyse(proto, []).model)
    if model is None or len(model.graph.outputs) != len(names):
        return dict.fromkeys(names, _coarsest(known))
    dependence = _Dependence(model)
    return {name: _coarsest(dependence.types(value)) for name, value in zip(names, model.graph.outputs, strict=True)}


def _coarsest(types: Iterable[int]) -> np.dtype[Any] | None:
    types = set(types)
    return next((numpy_type(kind) for kind in _COARSEST_FIRST if kind in types), None)


def _all_types(proto: onnx.ModelProto) -> Iterator[int]:
    yield from _types_in(proto.graph)
    for node, _ in all_nodes(proto):
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to":
                yield attribute.i
            if attribute.HasField("t"):
                yield attribute.t.data_type
        for body in bodies_of(node):
            yield from _types_in(body)


def _types_in(graph: onnx.GraphProto) -> Iterator[int]:
    yield from (value.type.tensor_type.elem_type for value in (*graph.input, *graph.output, *graph.value_info))
    yield from (tensor.data_type for tensor in graph.initializer)


class _Dependence:
    """Finds the values that an output of a model depends on, including values in bodies of loops and Ifs."""

    def __init__(self, model: ir.Model):
        self._model = model
        self._inner: dict[ir.Value, list[ir.Value]] = {}
        """For results of control flow and inputs of bodies: the values that they depend on."""
        self._entered: set[ir.Node] = set()

    def types(self, output: ir.Value) -> Iterator[int]:
        """Yield the types of all floats that ``output`` is computed from."""
        pending, seen = [output], {output}
        while pending:
            value = pending.pop()
            node, kind = value.producer(), None if value.dtype is None else int(value.dtype)
            if kind is None and node is not None and node.op_type == "Cast":
                kind = node.attributes.get_int("to")
            if value is not output and kind is not None and kind not in _COARSEST_FIRST:
                continue
            if kind is not None:
                yield kind
            if node is not None and node not in self._entered:
                self._entered.add(node)
                self._enter(node)
            if value in self._inner or node is None:
                sources = self._inner.get(value, [])
            else:
                captured = (each for graph in walk.node_graphs(node) for each in captured_values(graph))
                sources = [each for each in (*node.inputs, *captured) if each is not None]
                yield from self._types_within(node)
            fresh = [each for each in sources if each not in seen]
            seen.update(fresh)
            pending += fresh

    def _enter(self, node: ir.Node) -> None:
        if node.op_type == "If" and node.domain == "":
            branches = [graph.outputs for graph in walk.node_graphs(node)]
            for outer, *inner in zip(node.outputs, *branches, strict=False):
                self._inner[outer] = [*inner, *(each for each in node.inputs if each is not None)]
        if not is_loop(node):
            return
        try:
            loop = view(node, self._model.opset_imports.get("", 1))
        except MalformedLoop:
            return
        for state in loop.states:
            for value in (state.inner, state.final):
                if value is not None:
                    self._inner[value] = [state.initial, state.next]
        for scanned in loop.scan_inputs:
            self._inner[scanned.inner] = [scanned.outer]
        for stacked in loop.scan_outputs:
            if stacked.outer is not None:
                self._inner[stacked.outer] = [stacked.inner]

    def _types_within(self, node: ir.Node) -> Iterator[int]:
        """Yield all types inside the nested graphs of a node, and inside the functions that it calls."""
        nodes = [each for graph in walk.node_graphs(node) for each in walk.all_nodes(graph)]
        pending, seen = [node, *nodes], set[ir.Function]()
        while pending:
            function = self._model.functions.get(pending.pop().op_identifier())
            if function is not None and function not in seen:
                seen.add(function)
                inside = list(walk.all_nodes(function))
                nodes += inside
                pending += inside
        for each in nodes:
            values = (value for value in (*each.inputs, *each.outputs) if value is not None)
            yield from (int(value.dtype) for value in values if value.dtype is not None)
            if each.op_type == "Cast" and (target := each.attributes.get_int("to", None)) is not None:
                yield target


def outputs_of(proto: onnx.ModelProto, kinds: Set[str]) -> set[str]:
    """Return the names of the outputs that depend on a node with one of the operators ``kinds``.

    This includes nodes in bodies and functions.
    """
    functions = {(function.domain, function.name): function.node for function in proto.functions}
    seen: set[tuple[str, str]] = set()

    def holds(node: onnx.NodeProto) -> bool:
        if node.op_type in kinds and node.domain in ("", "ai.onnx"):
            return True
        called = (node.domain, node.op_type)
        inner = [each for body in bodies_of(node) for each in body.node]
        if called in functions and called not in seen:
            seen.add(called)
            inner += functions[called]
        return any(map(holds, inner))

    results = []
    for node in proto.graph.node:
        seen.clear()
        if holds(node):
            results += [name for name in node.output if name]
    return GraphIndex(proto.graph).forward(results) & {value.name for value in proto.graph.output} if results else set()
