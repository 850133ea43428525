"""A slow and simple interpreter of models with loops, as a reference for their results.

`run_model` interprets a whole model. Scan (all dialects), Loop and If are Python loops, written only from the ONNX specification.
Every other operator runs on onnxruntime as a model of that one node, one step at a time. So no optimiser, fusion or loop kernel
takes part, and captures are looked up by name in the enclosing scopes.

If onnxruntime and the specification disagree, the specification wins. A body output that is an input, or is listed twice, is an
ordinary value. A Scan without steps keeps its states and stacks nothing (element shapes as declared, unknown sizes 0). A Loop
without a condition input still stops when its body's condition turns false, as in onnxruntime.

Works around ONNX-REFERENCE-SCAN.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, inliner, numpy_helper, shape_inference

from tests.support.order import order_nodes
from tests.support.runtime import TypedSequence, Value, numpy_dtype, ort_session, run_session

__all__ = ["run_model"]

Scope = ChainMap[str, Any]
Opsets = tuple[tuple[str, int], ...]


def run_model(model: ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Return the outputs of `model` for `feeds`, in the order of the graph's outputs."""
    model = inliner.inline_local_functions(model)
    order_nodes(model.graph)
    model = shape_inference.infer_shapes(model)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    given = {name: _as_fed(value) for name, value in feeds.items()}
    return _run_graph(model.graph, given, ChainMap(), tuple(sorted(opsets.items())))


def _as_fed(value: Any) -> Value:
    if isinstance(value, list):
        return value if isinstance(value, TypedSequence) else TypedSequence(value, value[0].dtype)
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind == "U" else array


def _run_graph(graph: GraphProto, given: Mapping[str, Any], outer: Scope, opsets: Opsets) -> list[Value]:
    assert not graph.sparse_initializer, "sparse initializers are not interpreted"
    scope = outer.new_child({t.name: _as_fed(numpy_helper.to_array(t)) for t in graph.initializer})
    scope.update(given)
    for node in graph.node:
        outputs = _run_node(node, [scope[name] if name else None for name in node.input], scope, opsets)
        scope.update({name: value for name, value in zip(node.output, outputs, strict=False) if name})
    return [scope[info.name] for info in graph.output]


def _run_node(node: NodeProto, inputs: list[Any], scope: Scope, opsets: Opsets) -> list[Value]:
    if node.domain in ("", "ai.onnx"):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type != a.TENSOR}
        match node.op_type:
            case "If":
                branch = attributes["then_branch" if inputs[0].item() else "else_branch"]
                return _run_graph(branch, {}, scope, opsets)
            case "Loop":
                return _run_loop(attributes["body"], inputs, scope, opsets)
            case "Scan" if dict(opsets)[""] < 9:
                return _run_batched_scan(attributes, inputs, scope, opsets)
            case "Scan":
                return _run_scan(attributes, inputs, scope, opsets)
    if any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute):
        raise NotImplementedError(f"{node.op_type} has a body the oracle does not know how to run")
    return _run_operator(node, inputs, opsets)


def _run_loop(body: GraphProto, inputs: list[Any], scope: Scope, opsets: Opsets) -> list[Value]:
    trips, condition, *states = inputs
    go_on = np.array(True) if condition is None else condition
    steps: list[list[Value]] = []
    while go_on.item() and (trips is None or len(steps) < trips.item()):
        arguments = [np.array(len(steps), np.int64), go_on, *states]
        go_on, *rest = _run_body(body, arguments, scope, opsets)
        states, stacked = rest[: len(states)], rest[len(states) :]
        steps.append(stacked)
    infos = body.output[1 + len(states) :]
    return states + [_stack(column, info) for column, info in zip(_columns(steps, len(infos)), infos, strict=True)]


def _run_scan(attributes: Mapping[str, Any], inputs: list[Any], scope: Scope, opsets: Opsets) -> list[Value]:
    body, n_scanned = attributes["body"], attributes["num_scan_inputs"]
    states, scanned = inputs[:-n_scanned], inputs[-n_scanned:]
    infos = body.output[len(states) :]

    def option(name: str, count: int) -> Sequence[int]:
        return attributes.get(name) or [0] * count

    axes, directions = option("scan_input_axes", n_scanned), option("scan_input_directions", n_scanned)
    streams = [np.moveaxis(x, a, 0)[:: -1 if d else 1] for x, a, d in zip(scanned, axes, directions, strict=True)]
    states, steps = _scan_streams(body, states, streams, scope, opsets)
    axes, directions = option("scan_output_axes", len(infos)), option("scan_output_directions", len(infos))
    columns = [c[:: -1 if d else 1] for c, d in zip(_columns(steps, len(infos)), directions, strict=True)]
    return states + [_stack(c, info, axis) for c, info, axis in zip(columns, infos, axes, strict=True)]


def _run_batched_scan(attributes: Mapping[str, Any], inputs: list[Any], scope: Scope, opsets: Opsets) -> list[Value]:
    """Run a Scan of opset 8: axis 0 is the batch, axis 1 is time, and each row is a separate Scan over its first `length` steps."""
    body, n_scanned = attributes["body"], attributes["num_scan_inputs"]
    lengths, *rest = inputs
    initial, scanned = rest[:-n_scanned], rest[-n_scanned:]
    batch, time = scanned[0].shape[:2]
    lengths = np.full(batch, time) if lengths is None else lengths.reshape(batch)
    directions = attributes.get("directions") or [0] * n_scanned
    row_states: list[list[Any]] = []
    row_steps: list[list[list[Any]]] = []
    for row, length in enumerate(lengths):
        streams = [x[row, :length][:: -1 if d else 1] for x, d in zip(scanned, directions, strict=True)]
        states, steps = _scan_streams(body, [s[row, ...] for s in initial], streams, scope, opsets)
        row_states.append(states)
        row_steps.append(steps)
    finals = [np.stack(column) if batch else initial[i] for i, column in enumerate(_columns(row_states, len(initial)))]
    stacked = []
    for position, info in enumerate(body.output[len(initial) :]):
        element = next((step[position] for steps in row_steps for step in steps), None)
        element = _element(info) if element is None else element
        padding = _zeros(element.shape, element.dtype)
        rows = [[step[position] for step in steps] + [padding] * (time - len(steps)) for steps in row_steps]
        flat = [value for row in rows for value in row]
        stacked.append(_stack(flat, info).reshape(batch, time, *element.shape))
    return finals + stacked


def _scan_streams(
    body: GraphProto, states: list[Value], streams: Sequence[np.ndarray], scope: Scope, opsets: Opsets
) -> tuple[list[Value], list[list[Value]]]:
    """Return the final states, and the rows that each step adds to the scan outputs."""
    assert len({len(stream) for stream in streams}) == 1, "scan inputs of different lengths"
    steps = []
    for t in range(len(streams[0])):
        results = _run_body(body, [*states, *(stream[t, ...] for stream in streams)], scope, opsets)
        states, stacked = results[: len(states)], results[len(states) :]
        steps.append(stacked)
    return states, steps


def _run_body(body: GraphProto, arguments: list[Value], scope: Scope, opsets: Opsets) -> list[Value]:
    names = [info.name for info in body.input]
    return _run_graph(body, dict(zip(names, arguments, strict=True)), scope, opsets)


def _columns(rows: list[list[Value]], count: int) -> list[list[Value]]:
    return [[row[position] for row in rows] for position in range(count)]


def _stack(values: Sequence[Any], info: ValueInfoProto, axis: int = 0) -> np.ndarray:
    if values:
        return np.stack(values, axis)
    return np.repeat(np.expand_dims(_element(info), axis), 0, axis)


def _element(info: ValueInfoProto) -> np.ndarray:
    """Return zeros in the declared shape of the value of one step."""
    declared = info.type.tensor_type
    return _zeros([dim.dim_value for dim in declared.shape.dim], numpy_dtype(declared.elem_type))


def _zeros(shape: Iterable[int], dtype: np.dtype[Any]) -> np.ndarray:
    return np.full(tuple(shape), "" if dtype.kind == "O" else 0, dtype)


def _run_operator(node: NodeProto, inputs: list[Any], opsets: Opsets) -> list[Any]:
    feeds = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
    types = tuple((name, _type_of(value)) for name, value in feeds.items())
    results = iter(run_session(_operator_session(node.SerializeToString(), types, opsets), feeds))
    return [next(results) if name else None for name in node.output]


def _type_of(value: Value) -> bytes:
    tensor = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), None)
    proto = helper.make_sequence_type_proto(tensor) if isinstance(value, TypedSequence) else tensor
    return bytes(proto.SerializeToString())


@lru_cache(maxsize=1024)
def _operator_session(node: bytes, types: tuple[tuple[str, bytes], ...], opsets: Opsets) -> Any:
    operator = NodeProto.FromString(node)
    inputs = [ValueInfoProto(name=name, type=TypeProto.FromString(kind)) for name, kind in types]
    outputs = [ValueInfoProto(name=name) for name in operator.output if name]
    graph = helper.make_graph([operator], operator.op_type, inputs, outputs)
    imports = [helper.make_opsetid(*opset) for opset in opsets]
    return ort_session(helper.make_model(graph, ir_version=10, opset_imports=imports), optimised=False)
