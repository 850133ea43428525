"""Keeps the sizes in one branch of an If from being used for the other branch or for the result.

A model may have one branch for each size of a tensor. If the size is fixed, the operands in the branches for other sizes no longer
fit each other, and onnxruntime refuses the model. Therefore this module inserts Reshapes into such a branch. They hide the sizes of
captured values, because the shape to which they reshape is only known at run time. The branch then fails only when it runs, as in
the original model:

    If(c) else: MatMul(x, w)    ->    If(c) else: MatMul(Reshape(x, Where(c, s, s)), w)      s: the sizes of x, which w does not fit

Before opset 11, if only one branch declares a size, onnx takes it for the size of the result:

    If (c) then [2, 3] else [n, 3]    ->    y [2, 3] for onnx, but in truth y is [?, 3]

Therefore the results of such branches get new names, and types without these sizes. A call of a function that contains an If
becomes an unknown operator with declared results. Both happen only in the copy of the model that is passed to onnx.

Works around ORT-BRANCH-CONTRADICTION and ONNX-IF-10-SIZES.
"""

from collections.abc import Callable, Sequence

import onnx
import onnx.inliner
import onnx_ir as ir

from rewrites.analysis.shapes.unknown_bounds import graphs_of, opset_of
from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.dims import meet
from rewrites.graph.node_inference import contradicts
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops import captured_values

__all__ = ["declare_calls_with_branches", "hide_sizes_from_branches", "hide_unlike_branches"]


def hide_sizes_from_branches(ctx: Context) -> None:
    """In each branch in which operators contradict the sizes of captured values, hide these sizes."""
    if ctx.opset < since.WHERE:
        return
    for node in list(all_nodes(ctx.model.graph)):
        condition = node.inputs[0] if node.op_type == "If" and node.domain == "" and node.inputs else None
        for branch in node_graphs(node) if condition is not None else ():
            inside = list(all_nodes(branch))
            if condition is not None and any(contradicts(inner, ctx.model.opset_imports, ctx.model.ir_version) for inner in inside):
                _hide_sizes(branch, inside, condition, ctx)


def _hide_sizes(branch: ir.Graph, inside: list[ir.Node], condition: ir.Value, ctx: Context) -> None:
    b, here = ctx.builder(), set(inside)
    first = next(iter(branch))
    for value in captured_values(branch):
        known = [] if value.shape is None or value.is_initializer() else [dim for dim in value.shape.dims if isinstance(dim, int)]
        if not known or value is condition or not isinstance(value.type, ir.TensorType):
            continue
        dims = static_dims(value)
        sizes = b.op("Shape", value) if dims is None else b.const(list(dims))
        hidden = b.op("Reshape", value, b.op("Where", condition, sizes, sizes))
        for user, index in value.uses():
            if user in here:
                user.replace_input_with(index, hidden)
    for graph in inner_graphs(branch):
        for value in graph.inputs:
            value.shape = None
    for node in inside:
        for value in node.outputs:
            value.shape = None
    b.insert_before(first)


_UNKNOWN = "functions that hold an If"


def declare_calls_with_branches(proto: onnx.ModelProto, infer: Callable[[onnx.ModelProto], onnx.ModelProto | None]) -> None:
    """Turn calls of functions that contain an If into unknown operators with declared results.

    ``infer``: infers the types and shapes of a model. It gets a copy of ``proto`` in which all functions are inlined. The declared
    types come from its result.
    """
    with_if = _functions_with_if(proto)
    if not with_if:
        return
    inferred = infer(onnx.inliner.inline_local_functions(proto))
    graphs = [] if inferred is None else list(graphs_of(inferred.graph))
    infos = {info.name: info for graph in graphs for info in (*graph.output, *graph.value_info)}
    for graph in graphs_of(proto.graph):
        declared = {info.name for info in (*graph.output, *graph.value_info)}
        for node in graph.node:
            if (node.domain, node.op_type) in with_if:
                node.domain = _UNKNOWN
                graph.value_info.extend(infos[name] for name in node.output if name in infos and name not in declared)
    proto.opset_import.add(domain=_UNKNOWN, version=1)


def _functions_with_if(proto: onnx.ModelProto) -> set[tuple[str, str]]:
    """Return the functions that contain an If, directly or in a function that they call.

    A function is a pair (domain, name). If both the function and the model have opset 11 or later, the function is left out.
    """
    operators_of: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for function in proto.functions:
        if opset_of(function) < since.IF_SIZES_APART or opset_of(proto) < since.IF_SIZES_APART:
            operators_of[function.domain, function.name] = {
                (node.domain, node.op_type) for graph in graphs_of(function) for node in graph.node
            }
    with_if = {name for name, kinds in operators_of.items() if ("", "If") in kinds or ("ai.onnx", "If") in kinds}
    while callers := {name for name, kinds in operators_of.items() if name not in with_if and kinds & with_if}:
        with_if |= callers
    return with_if


_HIDDEN = "hidden from the If: "


def hide_unlike_branches(proto: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """If the branches of an If return different shapes, hide the sizes on which they disagree.

    In each branch, the result gets a new name and a type with only the sizes on which all branches agree.

    Args:
        proto: The model that is changed.
        inferred: The same model with inferred shapes.

    Returns:
        True if ``proto`` was changed.
    """
    if opset_of(proto) >= since.IF_SIZES_APART:
        return False
    changed = False
    for graph, known_graph in zip(graphs_of(proto.graph), graphs_of(inferred.graph), strict=True):
        for node, known in zip(graph.node, known_graph.node, strict=True):
            if node.op_type == "If" and node.domain in ("", "ai.onnx"):
                branches = [attribute.g.output for attribute in node.attribute]
                types_of_results = zip(*(_result_types(attribute.g) for attribute in known.attribute), strict=False)
                for results, types in zip(zip(*branches, strict=False), types_of_results, strict=True):
                    if not _have_equal_shapes(types):
                        common = meet([ir.serde.deserialize_type_proto_for_shape(kind) for kind in types])
                        changed |= sum(_hide_result(*pair, common) for pair in zip(results, types, strict=True)) > 0
    return changed


def _result_types(branch: onnx.GraphProto) -> list[onnx.TypeProto]:
    """Return the types of the results of ``branch``.

    If `_hide_result` has renamed a result, its type is the type of the value with the original name.
    """
    known = {info.name: info.type for info in branch.value_info}
    return [known.get(info.name.removeprefix(_HIDDEN), info.type) for info in branch.output]


def _have_equal_shapes(kinds: Sequence[onnx.TypeProto]) -> bool:
    if not all(kind.HasField("tensor_type") for kind in kinds):
        return True
    return len({kind.tensor_type.shape.SerializeToString() if kind.tensor_type.HasField("shape") else None for kind in kinds}) < 2


def _hide_result(result: onnx.ValueInfoProto, declared: onnx.TypeProto, shape: ir.Shape | None) -> bool:
    """Rename the ``result`` of a branch, and change its type to ``declared`` with the given ``shape``.

    Return True if this changes ``result``.
    """
    before = result.SerializeToString()
    if not result.name.startswith(_HIDDEN):
        result.name = _HIDDEN + result.name
    result.type.CopyFrom(declared)
    if shape is None:
        result.type.tensor_type.ClearField("shape")
    else:
        ir.serde.serialize_shape_into(result.type, shape)
    return bool(result.SerializeToString() != before)
