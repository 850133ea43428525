"""Cut one loop out of two models at their common values, to compare it separately.

    before:  x ─► MatMul ─► p ─► Scan ─► y ─► rest           after:  x ─► MatMul ─► p ─► LSTM ─► Squeeze ─► y ─► rest

    before:  p ─► Scan ─► y                                  after:  p ─► LSTM ─► Squeeze ─► y

The inputs of both parts are values that occur in both models, such as p. They are floats that may have any value. A rewrite may
rely on the possible values of a mask, a count or a shape, so the nodes that compute such values become part of the cut. Both parts
must have the same inputs. If only one part needs a value, this part also gets the nodes that compute the value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ortscan.base.proto_graphs import with_large_weights_as_inputs, without_negative_sizes
from ortscan.running.graph_index import GraphIndex
from ortscan.running.joined_vectors import has_long_vectors
from ortscan.running.specs import SessionSpec
from rewrites.base.errors import is_raised_by

__all__ = ["LoopCut", "Types", "cut_loop", "value_types"]

Types = Mapping[str, onnx.TypeProto]
_FROM_FIRST = frozenset(["Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Split", "Identity", "Gather", "Dropout"])
_ARITHMETIC = frozenset(["Add", "Mul", "Sub", "Div", "Concat"])
_PRODUCTS = frozenset(["MatMul", "Gemm", "Conv", "Einsum", "Scan", "Loop", "LSTM", "GRU", "RNN"])
_MAPS = frozenset(["Tanh", "Sigmoid", "Relu", "Gelu", "Softmax", "LayerNormalization", "BatchNormalization"])
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_MOST_NODES = 1000
_DEEPEST = 12
_ROUNDS = 20
_FARTHEST = 40


@dataclass(frozen=True)
class LoopCut:
    """The parts of two models to compare.

    Attributes:
        before: the positions of the nodes of the original's part in its main graph.
        after: the positions of the nodes of the rewritten model's part in its main graph.
        inputs: the names of the inputs of both parts.
        outputs: the names of the outputs of both parts.
    """

    before: Sequence[int]
    after: Sequence[int]
    inputs: Sequence[str]
    outputs: Sequence[str]

    def model(self, proto: onnx.ModelProto, index: GraphIndex, positions: Iterable[int], types: Types) -> onnx.ModelProto:
        """Return a model that consists of the nodes at ``positions`` in the main graph of ``proto``.

        ``index`` is the index of this main graph. ``types`` has the types of the inputs and outputs of the returned model.
        """
        model = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, functions=proto.functions)
        model.graph.name = proto.graph.name
        nodes = [index.nodes[position] for position in positions]
        model.graph.node.extend(nodes)
        names = dict.fromkeys(name for position in positions for name in index.reads(position))
        model.graph.initializer.extend(index.initializers[name] for name in names if name in index.initializers)
        for field, members in ((model.graph.input, self.inputs), (model.graph.output, self.outputs)):
            field.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in members)
        inner = {name for node in nodes for name in node.output} - set(self.outputs)
        model.graph.value_info.extend(value for value in proto.graph.value_info if value.name in inner)
        return model


def cut_loop(position: int, before: GraphIndex, after: GraphIndex, types: Types) -> LoopCut | str:
    """Cut a loop out of both models, or return the reason why that is impossible.

    Args:
        position: the position of the loop in the main graph of the original.
        before: the index of the original's main graph.
        after: the index of the rewritten model's main graph.
        types: the types of the values of the original.
    """
    outputs = _results(position, before, after)
    if not outputs:
        return "none of its results has the same name in both models"
    shared = after.producers.keys() & before.producers.keys() - before.forward(outputs)
    stops = {name for name in shared if _is_general(name, before, types)}
    for _ in range(_ROUNDS):
        old, new = before.backward(outputs, stops, _MOST_NODES), after.backward(outputs, stops, _MOST_NODES)
        if isinstance(old, str) or isinstance(new, str):
            return f"the original {old}" if isinstance(old, str) else f"the result {new}"
        apart = (old.leaves ^ new.leaves) & stops
        if not apart:
            break
        stops -= apart
    else:
        return "the two models have no common values near it"
    leaves = sorted(old.leaves | new.leaves)
    untyped = [name for name in (*leaves, *outputs) if name not in types]
    if untyped:
        return f"the type of '{untyped[0]}' is unknown"
    return LoopCut(sorted(old.nodes), sorted(new.nodes), leaves, outputs)


def _results(position: int, before: GraphIndex, after: GraphIndex) -> list[str]:
    """Return the names of the outputs of the loop at ``position`` that both models have.

    If only the original has an output, return other names instead: those of the nearest values that are computed from this output
    and that both models have.
    """
    results: dict[str, None] = {}
    pending = [name for name in before.nodes[position].output if name]
    seen = set(pending)
    while pending and len(seen) < _FARTHEST:
        name = pending.pop(0)
        if name in after.producers:
            results[name] = None
            continue
        for user in before.users(name):
            fresh = [each for each in before.nodes[user].output if each and each not in seen]
            seen.update(fresh)
            pending += fresh
    return list(results)


def _is_general(name: str, index: GraphIndex, types: Types, depth: int = 0) -> bool:
    """Return True if ``name`` is a tensor of floats that may have any value, as far as the graph shows.

    This means that a rewrite cannot rely on a property of the value, for example that it is positive.

    Args:
        name: the name of the value.
        index: the index of the main graph.
        types: the types of the values of the main graph.
        depth: the number of nodes between the value and the value where the search began. The search stops at a maximum depth.
    """
    if name not in types or types[name].tensor_type.elem_type not in _FLOATS or depth > _DEEPEST:
        return False
    if name not in index.producers:
        return name in index.inputs
    node = index.nodes[index.producers[name]]
    if node.op_type in _FROM_FIRST:
        source = node.input[0]
        return source in index.initializers if node.op_type == "Gather" else _is_general(source, index, types, depth + 1)
    if node.op_type in _ARITHMETIC:
        return all(each in index.initializers or _is_general(each, index, types, depth + 1) for each in node.input if each)
    return node.op_type in _PRODUCTS or node.op_type in _MAPS


def value_types(proto: onnx.ModelProto, specs: Sequence[SessionSpec], sizes: Mapping[str, int]) -> dict[str, onnx.TypeProto]:
    """Return the types, with shapes, of all values of the main graph that are tensors of known rank.

    onnx infers the types from a copy of the model without large weights. ``sizes`` has the sizes of some free dimensions of the
    inputs ``specs``.
    """
    hollow = without_negative_sizes(with_large_weights_as_inputs(proto))
    hollow.ir_version = max(proto.ir_version, 4)  # in older versions every initializer is an input
    if sizes:
        _bind(hollow.graph, specs, sizes)
    try:
        hollow = onnx.shape_inference.infer_shapes(hollow, data_prop=not has_long_vectors(hollow))
    except Exception as error:
        if not is_raised_by(error, "onnx") and not isinstance(error, MemoryError):
            raise
    values = (*hollow.graph.input, *hollow.graph.output, *hollow.graph.value_info)
    return {value.name: value.type for value in values if value.type.tensor_type.HasField("shape")}


def _bind(graph: onnx.GraphProto, specs: Sequence[SessionSpec], sizes: Mapping[str, int]) -> None:
    """Set the free dimensions of the inputs of ``graph`` to the sizes in ``sizes``.

    Declarations of other values may use the names of these dimensions. In these declarations, the names are removed, so that onnx
    infers the sizes.
    """
    ranked = {spec.name: spec.dims for spec in specs if spec.kind == "tensor" and spec.dims is not None}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis, name in enumerate(ranked.get(value.name, ())):
            dim = dims[axis] if axis < len(dims) else dims.add()
            if isinstance(name, str) and name in sizes:
                dim.dim_value = sizes[name]
    for value in (*graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.ClearField("dim_param")
